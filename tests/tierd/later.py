"""Calls in the background, calls that fail, and time, all under the control of a test."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from tests.tierd.sense.clocks import SettableClock


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


def raising(error: BaseException) -> Callable[..., Any]:
    """A call that fails."""
    def call(*_: Any, **__: Any) -> Any:
        raise error

    return call


class PassingClock(SettableClock):
    """Waiting passes the time."""

    def wait(self, seconds: float) -> bool:
        self.at += seconds
        return False
