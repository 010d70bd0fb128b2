"""The connection to NATS: synchronous calls with deadlines over nats-py, which runs in one thread of its own.

A call has one of four ends: its result; :class:`BrokerUnavailable`, if nothing was sent; :class:`BrokerRefused`, if the
server refused it; or :class:`BrokerUnknown`, if no answer came in time. In the last case the server may have done what
was asked, or may do it later: the caller reads again before it assumes either.

tierd requires nats-server 2.10.23: 2.10.20 to 2.10.22 lost streams after a crash.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import ConnectionClosedError, ConnectionReconnectingError, MaxPayloadError, NoRespondersError
from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
    StreamInfo,
    StreamState,
)
from nats.js.errors import APIError, KeyNotFoundError, KeyWrongLastSequenceError, NoStreamResponseError, NotFoundError
from nats.js.kv import KeyValue

from tierd.config.settings import ClusterSettings

log = logging.getLogger("tierd.cluster")
OLDEST_SERVER = (2, 10, 23)
_RECONNECT_SECONDS = 0.5
_PING_SECONDS = 5
_MARGIN_SECONDS = 2.0
"""Time for the thread of the connection beyond the deadline of a request."""
_FETCH_SECONDS = 0.02
"""Shortest time after which the server ends a request for a message."""
DUPLICATE_SECONDS = 120.0
"""Time in which a second message with the same id is not stored."""
T = TypeVar("T")


class BrokerError(OSError):
    """A request to NATS did not succeed."""


class BrokerUnavailable(BrokerError):  # noqa: N818 -- named as what is known
    """There is no connection. Nothing was sent."""


class BrokerUnknown(BrokerError):  # noqa: N818 -- named as what is known
    """No answer arrived in time. The request may have been carried out, or may be carried out later."""


class BrokerRefused(BrokerError):  # noqa: N818 -- named as what is known
    """The server refused the request, for example because of the permissions of this user."""


class WrongRevision(BrokerRefused):
    """Another process has changed the key since the given revision."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to publish. The server stores one message of each id."""

    subject: str
    data: bytes
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class Stored:
    """A message of a stream, or the value of a key."""

    data: bytes
    sequence: int
    """Number in the stream. Of a value it is the revision, which only grows, over all keys of a bucket."""


class Delivery:
    """A message of a consumer, leased to this process until it is acknowledged or ``ack_wait`` has passed."""

    def __init__(self, connection: Connection, message: Msg) -> None:
        self._connection = connection
        self.message = message
        self.subject = message.subject
        self.data = message.data
        self.times_delivered = message.metadata.num_delivered or 1

    def acknowledge(self) -> None:
        """Report that the work is done, and wait until the server has stored that.

        The server accepts this also from a process whose lease has ended. It then gives the next message of the
        consumer to a further process, while another one still works on this message.
        """
        self._connection.call(lambda seconds: self.message.ack_sync(timeout=seconds))

    def give_back(self, delay_seconds: float = 0.0) -> None:
        """Return the message to the queue: another process gets it after the delay."""
        self._connection.call(lambda _: self.message.nak(delay=delay_seconds or None))


class Bucket:
    """Keys and values with revisions, which compare-and-set uses."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name

    def get(self, key: str) -> Stored | None:
        """The value of a key, read from the server that leads the bucket; None without one."""
        async def ask(_: float) -> Stored | None:
            try:
                entry = await self._keys().get(key)
            except KeyNotFoundError:
                return None
            return Stored(entry.value or b"", entry.revision or 0)

        return self._connection.call(ask)

    def put(self, key: str, data: bytes) -> int:
        return self._connection.call(lambda _: self._keys().put(key, data))

    def update(self, key: str, data: bytes, last: int) -> int:
        """Replace the value that a key had at revision ``last``; 0 creates the key. Raises WrongRevision otherwise."""
        return self._connection.call(lambda _: self._keys().update(key, data, last=last) if last
                                     else self._keys().create(key, data))

    def delete(self, key: str, last: int = 0) -> None:
        """Remove a key, if ``last`` is given only that revision. Raises WrongRevision."""
        self._connection.call(lambda _: self._keys().delete(key, last=last or None))

    def all(self) -> dict[str, bytes]:
        async def ask(_: float) -> list[str]:
            info = await self._connection.stream_info(f"KV_{self._name}", subjects_filter=f"{prefix}>")
            return sorted(subject.removeprefix(prefix) for subject in info.state.subjects or {})

        prefix = f"$KV.{self._name}."
        found = {key: self.get(key) for key in self._connection.call(ask)}
        return {key: value.data for key, value in found.items() if value is not None}

    def _keys(self) -> KeyValue:
        # never ``direct``: a replica may answer with an old value
        return KeyValue(self._name, f"KV_{self._name}", f"$KV.{self._name}.", self._connection.jetstream, direct=False)


class Connection:
    """One connection, for any number of threads. It connects in the background, and again after every interruption.

    ``role`` is the prefix of the subjects for answers, so that the server can keep the roles apart.
    """

    def __init__(self, settings: ClusterSettings, role: str) -> None:
        self._settings = settings
        self._role = role
        self._client = Client()
        self.jetstream = JetStreamContext(self._client, timeout=settings.timeout_seconds)
        """The client's interface to streams."""
        self._failure = "not connected yet"
        """Why there is no connection to a server of a sufficient version; "" while there is one."""
        self._denied: dict[str, str] = {}
        self._subscriptions: dict[tuple[str, str], JetStreamContext.PullSubscription] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tierd-nats", daemon=True)
        self._thread.start()
        self._connecting = asyncio.run_coroutine_threadsafe(self._connect(), self._loop)

    # -- state ------------------------------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether there is a connection to a server of a sufficient version now."""
        return self._client.is_connected and not self._failure

    @property
    def trouble(self) -> str:
        return "" if self.connected else (self._failure or "the connection is lost")

    def close(self) -> None:
        async def close() -> None:
            self._connecting.cancel()
            with suppress(Exception):
                await asyncio.wait_for(self._client.close(), 2.0)
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(close(), self._loop).result(5.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        if not self._thread.is_alive():
            self._loop.close()

    # -- streams ----------------------------------------------------------------------------------------------------

    def declare_stream(self, name: str, subject: str, replicas: int, *, work_queue: bool = True,
                       max_age_seconds: float = 0.0, max_bytes: int = -1) -> None:
        """Create the stream, or give an existing one this declaration.

        In a ``work_queue``, an acknowledged message is removed. Age 0 keeps messages; at ``max_bytes`` the server
        refuses new ones.
        """
        config = StreamConfig(
            name=name, subjects=[subject], num_replicas=replicas, storage=StorageType.FILE,
            retention=RetentionPolicy.WORK_QUEUE if work_queue else RetentionPolicy.LIMITS,
            duplicate_window=DUPLICATE_SECONDS, max_age=max_age_seconds or None, max_bytes=max_bytes,
            discard=DiscardPolicy.NEW if max_bytes > 0 else DiscardPolicy.OLD)
        change = self.jetstream.update_stream if self.has_stream(name) else self.jetstream.add_stream
        self.call(lambda _: change(config))

    def declare_consumer(self, stream: str, name: str, subject: str, *, at_once: int, ack_wait_seconds: float,
                         max_deliver: int = -1) -> None:
        """Create a durable pull consumer: what several processes take from one stream, each message once.

        All of them together work on ``at_once`` messages. One without an acknowledgement or a sign of work for
        ``ack_wait_seconds`` is delivered again. An existing consumer gets these limits.
        """
        config = ConsumerConfig(durable_name=name, filter_subject=subject, ack_policy=AckPolicy.EXPLICIT,
                                ack_wait=ack_wait_seconds, max_ack_pending=at_once, max_deliver=max_deliver)
        self.call(lambda _: self.jetstream.add_consumer(stream, config))

    def declare_bucket(self, name: str, replicas: int, ttl_seconds: float = 0.0) -> None:
        """Create the bucket if it does not exist. ``ttl_seconds`` after its last change a key vanishes; 0 keeps it."""
        config = StreamConfig(
            name=f"KV_{name}", subjects=[f"$KV.{name}.>"], num_replicas=replicas, storage=StorageType.FILE,
            max_msgs_per_subject=1, max_age=ttl_seconds or None, allow_rollup_hdrs=True, deny_delete=True,
            discard=DiscardPolicy.NEW, allow_direct=False,
            duplicate_window=min(DUPLICATE_SECONDS, ttl_seconds or DUPLICATE_SECONDS))
        if not self.has_stream(f"KV_{name}"):
            self.call(lambda _: self.jetstream.add_stream(config))

    def bucket(self, name: str) -> Bucket:
        """A bucket that another process has declared."""
        return Bucket(self, name)

    def publish(self, subject: str, data: bytes, message_id: str = "") -> int:
        """Publish a message to the stream of its subject, and wait until the server has stored it.

        Returns its sequence in the stream, or that of the message of the same id that was there already.
        """
        (stored,) = self.publish_all([Outgoing(subject, data, message_id)])
        if isinstance(stored, BrokerError):
            raise stored
        return stored

    def publish_all(self, messages: Sequence[Outgoing]) -> list[int | BrokerError]:
        """Publish several messages at the same time. Returns the sequence of each, or why it was not stored."""
        async def one(message: Outgoing, seconds: float) -> int | BrokerError:
            headers = {"Nats-Msg-Id": message.message_id} if message.message_id else None
            try:
                stored = await self.jetstream.publish(message.subject, message.data, timeout=seconds, headers=headers)
                return stored.seq
            except Exception as error:  # noqa: BLE001 -- each message has its own result
                return self._as_broker_error(error, message.subject)

        async def every(seconds: float) -> list[int | BrokerError]:
            return list(await asyncio.gather(*(one(message, seconds) for message in messages)))

        return self.call(every)

    def notify(self, subject: str, data: bytes) -> None:
        """Send to whoever listens now. Nothing is stored, and nobody confirms it."""
        self.call(lambda _: self._client.publish(subject, data))

    def listen(self, subject: str, handler: Callable[[bytes], None]) -> None:
        """Call the handler with each message of :meth:`notify`, in the thread of the connection. It must not block."""
        async def handle(message: Msg) -> None:
            handler(message.data)

        self.call(lambda _: self._client.subscribe(subject, cb=handle))

    def fetch(self, stream: str, consumer: str) -> Delivery | None:
        """Take one message of a consumer. None if none waits, or if movers hold as many as the consumer allows."""
        # the server answers at once, except where movers hold so many
        request = json.dumps({"batch": 1, "expires": int(_FETCH_SECONDS * 1e9), "no_wait": True}).encode()

        async def take(seconds: float) -> Delivery | None:
            answer = await self._client.request(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}", request,
                                                timeout=seconds, old_style=True)  # the message keeps its subject
            return None if answer.headers and "Status" in answer.headers else Delivery(self, answer)

        return self.call(take)

    def fetch_all(self, stream: str, consumer: str, most: int, wait_seconds: float = 0.0) -> list[Delivery]:
        """Take up to ``most`` messages, waiting up to ``wait_seconds`` for the first one."""
        async def take(_: float) -> list[Delivery]:
            key = stream, consumer
            if key not in self._subscriptions:
                self._subscriptions[key] = await self.jetstream.pull_subscribe_bind(consumer, stream)
            try:
                found = await self._subscriptions[key].fetch(most, timeout=max(wait_seconds, _FETCH_SECONDS))
            except TimeoutError:  # nats-py raises its own, or asyncio's if the time was over before its second request
                return []
            return [Delivery(self, message) for message in found]

        return self.call(take, margin=wait_seconds + _MARGIN_SECONDS)

    def extend_leases(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Ask for another ``ack_wait`` for each message. Returns those for which the server has answered.

        The server answers even for a message that it has given to another process meanwhile: the caller compares the
        time of the answer with the end of the lease.
        """
        async def one(delivery: Delivery, seconds: float) -> bool:
            try:
                await self._client.request(delivery.message.reply, Msg.Ack.Progress, timeout=seconds)
            except Exception:  # noqa: BLE001 -- whatever it is, this lease may end
                return False
            return True

        async def every(seconds: float) -> list[bool]:
            return list(await asyncio.gather(*(one(delivery, seconds) for delivery in deliveries)))

        answered = self.call(every) if deliveries else []
        return [delivery for delivery, known in zip(deliveries, answered, strict=True) if known]

    def acknowledge_all(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge messages without waiting for the server. One that is delivered again costs another check."""
        async def acknowledge(_: float) -> None:
            for each in deliveries:
                await each.message.ack()

        self.call(acknowledge)

    def next_message(self, stream: str, subject: str, from_sequence: int) -> Stored | None:
        """The first message of a subject from a sequence on; None if no message was published yet."""
        async def take(_: float) -> Stored | None:
            try:
                found = await self.jetstream.get_msg(stream, seq=max(1, from_sequence), subject=subject, next=True)
            except NotFoundError:
                return None
            return Stored(found.data or b"", found.seq or 0)

        return self.call(take)

    def remove_message(self, stream: str, sequence: int) -> None:
        """Remove one message, if it is there."""
        async def remove(_: float) -> None:
            try:
                await self.jetstream.delete_msg(stream, sequence)
            except APIError as error:
                if error.code not in {400, 404, 500}:
                    raise

        self.call(remove)

    def has_stream(self, name: str) -> bool:
        async def exists(_: float) -> bool:
            try:
                await self.stream_info(name)
            except NotFoundError:
                return False
            return True

        return self.call(exists)

    async def stream_info(self, name: str, **wanted: Any) -> StreamInfo:
        info = await self.jetstream.stream_info(name, **wanted)
        if info.cluster is not None and not info.cluster.leader:
            raise NoStreamResponseError  # a server without the others answers too, and sees keys expire
        return info

    def stream_state(self, name: str) -> tuple[str, StreamState]:
        """When NATS made the stream, which another one of its name has otherwise, and its state."""
        found = self.call(lambda _: self.stream_info(name))
        return str(found.created), found.state

    def delivered_sequence(self, stream: str, consumer: str) -> int:
        """Sequence of the last message that the consumer delivered; 0 if it was not declared."""
        async def ask(_: float) -> int:
            try:
                info = await self.jetstream.consumer_info(stream, consumer)
            except NotFoundError:
                return 0
            return info.delivered.stream_seq if info.delivered else 0

        return self.call(ask)

    # -- below ------------------------------------------------------------------------------------------------------

    def call(self, request: Callable[[float], Coroutine[Any, Any, T]], margin: float = _MARGIN_SECONDS) -> T:
        """Run a request in the thread of the connection, with the deadline of the settings."""
        if not self.connected:
            raise BrokerUnavailable(None, f"NATS: {self.trouble}")
        seconds = self._settings.timeout_seconds
        future = asyncio.run_coroutine_threadsafe(request(seconds), self._loop)
        try:
            return future.result(seconds + margin)
        except Exception as error:
            future.cancel()  # if it has not ended
            raise self._as_broker_error(error) from error

    def _as_broker_error(self, error: Exception, subject: str = "") -> BrokerError:
        if isinstance(error, KeyWrongLastSequenceError | KeyNotFoundError):  # the latter expired while it was compared
            return WrongRevision(None, f"NATS: {error}")
        if isinstance(error, APIError | NoStreamResponseError | NoRespondersError | MaxPayloadError):
            words = error.description if isinstance(error, APIError) else str(error).removeprefix("nats: ")
            return BrokerRefused(None, f"NATS: {words or 'the stream is not available now'}")  # without a leader
        # NATS reports a missing right apart from the request, which gets no answer, and nats-py in small letters. A
        # missing right for another subject does not count here
        if denied := self._denied.pop(subject.lower() or next(iter(self._denied), ""), ""):
            return BrokerRefused(None, f"NATS: {denied}")
        if isinstance(error, ConnectionClosedError | ConnectionReconnectingError):
            return BrokerUnavailable(None, f"NATS: {error}")
        return BrokerUnknown(None, f"NATS did not answer within {self._settings.timeout_seconds:g} s, so the result is "
                             f"unknown ({type(error).__name__})")

    async def _connect(self) -> None:
        while True:
            try:
                await self._client.connect(**self._options())
            except Exception as error:  # noqa: BLE001 -- any reason: name not known, TLS, permission, key file
                self._failure = f"cannot connect: {str(error) or type(error).__name__}"
                await asyncio.sleep(_RECONNECT_SECONDS)
                continue
            await self._check_version()
            return

    def _options(self) -> Mapping[str, Any]:
        settings = self._settings

        async def failed(error: Exception) -> None:
            words = str(error) or type(error).__name__
            if "permissions violation" in words.lower():
                self._denied[words.rpartition("to ")[2].strip("'\" ")] = words
                log.warning("NATS refuses: %s", words)
            elif not self._client.is_connected:
                self._failure = f"cannot connect: {words}"

        async def lost() -> None:
            self._failure = "the connection is lost"
            log.warning("lost the connection to NATS")

        async def again() -> None:
            await self._check_version()
            if not self._failure:
                log.info("connected to NATS again")

        options: dict[str, Any] = {
            "servers": list(settings.servers), "name": f"tierd {self._role}", "error_cb": failed,
            "disconnected_cb": lost, "reconnected_cb": again, "allow_reconnect": True, "max_reconnect_attempts": -1,
            "reconnect_time_wait": _RECONNECT_SECONDS, "connect_timeout": settings.timeout_seconds,
            "ping_interval": _PING_SECONDS, "max_outstanding_pings": 1, "inbox_prefix": f"_INBOX_{self._role}",
        }
        if settings.nkey_seed_file:
            options["nkeys_seed"] = settings.nkey_seed_file
        if settings.ca_file or settings.cert_file or any(url.startswith("tls:") for url in settings.servers):
            options["tls"] = tls_context(settings)
        return options

    async def _check_version(self) -> None:
        found = self._client.connected_server_version
        version = (found.major, found.minor, found.patch)
        self._failure = "" if version >= OLDEST_SERVER else (
            f"nats-server {'.'.join(map(str, version))} is too old: tierd needs {'.'.join(map(str, OLDEST_SERVER))}")
        if self._failure:
            log.error("%s", self._failure)


def tls_context(settings: ClusterSettings) -> ssl.SSLContext:
    """TLS with the certificates of the settings. Raises OSError if a file cannot be read."""
    context = ssl.create_default_context(cafile=settings.ca_file or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.cert_file:
        context.load_cert_chain(settings.cert_file, settings.key_file or None)
    return context
