"""Virtual time: a heap of events, and processes that wait for them.

A process is a generator. It yields a number of seconds to sleep, or a :class:`Completion` to wait for. The ``yield``
returns the value of the completion or raises its OSError. This module does not use the time of day.

>>> engine = Engine()
>>> def writer():
...     yield 1.5
...     return engine.now
>>> finished = engine.spawn(writer())
>>> engine.run_until(10.0)
>>> finished.value, engine.now
(1.5, 10.0)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable
from heapq import heappop, heappush
from math import inf
from typing import Any, TypeAlias, TypeVar


class Completion:
    """The end of an I/O, an RPC or a process. Carries its value or its error."""

    __slots__ = ("_waiters", "done", "error", "value")

    def __init__(self) -> None:
        self.done = False
        self.value: Any = None
        self.error: OSError | None = None
        self._waiters: list[Callable[[Completion], None]] = []

    def succeed(self, value: Any = None) -> None:
        self.value = value
        self.done = True
        if waiters := self._waiters:
            self._waiters = []
            for waiter in waiters:
                waiter(self)

    def fail(self, error: OSError) -> None:
        self.error = error
        self.succeed()

    def then(self, callback: Callable[[Completion], None]) -> None:
        """Call a function at completion, or at once if already complete."""
        if self.done:
            callback(self)
        else:
            self._waiters.append(callback)


T = TypeVar("T")
Steps: TypeAlias = Generator[float | Completion, Any, T]
"""Type of a process, or of a part of one to ``yield from``."""


def gather(parts: Iterable[Completion]) -> Completion:
    """Combine completions. The result completes when all have completed, with the first error if there is one."""
    waiting = list(parts)
    if len(waiting) == 1:
        return waiting[0]
    whole = Completion()
    left = len(waiting)

    def one_done(_part: Completion) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            error = next((part.error for part in waiting if part.error is not None), None)
            if error is None:
                whole.succeed()
            else:
                whole.fail(error)

    if not waiting:
        whole.succeed()
    for part in waiting:
        part.then(one_done)
    return whole


class _Process(Completion):
    __slots__ = ("_engine", "_steps")

    def __init__(self, engine: Engine, steps: Steps[Any]) -> None:
        super().__init__()
        self._engine = engine
        self._steps = steps

    def resume(self, awaited: Completion) -> None:
        """Continue after a wait, up to the next wait for something that is not complete."""
        while True:
            try:
                error = awaited.error
                wanted = self._steps.send(awaited.value) if error is None else self._steps.throw(error)
            except StopIteration as stop:
                self.succeed(stop.value)
                return
            except OSError as failure:
                self.fail(failure)
                return
            if not isinstance(wanted, Completion):
                self._engine.after(wanted, self.resume, COMPLETE)
                return
            if not wanted.done:
                wanted.then(self.resume)
                return
            awaited = wanted


COMPLETE = Completion()
"""A completion without a value that is complete: nobody waits for it."""
COMPLETE.succeed()


class Engine:
    """The event loop of the model. Events of the same instant happen in the order in which they were scheduled."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sequence = 0
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []

    def after(self, delay_seconds: float, callback: Callable[..., None], *arguments: Any) -> None:
        """Schedule a call after a delay. A negative delay counts as 0."""
        self._sequence += 1
        due = self.now + delay_seconds if delay_seconds > 0.0 else self.now
        heappush(self._events, (due, self._sequence, callback, arguments))

    def spawn(self, steps: Steps[Any]) -> Completion:
        """Start a process. It runs to its first wait before this call returns."""
        process = _Process(self, steps)
        process.resume(COMPLETE)
        return process

    def run_until(self, time: float, awaited: Collection[object] = ()) -> None:
        """Process all events up to a virtual time, or until an event puts something into ``awaited``.

        A collection is tested after each event because that costs less than a call. Raises RuntimeError if ``time`` is
        infinite and no event is left.
        """
        events = self._events
        pop = heappop
        while not awaited:
            if not events or events[0][0] > time:
                if time == inf:
                    raise RuntimeError("no event is left to wait for")
                self.now = max(self.now, time)
                return
            self.now, _, callback, arguments = pop(events)
            callback(*arguments)
