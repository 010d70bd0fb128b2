"""A thread of one collector, so that a parameter that hangs holds up that collector and nothing else.

Reading some parameters asks a server, and a server may not answer. The collector that waits for it misses its deadline
and is left alone until it comes back; no second thread is ever started for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from exporter import clock
from exporter.clock import Wait

T = TypeVar("T")


class BusyError(Exception):
    """The previous call has not come back yet."""


class LateError(Exception):
    """The call did not come back in time."""


class Lane(Generic[T]):
    """Runs one call at a time and waits for it no longer than it is told."""

    def __init__(self, name: str, wait: Wait = clock.wait) -> None:
        self._name = name
        self._wait = wait
        self._running: _Call[T] | None = None

    def start(self, call: Callable[[], T]) -> None:
        """Begin; ``BusyError`` when an earlier call is still out."""
        if self._running is not None and not self._running.done.is_set():
            raise BusyError
        self._running = _Call(call)
        threading.Thread(target=self._running.run, name=self._name, daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Whether the call came back, within this time."""
        return self._running is None or self._wait(self._running.done, max(0.0, seconds))

    def result(self, seconds: float) -> T:
        """The call's result; its exception; or ``LateError`` when it takes longer."""
        running = self._running
        assert running is not None, "started"
        if not self._wait(running.done, max(0.0, seconds)):
            raise LateError
        self._running = None
        return running.outcome()

    def run(self, call: Callable[[], T], seconds: float) -> T:
        """Start it and wait for its result."""
        self.start(call)
        return self.result(seconds)


class _Call(Generic[T]):
    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._result: list[T] = []
        self._error: BaseException | None = None
        self.done = threading.Event()

    def run(self) -> None:
        try:
            self._result.append(self._call())
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised again where the caller waits
            self._error = error
        finally:
            self.done.set()

    def outcome(self) -> T:
        if self._error is not None:
            raise self._error
        return self._result[0]
