"""The connections that are open: bounded, and none able to keep others out by saying nothing.

Whoever connects has a thread until it is answered. When all places are taken, the connection that has been silent
longest gives up its place: a scraper sends its request at once, and only those who do not are still silent.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import threading

MOST = 128
PART = 4
"""Of the descriptors this process may have, one in so many may be a connection: the others are for parameters."""


def most_here() -> int:
    """Places on this node: fewer than usual where the process may have few descriptors open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(PART, min(MOST, soft // PART))


class Place:
    """What one connection holds."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        """The socket object that is in use; TLS puts another over the first."""


class Connections:
    """Each is silent (its request has not arrived), then being answered; or cut off, until its thread notices."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._silent: dict[Place, None] = {}
        self._answered: set[Place] = set()
        self._cut: set[Place] = set()

    def begin(self, connection: socket.socket) -> Place | None:
        """A place for a connection; None when every place is taken by one that is being answered."""
        with self._changed:
            if len(self._silent) + len(self._answered) >= self._most:
                if not self._silent:
                    return None
                self._cut_off(next(iter(self._silent)), socket.SHUT_RDWR)
            place = Place(connection)
            self._silent[place] = None
            return place

    def heard(self, place: Place) -> None:
        """Its request has arrived."""
        with self._changed:
            if place in self._silent:
                del self._silent[place]
                self._answered.add(place)

    def end(self, place: Place) -> None:
        """It is over."""
        with self._changed:
            self._silent.pop(place, None)
            self._answered.discard(place)
            self._cut.discard(place)
            self._changed.notify_all()

    def finish(self, patience_seconds: float) -> bool:
        """Wait for the answers that are due, not for requests that have not arrived; False when some took too long."""
        with self._changed:
            for place in [*self._silent]:
                self._cut_off(place, socket.SHUT_RD)  # what has arrived can still be read, and is answered
            return self._changed.wait_for(lambda: not (self._answered or self._cut), patience_seconds)

    def count(self) -> int:
        """How many are open."""
        with self._changed:
            return len(self._silent) + len(self._answered) + len(self._cut)

    def _cut_off(self, place: Place, how: int) -> None:
        """Its thread sees the end of input; closing the socket here would pull it out from under that thread."""
        del self._silent[place]
        self._cut.add(place)
        with contextlib.suppress(OSError):  # gone already
            socket.socket.shutdown(place.connection, how)  # a TLS socket's own would forget that it is one
