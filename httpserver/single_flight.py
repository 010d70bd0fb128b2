"""Single flight: concurrent callers with the same key share one call and its result.

Keys that are apart, for example disjoint sets of collectors, have their calls side by side. Any other call waits for
the calls in progress, but no longer than its own deadline.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class WaitTimeoutError(Exception):
    """The deadline passed while another caller's call was in progress."""


class _Call(Generic[T]):
    def __init__(self) -> None:
        self.done = False
        self.result: T | None = None
        self.waiting = 0


def never_apart(_: Hashable, __: Hashable) -> bool:
    """No two keys are apart: one call at a time."""
    return False


class SingleFlight(Generic[K, T]):
    """Runs one call at a time among those whose keys are not apart. Callers with the same key share a result."""

    def __init__(
        self, apart: Callable[[K, K], bool] = never_apart, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``apart`` returns whether the calls of two keys may run side by side."""
        self._apart = apart
        self._clock = clock
        self._changed = threading.Condition()
        self._calls: dict[K, _Call[T]] = {}

    def waiting(self, key: K) -> int:
        """How many callers wait for the result of a call in progress."""
        with self._changed:
            call = self._calls.get(key)
            return 0 if call is None else call.waiting

    def do(self, key: K, make: Callable[[float], T], seconds: float) -> T:
        """The result of ``make``, which receives the seconds that are left, or that of a call with this key.

        Raises WaitTimeoutError if other calls take all of these seconds.
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
        """The result of another caller's call. None: it failed, and this caller tries by itself."""
        call.waiting += 1
        self._wait(lambda: call.done, over)
        return call.result

    def _is_free(self, key: K) -> bool:
        return all(self._apart(key, other) for other in self._calls)

    def _wait(self, until: Callable[[], bool], over: float) -> None:
        if not self._changed.wait_for(until, max(over - self._clock(), 0.0)):
            raise WaitTimeoutError
