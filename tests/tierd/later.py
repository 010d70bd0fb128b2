"""Calls in the background and time, both under the control of a test."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class Later(Executor):
    """Runs calls when :meth:`run` is called."""

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[..., object], tuple[object, ...]]] = []

    def submit(self, fn: Callable[..., Any], /, *arguments: Any, **_: Any) -> Future[Any]:
        self.calls.append((fn, arguments))
        return Future()

    def run(self) -> int:
        done, self.calls = self.calls, []
        for fn, arguments in done:
            fn(*arguments)
        return len(done)


class Time:
    """A clock that a test sets."""

    time = 0.0

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> bool:
        raise AssertionError("nobody waits")
