"""Single flight: concurrent scrapes of the same collectors share one pass and its result.

Scrapes of disjoint sets of collectors run in parallel. Any other scrape waits for the passes in progress, up to its own
deadline.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from exporter import clock as clocks
from exporter.clock import Clock

T = TypeVar("T")


class WaitTimeoutError(Exception):
    """The deadline passed while a pass of another caller was in progress."""


class _Call(Generic[T]):
    def __init__(self) -> None:
        self.done = False
        self.result: T | None = None


class SingleFlight(Generic[T]):
    """Runs one pass at a time, except for disjoint sets of collectors."""

    def __init__(self, clock: Clock = clocks.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._calls: dict[frozenset[str], _Call[T]] = {}

    def do(self, names: frozenset[str], make: Callable[[float], T], seconds: float) -> T:
        """Return the result of ``make``, which receives the remaining seconds, or of a pass in progress of these names.

        Raises WaitTimeoutError if other passes use up the time.
        """
        over = self._clock() + seconds
        while True:
            with self._changed:
                self._wait(lambda: names in self._calls or all(map(names.isdisjoint, self._calls)), over)
                call = self._calls.get(names)
                if call is None:
                    own = self._calls[names] = _Call()
                    break
                if (shared := self._shared(call, over)) is not None:  # None: it failed, and this caller makes its own
                    return shared
        try:
            own.result = make(max(over - self._clock(), 0.0))
            return own.result
        finally:
            with self._changed:
                del self._calls[names]
                own.done = True
                self._changed.notify_all()

    def _shared(self, call: _Call[T], over: float) -> T | None:
        self._wait(lambda: call.done, over)
        return call.result

    def _wait(self, until: Callable[[], bool], over: float) -> None:
        if not self._changed.wait_for(until, max(over - self._clock(), 0.0)):
            raise WaitTimeoutError
