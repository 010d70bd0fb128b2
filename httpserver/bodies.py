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

from httpserver.connections import Slot

MAX_HELD_BYTES = 64 << 20
MAX_SHARED_SECONDS = 5.0
"""Age up to which a request takes over the body of an earlier one, if the limit does not allow another body."""
LONG_SECONDS = 2.0
"""Time after which memory that a body took is worth returning to the system."""
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
        """``on_released`` is called at the first request after a body held longer than ``LONG_SECONDS`` was released.

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

    def recent(self, key: Hashable, client: Slot) -> Reader | None:
        """Call this before making a body. If there is no room for one, returns the bytes of a recent body instead.

        Raises NoRoomError if there is no room, no recent body with this key, and no slow client to replace.
        """
        with self._lock:
            memory_due, self._memory_due = self._memory_due, False
        if memory_due:
            self._on_released()
        with self._lock:
            if self._fits(1):
                return None
            shared = self._recent_body(key)
            if shared is not None:
                return self._reader(shared, client)
            self._make_room(1)
            return None

    def send(self, key: Hashable, body: Body, client: Slot) -> Reader:
        """Return the bytes of a body for one connection. Raises NoRoomError if the limit does not allow the body.

        The body counts as held until the returned iterator is closed, as WSGI servers do.
        """
        with self._lock:
            if body not in self._held:
                if not self._fits(body.size_bytes) and (shared := self._recent_body(key)) is not None:
                    return self._reader(shared, client)
                self._make_room(body.size_bytes)
                body.key, body.sent_at, self._held[body] = key, self._clock(), None
            return self._reader(body, client)

    def _fits(self, size_bytes: int) -> bool:
        sizes = [size_bytes, *[body.size_bytes for body in self._held]]
        return sum(sizes) - max(sizes) <= self._limit_bytes

    def _recent_body(self, key: Hashable) -> Body | None:
        """Return the newest body with this key, unless it is too old to be shared."""
        same = [body for body in self._held if body.key == key]
        newest = max(same, key=lambda body: body.sent_at, default=None)
        return None if newest is None or self._clock() - newest.sent_at > MAX_SHARED_SECONDS else newest

    def _make_room(self, size_bytes: int) -> None:
        """Drop bodies that only slow clients read, the longest held first, until this size fits."""
        for body in [*self._held]:
            if self._fits(size_bytes):
                return
            if all(client.is_slow() for client in body.readers):
                for client in body.readers:
                    client.abort()
                del self._held[body]
        if not self._fits(size_bytes):
            self.refused += 1
            raise NoRoomError

    def _reader(self, body: Body, client: Slot) -> Reader:
        body.readers.add(client)
        return Reader(body, lambda: self._done(body, client))

    def _done(self, body: Body, client: Slot) -> None:
        with self._lock:
            was_last = body.readers == {client}
            body.readers.discard(client)
            if not body.readers:
                self._held.pop(body, None)
            self._memory_due |= was_last and self._clock() - body.sent_at > LONG_SECONDS


class Reader(Iterator[bytes]):
    """The bytes for one connection. The connection must close it, which a generator that never ran would not notice."""

    def __init__(self, body: Body, done: Callable[[], None]) -> None:
        self.size_bytes = body.size_bytes
        self._pieces = iter(body.pieces())
        self._done = done

    def __next__(self) -> bytes:
        return next(self._pieces)

    def close(self) -> None:
        self._pieces = iter(())
        done, self._done = self._done, lambda: None
        done()
