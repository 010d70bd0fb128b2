"""Bounds the number of open connections; a silent connection keeps nobody out.

Each connection has a thread until its request is answered. When all slots are taken, the connection that has been
silent longest loses its slot: scrapers send their request at once, and only other clients stay silent.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import threading

MAX_CONNECTIONS = 128
DESCRIPTOR_SHARE = 4
"""Of the descriptors this process may have, one in so many may be a connection: the others are for parameters."""


def connection_limit() -> int:
    """Places on this node: fewer than usual where the process may have few descriptors open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        MAX_CONNECTIONS
        if soft == resource.RLIM_INFINITY
        else max(DESCRIPTOR_SHARE, min(MAX_CONNECTIONS, soft // DESCRIPTOR_SHARE))
    )


class Slot:
    """What one connection holds."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        """The socket object that is in use; TLS puts another over the first."""


class Connections:
    """Each is silent (its request has not arrived), then being answered; or cut off, until its thread notices."""

    def __init__(self, most: int = MAX_CONNECTIONS) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._silent: dict[Slot, None] = {}
        self._answered: set[Slot] = set()
        self._cut: set[Slot] = set()

    def begin(self, connection: socket.socket) -> Slot | None:
        """A place for a connection; None when every place is taken by one that is being answered."""
        with self._changed:
            if len(self._silent) + len(self._answered) >= self._most:
                if not self._silent:
                    return None
                self._cut_off(next(iter(self._silent)), socket.SHUT_RDWR)
            slot = Slot(connection)
            self._silent[slot] = None
            return slot

    def heard(self, slot: Slot) -> None:
        """Its request has arrived."""
        with self._changed:
            if slot in self._silent:
                del self._silent[slot]
                self._answered.add(slot)

    def end(self, slot: Slot) -> None:
        """It is over."""
        with self._changed:
            self._silent.pop(slot, None)
            self._answered.discard(slot)
            self._cut.discard(slot)
            self._changed.notify_all()

    def finish(self, patience_seconds: float) -> bool:
        """Wait for the answers that are due, not for requests that have not arrived; False when some took too long."""
        with self._changed:
            for slot in [*self._silent]:
                self._cut_off(slot, socket.SHUT_RD)  # what has arrived can still be read, and is answered
            return self._changed.wait_for(lambda: not (self._answered or self._cut), patience_seconds)

    def count(self) -> int:
        """How many are open."""
        with self._changed:
            return len(self._silent) + len(self._answered) + len(self._cut)

    def _cut_off(self, slot: Slot, how: int) -> None:
        """Its thread sees the end of input; closing the socket here would pull it out from under that thread."""
        del self._silent[slot]
        self._cut.add(slot)
        with contextlib.suppress(OSError):  # gone already
            socket.socket.shutdown(slot.connection, how)  # a TLS socket's own would forget that it is one
