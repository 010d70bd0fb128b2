"""Calls that may not come back for hours, each in a thread of its own: they are waited for so long, and no longer.

Reading the changelog of an MDT that is away waits until it is back, and so does clearing it. The changelogs of the
other MDTs, and the cycle, do not wait with them. Nothing is asked of an MDT before what was asked of it has come back,
so that there is one such thread for each at the most; an answer that comes late is given to who asks the same again.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from itertools import count
from typing import Any, NamedTuple, TypeVar, cast

from tierd.clock import Clock
from tierd.sense.clearing import Clear
from tierd.sense.follow import ReadFrom
from tierd.sense.recording import Mark

Answer = TypeVar("Answer")
WAIT_SECONDS = 10.0
"""Some 4 MiB of records take one to two."""


class _Asked(NamedTuple):
    question: Hashable
    at: float
    answer: Future[Any]


class Patience:
    """What was asked, and of whom no answer has come yet."""

    def __init__(self, clock: Clock, seconds: float = WAIT_SECONDS) -> None:
        self._clock = clock
        self._seconds = seconds
        self._asked: dict[str, _Asked] = {}

    def __call__(self, whom: str, question: Hashable, ask: Callable[[], Answer]) -> Answer:
        """The answer, or what asking raised. Raises TimeoutError where it, or one before it, has not come in time."""
        asked = self._asked.get(whom)
        if asked is not None and asked.question != question:
            if not asked.answer.done():
                raise self._late(asked)
            asked = None
        if asked is None:
            asked = self._asked[whom] = _Asked(question, self._clock.now(), _begun(ask))
            _done(asked.answer, self._seconds)
        if not asked.answer.done():
            raise self._late(asked)
        del self._asked[whom]
        return cast("Answer", asked.answer.result())

    def _late(self, asked: _Asked) -> TimeoutError:
        lasted = max(self._seconds, self._clock.now() - asked.at)
        return TimeoutError(errno.ETIMEDOUT, f"no answer for {lasted:.0f} s: its server is away, or recovers")

    def reading(self, read: ReadFrom) -> ReadFrom:
        """The same way to read changelogs, and no longer."""
        return lambda mdt, after: self(mdt, ("read", after), lambda: read(mdt, after))

    def clearing(self, clear: Clear) -> Clear:
        """The same way to clear them, and no longer."""
        return lambda mdt, reader, index: self(mdt, ("clear", reader, index), lambda: clear(mdt, reader, index))

    def marking(self, mark: Mark) -> Mark:
        """The same way to make a mark on an MDT, and no longer. One that comes late is given to nobody."""
        numbers = count()
        return lambda mdt: self(mdt, ("mark", next(numbers)), lambda: mark(mdt))


def _begun(ask: Callable[[], Answer]) -> Future[Answer]:
    answer: Future[Answer] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # noqa: BLE001 -- it is raised where the answer is waited for
            answer.set_exception(error)

    threading.Thread(target=run, name="tierd-changelog", daemon=True).start()
    return answer


def _done(answer: Future[Any], seconds: float) -> None:
    """Wait until it is there, or so long."""
    arrived = threading.Event()
    answer.add_done_callback(lambda _: arrived.set())
    arrived.wait(seconds)
