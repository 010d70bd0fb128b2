"""Extent locks of one object: which client may cache which bytes, and what a conflict costs.

The first client gets a lock on the whole object. For a later client, the server calls back the conflicting locks: each
holder finishes its I/O, writes the dirty pages below the lock, and releases it. Only then does the new client get its
lock, which covers the largest range that no other client holds or waits for. Requests for one object queue, so the
parallelism of a file with many writers is its number of objects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simulator.engine import Completion, Steps, gather

EVERYTHING = 1 << 63
LOCK_SECONDS = 0.00015
"""Time of a server to search the locks of an object and answer."""


@dataclass(eq=False, slots=True)
class Lock:
    """One granted lock."""

    client: int
    start: int
    end: int
    write: bool
    flush: Callable[[], Completion]
    """Makes the holder write the dirty pages below the lock."""
    using: int = 0
    idle: Completion | None = None

    def covers(self, start: int, end: int, write: bool) -> bool:
        return self.start <= start and self.end >= end and (self.write or not write)

    def conflicts(self, start: int, end: int, write: bool) -> bool:
        return self.start < end and self.end > start and (self.write or write)

    def put(self, _done: Completion) -> None:
        self.using -= 1
        if not self.using and self.idle is not None:
            self.idle.succeed()
            self.idle = None

    def released(self) -> Completion:
        """Call the lock back. Completes when no I/O uses it and no page below it is dirty."""
        if not self.using:
            return self.flush()
        self.idle = self.idle or Completion()
        return self.idle


class ExtentLocks:
    """All locks of one object."""

    __slots__ = ("_last", "_waiting", "callbacks", "held")

    def __init__(self) -> None:
        self.held: list[Lock] = []
        self.callbacks = 0
        self._waiting: list[tuple[int, int, int]] = []
        self._last: Completion | None = None

    def known(self, client: int, start: int, end: int, write: bool, flush: Callable[[], Completion]) -> Lock | None:
        """Lock that the client holds, or gets as the first user of the object; None when it must request one."""
        if not self.held and self._last is None:
            lock = Lock(client, 0, EVERYTHING, write, flush)
            self.held.append(lock)
            return lock
        for lock in self.held:
            # not one that is called back: new I/O would keep it for ever
            if lock.client == client and lock.covers(start, end, write) and lock.idle is None:
                return lock
        return None

    def ask(
        self, client: int, start: int, end: int, write: bool, flush: Callable[[], Completion], network_seconds: float
    ) -> Steps[Lock]:  # fmt: skip
        """Request a lock from the server, in order of arrival. Conflicting locks are called back first."""
        turn, before = Completion(), self._last
        self._last = turn
        waiting = client, start, end
        self._waiting.append(waiting)
        yield network_seconds
        if before is not None:
            yield before
        try:
            lock = self.known(client, start, end, write, flush)  # the one before may have got a lock that covers this
            if lock is None:
                yield from self._call_back(client, start, end, write, network_seconds)
                low, high = self._room(client, start, end, write)
                lock = Lock(client, low, high, write, flush)
                self.held.append(lock)
            lock.using += 1
            yield network_seconds + LOCK_SECONDS
        finally:
            self._waiting.remove(waiting)
            if self._last is turn:
                self._last = None
            turn.succeed()
        return lock

    def _call_back(self, client: int, start: int, end: int, write: bool, network_seconds: float) -> Steps[None]:
        # until none is left: others may get locks while callbacks are answered
        while in_the_way := [lock for lock in self.held if lock.client != client and lock.conflicts(start, end, write)]:
            self.callbacks += len(in_the_way)
            yield network_seconds
            yield gather(lock.released() for lock in in_the_way)
            yield network_seconds
            for lock in in_the_way:
                if not lock.using and lock in self.held:  # it may be in use again
                    self.held.remove(lock)
        self.held = [lock for lock in self.held if lock.client != client or lock.using or lock.write is write]

    def _room(self, client: int, start: int, end: int, write: bool) -> tuple[int, int]:
        """Largest range around an access that no other client holds or waits for."""
        others = [(lock.start, lock.end) for lock in self.held if lock.client != client and (lock.write or write)]
        # the room must not reach what others wait for: they would call it back at once
        others += [(low, high) for who, low, high in self._waiting if who != client]
        low = max([0, *(stop for _, stop in others if stop <= start)])
        high = min([EVERYTHING, *(begin for begin, _ in others if begin >= end)])
        return low, high
