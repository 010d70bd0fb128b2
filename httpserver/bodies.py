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
from typing import Generic, TypeVar

from httpserver.connections import Slot

K = TypeVar("K", bound=Hashable)
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


@dataclass(eq=False)
class _Held(Generic[K]):
    key: K
    body: Body
    made_at: float
    readers: set[Slot] = field(default_factory=set)


class HeldBodies(Generic[K]):
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
        self._held: dict[Body, _Held[K]] = {}

    def held_bytes(self) -> int:
        with self._lock:
            return sum([body.size_bytes for body in self._held])

    def recent(self, key: K, client: Slot) -> Reader | None:
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

    def send(self, key: K, body: Body, client: Slot) -> Reader:
        """Return the bytes of a body for one connection. Raises NoRoomError if the limit does not allow the body.

        The body counts as held until the returned iterator is closed, as WSGI servers do.
        """
        with self._lock:
            held = self._held.get(body)
            if held is None:
                if not self._fits(body.size_bytes) and (shared := self._recent_body(key)) is not None:
                    return self._reader(shared, client)
                self._make_room(body.size_bytes)
                held = self._held[body] = _Held(key, body, self._clock())
            return self._reader(held, client)

    def _fits(self, size_bytes: int) -> bool:
        sizes = [size_bytes, *[body.size_bytes for body in self._held]]
        return sum(sizes) - max(sizes) <= self._limit_bytes

    def _recent_body(self, key: K) -> _Held[K] | None:
        """Return the newest body with this key, unless it is too old to be shared."""
        same = [held for held in self._held.values() if held.key == key]
        newest = max(same, key=lambda held: held.made_at, default=None)
        return None if newest is None or self._clock() - newest.made_at > MAX_SHARED_SECONDS else newest

    def _make_room(self, size_bytes: int) -> None:
        """Drop bodies that only slow clients read, the longest held first, until this size fits."""
        for body, held in [*self._held.items()]:
            if self._fits(size_bytes):
                return
            if all(client.is_slow() for client in held.readers):
                for client in held.readers:
                    client.abort()
                del self._held[body]
        if not self._fits(size_bytes):
            raise NoRoomError

    def _reader(self, held: _Held[K], client: Slot) -> Reader:
        held.readers.add(client)
        return Reader(held.body, lambda: self._done(held, client))

    def _done(self, held: _Held[K], client: Slot) -> None:
        with self._lock:
            was_last = client in held.readers and len(held.readers) == 1
            held.readers.discard(client)
            if not held.readers and self._held.get(held.body) is held:
                del self._held[held.body]
            self._memory_due |= was_last and self._clock() - held.made_at > LONG_SECONDS


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
