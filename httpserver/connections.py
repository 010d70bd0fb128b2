"""Bounded connections: a server accepts a limited number of connections, each with its own thread.

The server answers a connection after its whole request has arrived. At the limit, a new connection replaces the one
that has waited longest for its request. Scrapers send their request immediately, so this affects only other clients. If
all requests have arrived, it replaces the client that has been reading its response for the longest time, if that is
longer than ``SLOW_SECONDS``. Each source address may use a share of the connections. Addresses with many connections
give way first, so that other addresses, such as that of Prometheus, are always served.

There are never more threads than connections, because systemd's TasksMax may limit them: a new connection waits until
the thread of the one that it replaces has ended.
"""

from __future__ import annotations

import contextlib
import logging
import resource
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

MAX_CONNECTIONS = 128
ADDRESS_SHARE = 0.75
"""Share of the connections on which requests of one source address are answered at a time."""
SLOW_SECONDS = 2.0
"""Time from the first byte of a response after which its client is slow and gives way to others."""
DESCRIPTOR_SHARE = 4
"""Connections may use one in this many file descriptors of the process. The rest is for the application."""
DROP_WAIT_SECONDS = 1.0
"""Wait for the thread of a dropped connection. It needs a moment, unless the processors are overloaded."""
ACCEPT_RETRY_SECONDS = 0.2
"""Pause before the next accept when the system has no resources for a connection."""

log = logging.getLogger("httpserver")


class State(Enum):
    """Where a connection is. The value of the first two is why it ends if another one replaces it."""

    WAITING = "waiting"
    """Its request is not complete."""
    ANSWERING = "slow"
    DROPPED = "dropped"
    """It ends when its thread notices."""


@dataclass(eq=False, slots=True)
class Slot:
    """One connection among the limited number."""

    connections: Connections
    connection: socket.socket
    """The socket object in use. TLS replaces the original socket object."""
    address: str = ""
    """Source address without its port; empty for a Unix socket, whose clients are not distinguished."""
    state: State = State.WAITING
    sending_since: float | None = None

    def sending(self) -> None:
        self.sending_since = self.connections.clock()

    def is_slow(self) -> bool:
        return self.sending_since is not None and self.connections.clock() - self.sending_since > SLOW_SECONDS


class Connections:
    """The open connections: waiting for their request, being answered, or dropped until their thread ends."""

    def __init__(self, limit: int = MAX_CONNECTIONS, clock: Callable[[], float] = time.monotonic) -> None:
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)  # the kernel refuses infinity
        self.limit = min(limit, max(DESCRIPTOR_SHARE, descriptors // DESCRIPTOR_SHARE))
        self.clock = clock
        self._changed = threading.Condition()
        self._slots: dict[Slot, None] = {}
        self.refused = Counter({"limit": 0, "address": 0})
        """Requests without an answer: all connections are in use, or those of their address."""
        self.ended = Counter({State.WAITING.value: 0, State.ANSWERING.value: 0})
        """Connections ended for another one."""

    def begin(self, connection: socket.socket, address: str = "") -> Slot | None:
        """Take a slot, if necessary from a waiting or slow connection. Returns None if all are being answered."""
        with self._changed:
            if self._full():
                slots = self._all(State.WAITING) or [slot for slot in self._all(State.ANSWERING) if slot.is_slow()]
                numbers = Counter([slot.address for slot in slots])
                if slots:  # the first one, if several addresses have as many
                    self.drop(max(slots, key=lambda slot: numbers[slot.address]))
            if self._all(State.DROPPED):
                self._changed.wait_for(lambda: not self._full(), DROP_WAIT_SECONDS)
            if self._full():
                self.refused["limit"] += 1
                return None
            slot = Slot(self, connection, address)
            self._slots[slot] = None
            return slot

    def request_arrived(self, slot: Slot) -> bool:
        """Record that the whole request has arrived. Returns False if its address uses all of its connections."""
        with self._changed:
            if slot.state is not State.WAITING:
                return True
            same = [other for other in self._all(State.ANSWERING) if other.address == slot.address]
            if slot.address and len(same) >= self.limit * ADDRESS_SHARE:
                slow = next((other for other in same if other.is_slow()), None)
                if slow is None:
                    self.refused["address"] += 1
                    return False
                self.drop(slow)
            slot.state = State.ANSWERING
            return True

    def drop(self, slot: Slot) -> None:
        """End a connection in favour of another one. Its own thread notices at its next operation."""
        with self._changed:
            if slot.state is not State.DROPPED:
                self.ended[slot.state.value] += 1
            slot.state = State.DROPPED
            _shut_down(slot.connection, socket.SHUT_RDWR)

    def end(self, slot: Slot) -> None:
        """Record that the connection is closed and its thread ends."""
        with self._changed:
            self._slots.pop(slot, None)
            self._changed.notify_all()

    def drain(self, seconds: float) -> bool:
        """Wait for responses in progress, but not for incomplete requests. Returns False if a response takes longer."""
        with self._changed:
            for slot in self._all(State.WAITING):
                slot.state = State.DROPPED
                _shut_down(slot.connection, socket.SHUT_RD)  # what has arrived can still be read and answered
            return self._changed.wait_for(lambda: not self._slots, seconds)

    def count(self) -> int:
        return len(self._slots)

    def _all(self, state: State) -> list[Slot]:
        """The connections in this state, the oldest first."""
        return [slot for slot in self._slots if slot.state is state]

    def _full(self) -> bool:
        return len(self._slots) >= self.limit


def _shut_down(connection: socket.socket, how: int) -> None:
    """End a connection, which its thread notices. A close would free the descriptor while the thread uses it."""
    with contextlib.suppress(OSError):  # closed already
        socket.socket.shutdown(connection, how)  # SSLSocket.shutdown would discard the TLS state


class BoundedThreads:
    """A server with a thread for each connection, limited by ``connections``."""

    def __init__(self, listener: socket.socket, connections: Connections, name: str) -> None:
        self.connections = connections
        self._listener = listener
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._accept, name=name, daemon=True)

    def serve(self, slot: Slot) -> None:
        """Serve one connection in its thread. An OSError ends it silently: the client disconnected or is too slow."""
        raise NotImplementedError

    def reject(self, connection: socket.socket) -> None:
        """Answer a connection without a slot, without waiting for the client. The default sends no answer."""

    def start(self) -> None:
        self._thread.start()

    def close(self, drain_seconds: float = 0.0) -> None:
        """Accept no more, release the address, and wait up to ``drain_seconds`` for responses in progress."""
        self._closing.set()
        _shut_down(self._listener, socket.SHUT_RDWR)  # wakes the thread
        self._thread.join()
        self._listener.close()
        self.connections.drain(drain_seconds)

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, client = self._listener.accept()
            except OSError:  # closed, or the system has no resources for a connection
                self._closing.wait(ACCEPT_RETRY_SECONDS)
                continue
            slot = self.connections.begin(connection, str(client[0]) if isinstance(client, tuple) else "")
            if slot is None:
                with _client_errors(), connection:
                    self.reject(connection)
                continue
            try:
                threading.Thread(target=self._serve_slot, args=(slot,), daemon=True).start()
            except (RuntimeError, MemoryError) as error:
                log.warning("cannot start a thread for a connection: %s", error)
                self._end(slot)

    def _serve_slot(self, slot: Slot) -> None:
        with _client_errors():
            self.serve(slot)
        self._end(slot)

    def _end(self, slot: Slot) -> None:
        self.connections.end(slot)
        slot.connection.close()


@contextlib.contextmanager
def _client_errors() -> Iterator[None]:
    """No error of one client ends the server. Any but an OSError is a bug, and logged."""
    try:
        yield
    except OSError:  # the client disconnected or is too slow
        pass
    except Exception as error:
        log.error("cannot answer a request", exc_info=error)
