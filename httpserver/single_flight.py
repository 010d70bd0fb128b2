"""Single flight: concurrent callers with the same key share one call and its result.

Calls whose keys have nothing in common run side by side. A call that overlaps another one waits for its turn, but no
longer than its own deadline.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from exporter import clock as clocks
from exporter.clock import Clock

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class WaitTimeoutError(Exception):
    """Somebody else's call has taken all the time there was."""


class _Call(Generic[T]):
    def __init__(self) -> None:
        self.done = False
        self.result: T | None = None
        self.waiting = 0


def never_apart(_: Hashable, __: Hashable) -> bool:
    """No two keys are apart."""
    return False


class SingleFlight(Generic[K, T]):
    """One call at a time of those that have something in common; one with the same key shares its result."""

    def __init__(self, apart: Callable[[K, K], bool] = never_apart, clock: Clock = clocks.monotonic) -> None:
        """``apart`` says of two keys whether their calls may go on side by side."""
        self._apart = apart
        self._clock = clock
        self._changed = threading.Condition()
        self._flying: dict[K, _Call[T]] = {}

    def waiting(self, key: K) -> int:
        """How many callers wait for another's result."""
        with self._changed:
            call = self._flying.get(key)
            return 0 if call is None else call.waiting

    def do(self, key: K, make: Callable[[float], T], seconds: float) -> T:
        """The result of ``make``, which is given the seconds that are left, or of the call with this key under way.

        Raises WaitedError when others have taken all of these seconds.
        """
        over = self._clock() + seconds
        while True:
            with self._changed:
                self._wait(lambda: key in self._flying or self._is_free(key), over)
                call = self._flying.get(key)
                if call is None:
                    mine = self._flying[key] = _Call()
                    break
                if (shared := self._shared(call, over)) is not None:
                    return shared
        try:
            mine.result = make(max(over - self._clock(), 0.0))
            return mine.result
        finally:
            with self._changed:
                del self._flying[key]
                mine.done = True
                self._changed.notify_all()

    def _shared(self, call: _Call[T], over: float) -> T | None:
        """The result of another's call; None where that failed, and we try it ourselves."""
        call.waiting += 1
        self._wait(lambda: call.done, over)
        return call.result

    def _is_free(self, key: K) -> bool:
        return all(self._apart(key, other) for other in self._flying)

    def _wait(self, until: Callable[[], bool], over: float) -> None:
        if not self._changed.wait_for(until, max(over - self._clock(), 0.0)):
            raise WaitTimeoutError
