"""What a mover is asked for, and how it went: the same words whichever engine did it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from lustre.errors import (
    Busy,
    Gone,
    LustreError,
    NoKey,
    NoSpace,
    NotPermitted,
    QuotaExceeded,
    ReadOnly,
    Refused,
    Stale,
    UnknownLayout,
)
from lustre.fid import Fid
from lustre.layout.model import Layout
from tierd.act.standstill import Halt, never


class Result(StrEnum):
    """How one move went. In every case but DOUBTFUL the file is known to be whole."""

    DONE = "done"
    ALREADY = "already"
    """It has that layout."""
    MOVABLE = "movable"
    """Nothing speaks against moving it; it was only looked at."""
    REFUSED = "refused"
    """Not a file to be moved, for a reason; nothing was tried."""
    GAVE_WAY = "gave-way"
    """Somebody used it or changed it meanwhile: theirs stands."""
    FAILED = "failed"
    """Lustre could not; the file is as it was."""
    DOUBTFUL = "doubtful"
    """It is not as it should be afterwards. Whoever sees this stops moving and looks."""


@dataclass(frozen=True, slots=True)
class Move:
    """One file and the layout it is to have. What is known of it from when it was chosen must still hold."""

    path: str
    layout: Layout
    fid: Fid | None = None
    size_bytes: int | None = None
    mtime_seconds: float | None = None
    project: int | None = None
    targets: frozenset[str] = frozenset()
    """Full names of the targets it lies on, for those who limit how many moves one of them has to bear."""
    mirrors_may_go: bool = False
    """A mirrored file may end with the one copy this layout has."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one move went, and why."""

    move: Move
    result: Result
    reason: str = ""
    """One word for counters: ``released``, ``busy``, ``no-space``…; empty when it is done."""
    detail: str = ""
    """A sentence for people."""
    before: Layout | None = None
    after: Layout | None = None
    copied_bytes: int = 0
    error: OSError | None = None


class Mover(Protocol):
    """What moves files: an engine, or several at work side by side."""

    def move(self, moves: Sequence[Move], halt: Halt = never) -> Iterator[Outcome]:
        """Move these, telling about each as soon as it is known. Raises nothing for what happens to a file.

        ``halt`` is asked before each file, or each process of several: once it gives a reason, the rest is left alone.
        """

    def examine(self, moves: Sequence[Move]) -> Iterator[Outcome]:
        """Look at these as before a move, and move none: ``MOVABLE``, or how it would end before it began."""


_NO_FILE = {errno.ELOOP, errno.ENXIO, errno.EISDIR}
"""What opening a symbolic link, a socket or a device says, without following or waiting."""

_REASONS: tuple[tuple[type[OSError], str, Result], ...] = (
    (Busy, "busy", Result.GAVE_WAY),
    (Stale, "busy", Result.GAVE_WAY),  # a broken lease; of a file that is gone, tierd.act.movers.aftermath.is_gone
    (Gone, "gone", Result.GAVE_WAY),
    (NoKey, "encrypted", Result.REFUSED),
    (UnknownLayout, "layout", Result.REFUSED),
    (NoSpace, "no-space", Result.FAILED),
    (QuotaExceeded, "quota", Result.FAILED),
    (NotPermitted, "not-permitted", Result.FAILED),
    (ReadOnly, "read-only", Result.FAILED),
)


def of_error(move: Move, error: OSError, before: Layout | None = None) -> Outcome:
    """The outcome of a move that an error ended while the file was untouched."""
    if error.errno in _NO_FILE:
        return Outcome(move, Result.REFUSED, "not-a-file", "no regular file", before, before, error=error)
    for kind, reason, result in _REASONS:
        if isinstance(error, kind):
            return Outcome(move, result, reason, str(error), before, before, error=error)
    return Outcome(move, Result.FAILED, "error", str(error), before, before, error=error)


def halted(move: Move, why: str) -> Outcome:
    """The outcome of a move whose turn did not come any more."""
    return Outcome(move, Result.GAVE_WAY, "halted", why)


def one_at_a_time(mover: Mover) -> Callable[[str, Layout], None]:
    """The form in which the file system port asks for a move: one file, and an OSError where it did not come about."""

    def migrate(path: str, layout: Layout) -> None:
        for outcome in mover.move((Move(path, layout),)):
            if outcome.result in {Result.DONE, Result.ALREADY}:
                return
            if outcome.result is Result.REFUSED:
                raise Refused(errno.ECANCELED, outcome.detail, path)
            if outcome.result is Result.GAVE_WAY and not isinstance(outcome.error, Gone):
                raise Busy(errno.EBUSY, outcome.detail, path)
            raise outcome.error or LustreError(errno.EIO, outcome.detail, path)

    return migrate
