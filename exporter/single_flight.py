"""Single flight: concurrent scrapes of the same collectors share one pass and its result.

Scrapes of disjoint sets of collectors run in parallel. Any other scrape waits for the passes in progress, up to its own
deadline. Those of the address with the fewest come first: one address with many keeps no other waiting for all of them.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Generic, TypeVar

from exporter import clock as clocks
from exporter.clock import Clock

T = TypeVar("T")


class WaitTimeoutError(Exception):
    """The deadline passed while a pass of another caller was in progress."""


class SingleFlight(Generic[T]):
    """Runs one pass at a time, except for disjoint sets of collectors."""

    def __init__(self, clock: Clock = clocks.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._calls: dict[frozenset[str], list[T]] = {}  # lists that get the results
        self._waiting: list[tuple[frozenset[str], str]] = []

    def do(self, names: frozenset[str], make: Callable[[float], T], seconds: float, address: str = "") -> T:
        """Return the result of ``make``, which receives the remaining seconds, or of a pass in progress of these names.
        Raises WaitTimeoutError if other passes use up the time. ``address`` is that of the client.
        """
        over = self._clock() + seconds
        while True:
            with self._changed:
                self._waiting.append((names, address))
                try:
                    self._wait(lambda: names in self._calls or self._is_next(names, address), over)
                finally:
                    self._waiting.remove((names, address))
                    self._changed.notify_all()
                if (call := self._calls.get(names)) is None:
                    own = self._calls[names] = []
                    break
                self._wait(lambda: self._calls.get(names) is not call, over)
                if call:  # else it failed, and this caller makes its own
                    return call[0]
        try:
            own.append(make(max(over - self._clock(), 0.0)))
            return own[0]
        finally:
            with self._changed:
                del self._calls[names]
                self._changed.notify_all()

    def _is_next(self, names: frozenset[str], address: str) -> bool:
        free = [turn for turn in self._waiting if all(map(turn[0].isdisjoint, self._calls))]
        scrapes = Counter(other for _, other in free)
        return (names, address) in free and all(
            names.isdisjoint(others) for others, other in free if scrapes[other] < scrapes[address])

    def _wait(self, until: Callable[[], bool], over: float) -> None:
        if not self._changed.wait_for(until, max(over - self._clock(), 0.0)):
            raise WaitTimeoutError
