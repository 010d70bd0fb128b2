"""Response bodies that several connections send at the same time, and a limit on the bytes held for all of them.

A client that does not read its response keeps the body in memory. A body is therefore shared by all connections that
send the same bytes. Where the limit is reached, a new request first takes over a recent body, then replaces a slow
client, and is refused only if neither is possible. The largest body does not count, so that a body that alone exceeds
the limit is allowed, and leaves room for the smaller ones of other clients.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from httpserver.connections import SLOW_SECONDS, Slot

MAX_HELD_BYTES = 64 << 20
MAX_SHARED_SECONDS = 5.0
"""Age up to which a request takes over the body of an earlier one, if the limit does not allow another body."""
RETRY_SECONDS = 5
"""Value of the header ``Retry-After`` of a refused request."""


class NoRoomError(Exception):
    """The bodies of other connections use up the limit, and none of these connections is slow."""


@dataclass(eq=False)
class Body:
    """A response body, which any number of connections may send."""

    pieces: Callable[[], Iterable[bytes]]
    """Yields the bytes from the beginning. Called once for each connection."""
    size_bytes: int
    key: Hashable = None
    sent_at: float = 0.0
    """Time of the first connection that got it."""
    readers: set[Slot] = field(default_factory=set)


class HeldBodies:
    """The bodies that connections send now."""

    def __init__(
        self,
        limit_bytes: int = MAX_HELD_BYTES,
        clock: Callable[[], float] = time.monotonic,
        on_released: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_released`` is called at the first request after a body held longer than ``SLOW_SECONDS`` was released.

        Not at once, because the thread that releases the body still refers to it.
        """
        self._memory_due = False
        self._limit_bytes = limit_bytes
        self._clock = clock
        self._on_released = on_released
        self._lock = threading.Lock()
        self._held: dict[Body, None] = {}
        self.refused = 0
        """Requests without an answer because of the limit."""

    def held_bytes(self) -> int:
        with self._lock:
            return sum([body.size_bytes for body in self._held])

    def send(self, key: Hashable, make: Callable[[], Body], client: Slot) -> tuple[int, Iterator[bytes]]:
        """Return the size and the bytes of a body for one connection. Without room for a new body, it is a recent one.

        Raises NoRoomError if there is no room, no recent body with this key, and no slow client to replace. The body
        counts as held until the iterator is closed, as WSGI servers do.
        """
        if self._memory_due:
            self._memory_due = False
            self._on_released()
        with self._lock:
            body = self._recent_if_full(key, 1)
        body = body or make()
        with self._lock:
            if body not in self._held:
                body = self._recent_if_full(key, body.size_bytes) or body
            if body not in self._held:
                body.key, body.sent_at, self._held[body] = key, self._clock(), None
            body.readers.add(client)
        reader = self._reader(body, client)
        next(reader)
        return body.size_bytes, reader

    def _recent_if_full(self, key: Hashable, size_bytes: int) -> Body | None:
        """Return a recent body with this key if there is no room for a new one. Without any, slow clients give way."""
        if self._fits(size_bytes):
            return None
        now = self._clock()
        recent = [body for body in self._held if body.key == key and now - body.sent_at <= MAX_SHARED_SECONDS]
        if recent:
            return recent[-1]
        for body in [*self._held]:  # the longest held first
            if all(client.is_slow() for client in body.readers):
                for client in body.readers:
                    client.connections.drop(client)
                del self._held[body]
                if self._fits(size_bytes):
                    return None
        self.refused += 1
        raise NoRoomError

    def _fits(self, size_bytes: int) -> bool:
        sizes = [size_bytes, *[body.size_bytes for body in self._held]]
        return sum(sizes) - max(sizes) <= self._limit_bytes

    def _reader(self, body: Body, client: Slot) -> Iterator[bytes]:
        """Yield the bytes, after an empty first piece: the end of a generator is noticed only after its beginning."""
        try:
            yield b""
            yield from body.pieces()
        finally:
            with self._lock:
                body.readers.discard(client)
                if not body.readers:
                    self._held.pop(body, None)
                    self._memory_due |= self._clock() - body.sent_at > SLOW_SECONDS
