"""Single flight: those who ask for the same while it is being made get the one that is being made."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class _Call(Generic[T]):
    def __init__(self) -> None:
        self.done = threading.Event()
        self.result: T | None = None
        self.waiting = 0


class SingleFlight(Generic[T]):
    """One call at a time; a second caller with the same key waits for the first and shares its result."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._turn = threading.Lock()
        self._flying: dict[Hashable, _Call[T]] = {}

    def waiting(self, key: Hashable) -> int:
        """How many callers wait for another's result."""
        with self._guard:
            call = self._flying.get(key)
            return 0 if call is None else call.waiting

    def do(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of ``make``, or of the call with this key that is under way."""
        with self._guard:
            call = self._flying.get(key)
            mine = call is None
            if call is None:
                call = self._flying[key] = _Call()
            else:
                call.waiting += 1
        if not mine:
            call.done.wait()
            if call.result is not None:
                return call.result
            return self.do(key, make)  # the other call failed; try it ourselves
        try:
            with self._turn:
                call.result = make()
            return call.result
        finally:
            with self._guard:
                del self._flying[key]
            call.done.set()
