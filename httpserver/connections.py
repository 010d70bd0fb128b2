"""Bounded connections: a server accepts a limited number of connections, each with its own thread.

The server answers a connection after its whole request has arrived. At the limit, a new connection replaces the one
that has waited longest for its request. Scrapers send their request immediately, so this affects only other clients. If
all requests have arrived, it replaces the client that has been reading its response for the longest time, if that is
longer than ``SLOW_SECONDS``. Each source address may use a share of the connections. Addresses with many connections
give way first, so that other addresses, such as that of Prometheus, are always served.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import resource
import socket
import socketserver
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

MAX_CONNECTIONS = 128
ADDRESS_SHARE = 0.75
"""Share of the connections that requests of one source address may use."""
SLOW_SECONDS = 2.0
"""Time from the first byte of a response after which its client is slow and gives way to others."""
REFUSED_REASONS = ("limit", "address")
"""Why a request got no answer: all connections are in use, or those of its address."""
DROPPED_REASONS = ("waiting", "slow")
"""Why a connection was ended for another one: its request was not complete, or its client read slowly."""
DESCRIPTOR_SHARE = 4
"""Connections may use one in this many file descriptors of the process. The rest is for the application."""
NO_RESOURCES_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
ACCEPT_RETRY_SECONDS = 0.2
"""Pause before the next accept when the system has no resources for a connection."""
POLL_INTERVAL_SECONDS = 86400.0

log = logging.getLogger("httpserver")


@dataclass(eq=False, slots=True)
class Slot:
    """One connection among the limited number."""

    connection: socket.socket
    """The socket object in use. TLS replaces the original socket object."""
    address: str = ""
    """Source address without its port; empty if it has none."""
    clock: Callable[[], float] = time.monotonic
    on_abort: Callable[[], None] = lambda: None
    sending_since: float = float("inf")

    def sending(self) -> None:
        self.sending_since = self.clock()

    def is_slow(self) -> bool:
        return self.clock() - self.sending_since > SLOW_SECONDS

    def abort(self) -> None:
        """End the connection from another thread. Its own thread notices at its next operation."""
        self.on_abort()
        _shut_down(self.connection, socket.SHUT_RDWR)


class Connections:
    """The open connections: waiting for their request, being answered, or dropped until their thread ends."""

    def __init__(
        self,
        limit: int = MAX_CONNECTIONS,
        drop_wait_seconds: float = 0.0,
        limit_per_address: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Threads of dropped connections count towards the limit only if ``drop_wait_seconds`` is not 0.

        In that case :meth:`begin` waits up to this time for the thread of a dropped connection. Use it if the number of
        threads is limited, for example by systemd's TasksMax. ``limit_per_address`` limits the requests of one source
        address that are answered at a time; the default is no such limit.
        """
        self.limit = limit
        self.limit_per_address = limit if limit_per_address is None else limit_per_address
        self._drop_wait_seconds = drop_wait_seconds
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: dict[Slot, None] = {}
        self._answering: dict[Slot, None] = {}
        self._dropped: set[Slot] = set()
        self.refused = Counter(dict.fromkeys(REFUSED_REASONS, 0))
        self.ended = Counter(dict.fromkeys(DROPPED_REASONS, 0))

    def begin(self, connection: socket.socket, address: str = "") -> Slot | None:
        """Take a slot, if necessary from a waiting or slow connection. Returns None if all are being answered."""
        with self._changed:
            if self._full() and self._waiting:
                self._drop(_first_of_busiest(self._waiting), socket.SHUT_RDWR, "waiting")
            elif self._full() and (slow := [slot for slot in self._answering if slot.is_slow()]):
                self._drop(_first_of_busiest(slow), socket.SHUT_RDWR, "slow")
            if self._dropped and self._drop_wait_seconds:
                self._changed.wait_for(lambda: not self._full(), self._drop_wait_seconds)
            if self._full():
                self.refused["limit"] += 1
                return None
            slot = Slot(connection, address, self._clock, self._count_slow)
            self._waiting[slot] = None
            return slot

    def replace(self, slot: Slot, connection: socket.socket) -> None:
        """Use another socket object over the same connection, as TLS does."""
        with self._changed:
            slot.connection = connection
            if slot in self._dropped:  # dropped while neither object had the descriptor
                _shut_down(connection, socket.SHUT_RDWR)

    def request_arrived(self, slot: Slot) -> bool:
        """Record that the whole request has arrived. Returns False if its address uses all of its connections."""
        with self._changed:
            if slot not in self._waiting:
                return True
            same = [other for other in self._answering if other.address == slot.address]
            if len(same) >= self.limit_per_address:
                slow = next((other for other in same if other.is_slow()), None)
                if slow is None:
                    self.refused["address"] += 1
                    return False
                self._drop(slow, socket.SHUT_RDWR, "slow")
            del self._waiting[slot]
            self._answering[slot] = None
            return True

    def _count_slow(self) -> None:
        with self._changed:
            self.ended["slow"] += 1

    def end(self, slot: Slot) -> None:
        """Record that the connection is closed and its thread ends."""
        with self._changed:
            self._waiting.pop(slot, None)
            self._answering.pop(slot, None)
            self._dropped.discard(slot)
            self._changed.notify_all()

    def drain(self, seconds: float) -> bool:
        """Wait for responses in progress, but not for incomplete requests. Returns False if a response takes longer."""
        with self._changed:
            for slot in [*self._waiting]:
                self._drop(slot, socket.SHUT_RD, "")  # a request that has arrived can still be read and answered
            return self._changed.wait_for(lambda: not (self._answering or self._dropped), seconds)

    def count(self) -> int:
        with self._changed:
            return len(self._waiting) + len(self._answering) + len(self._dropped)

    def _full(self) -> bool:
        dropped = len(self._dropped) if self._drop_wait_seconds else 0
        return len(self._waiting) + len(self._answering) + dropped >= self.limit

    def _drop(self, slot: Slot, how: int, reason: str) -> None:
        """End the input, which the thread notices. A close here would free the descriptor while the thread uses it."""
        self._waiting.pop(slot, None)
        self._answering.pop(slot, None)
        self._dropped.add(slot)
        if reason:
            self.ended[reason] += 1
        _shut_down(slot.connection, how)


def default_connections() -> Connections:
    """Connections with a limit: MAX_CONNECTIONS, or less if RLIMIT_NOFILE is low. A source address may use a share."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)  # the kernel refuses infinity
    limit = max(DESCRIPTOR_SHARE, min(MAX_CONNECTIONS, soft // DESCRIPTOR_SHARE))
    return Connections(limit, limit_per_address=int(limit * ADDRESS_SHARE))


def _first_of_busiest(slots: Iterable[Slot]) -> Slot:
    slots = [*slots]
    numbers = Counter([slot.address for slot in slots])
    return max(slots, key=lambda slot: numbers[slot.address])  # the first one, if several have as many


def _shut_down(connection: socket.socket, how: int) -> None:
    with contextlib.suppress(OSError):  # closed already
        socket.socket.shutdown(connection, how)  # SSLSocket.shutdown would discard the TLS state


class BoundedThreads(socketserver.TCPServer):
    """A server with a thread per connection, limited by ``connections``. It must be the first base class."""

    connections: Connections

    def serve(self, slot: Slot) -> None:
        """Serve one connection in its thread. An OSError ends it silently: the client disconnected or is too slow."""
        raise NotImplementedError

    def reject(self, connection: socket.socket) -> None:
        """Answer a connection without a slot, without waiting for the client. The default sends no answer."""

    def serve_forever(self, poll_interval: float = POLL_INTERVAL_SECONDS) -> None:
        """Accept until :meth:`shutdown`, without periodic wakeups."""
        super().serve_forever(poll_interval)

    def shutdown(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes the loop
        super().shutdown()

    def get_request(self) -> tuple[Any, Any]:
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in NO_RESOURCES_ERRORS:
                threading.Event().wait(ACCEPT_RETRY_SECONDS)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        slot = self.connections.begin(request, _address_of(client_address))
        if slot is None:
            with contextlib.suppress(OSError):
                self.reject(request)
            self.shutdown_request(request)
            return
        try:
            threading.Thread(target=self._serve_slot, args=(slot,), daemon=True).start()
        except (RuntimeError, MemoryError) as error:
            log.warning("cannot start a thread for a connection: %s", error)
            self.connections.end(slot)
            self.shutdown_request(request)

    def _serve_slot(self, slot: Slot) -> None:
        try:
            self.serve(slot)
        except OSError:  # the client disconnected or is too slow
            pass
        except Exception as error:
            log.error("cannot serve a connection", exc_info=error)
        finally:
            self.shutdown_request(slot.connection)
            self.connections.end(slot)


def _address_of(client: object) -> str:
    """Return the source address without its port; empty for a Unix socket, whose clients are not distinguished."""
    return str(client[0]) if isinstance(client, tuple) and client else ""
