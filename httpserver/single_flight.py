"""Single flight: concurrent callers with the same key share one call and its result.

Calls with independent keys, for example disjoint sets of collectors, run in parallel. Any other call waits for the
calls in progress, up to its own deadline.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class WaitTimeoutError(Exception):
    """The deadline passed while a call of another caller was in progress."""


class _Call(Generic[T]):
    def __init__(self) -> None:
        self.done = False
        self.result: T | None = None
        self.waiting = 0


def never_apart(_: Hashable, __: Hashable) -> bool:
    """Treat all keys as dependent, so that one call runs at a time."""
    return False


class SingleFlight(Generic[K, T]):
    """Runs one call at a time, except for independent keys. Callers with the same key share a result."""

    def __init__(
        self, apart: Callable[[K, K], bool] = never_apart, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``apart`` returns whether two keys are independent, so that their calls may run in parallel."""
        self._apart = apart
        self._clock = clock
        self._changed = threading.Condition()
        self._calls: dict[K, _Call[T]] = {}

    def waiting(self, key: K) -> int:
        """Return the number of callers that wait for the result of a call in progress."""
        with self._changed:
            call = self._calls.get(key)
            return 0 if call is None else call.waiting

    def do(self, key: K, make: Callable[[float], T], seconds: float) -> T:
        """Return the result of ``make``, which receives the remaining seconds, or of a call in progress with this key.

        Raises WaitTimeoutError if other calls use up the time.
        """
        over = self._clock() + seconds
        while True:
            with self._changed:
                self._wait(lambda: key in self._calls or self._is_free(key), over)
                call = self._calls.get(key)
                if call is None:
                    own = self._calls[key] = _Call()
                    break
                if (shared := self._shared(call, over)) is not None:
                    return shared
        try:
            own.result = make(max(over - self._clock(), 0.0))
            return own.result
        finally:
            with self._changed:
                del self._calls[key]
                own.done = True
                self._changed.notify_all()

    def _shared(self, call: _Call[T], over: float) -> T | None:
        """Return the result of another caller's call; None if it failed, and this caller must make its own call."""
        call.waiting += 1
        self._wait(lambda: call.done, over)
        return call.result

    def _is_free(self, key: K) -> bool:
        return all(self._apart(key, other) for other in self._calls)

    def _wait(self, until: Callable[[], bool], over: float) -> None:
        if not self._changed.wait_for(until, max(over - self._clock(), 0.0)):
            raise WaitTimeoutError
