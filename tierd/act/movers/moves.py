"""One move, its outcome, and what every mover implements; and the mover over the file system port.

Outcomes are the same whichever engine moved the file. :class:`PortMover` serves the simulator, and anything else that
can migrate one file.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
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
from lustre.filesystem import Filesystem
from lustre.layout.model import Layout
from tierd.refusal import Refusal

Halt = Callable[[], Refusal | None]
"""Refuses further moves. Engines call it before each file, or before each process that moves several."""


def never_halt() -> Refusal | None:
    """Refuse nothing."""
    return None


class MoveResult(StrEnum):
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
class MoveOutcome:
    """How one move went, and why."""

    move: Move
    result: MoveResult
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

    def move(self, moves: Sequence[Move], halt: Halt = never_halt) -> Iterator[MoveOutcome]:
        """Move these, telling about each as soon as it is known. Raises nothing for what happens to a file.

        ``halt`` is asked before each file, or each process of several: once it gives a reason, the rest is left alone.
        """

    def examine(self, moves: Sequence[Move]) -> Iterator[MoveOutcome]:
        """Look at these as before a move, and move none: ``MOVABLE``, or how it would end before it began."""


_NO_FILE = {errno.ELOOP, errno.ENXIO, errno.EISDIR}
"""What opening a symbolic link, a socket or a device says, without following or waiting."""
_REASONS: tuple[tuple[type[OSError], str, MoveResult], ...] = (
    (Busy, "busy", MoveResult.GAVE_WAY),
    (Stale, "busy", MoveResult.GAVE_WAY),  # a broken lease; of a file that is gone, tierd.act.movers.inspection.is_gone
    (Gone, "gone", MoveResult.GAVE_WAY),
    (NoKey, "encrypted", MoveResult.REFUSED),
    (UnknownLayout, "layout", MoveResult.REFUSED),
    (NoSpace, "no-space", MoveResult.FAILED),
    (QuotaExceeded, "quota", MoveResult.FAILED),
    (NotPermitted, "not-permitted", MoveResult.FAILED),
    (ReadOnly, "read-only", MoveResult.FAILED),
)


def outcome_of_error(move: Move, error: OSError, before: Layout | None = None) -> MoveOutcome:
    """The outcome of a move that an error ended while the file was untouched."""
    if error.errno in _NO_FILE:
        return MoveOutcome(move, MoveResult.REFUSED, "not-a-file", "no regular file", before, before, error=error)
    for kind, reason, result in _REASONS:
        if isinstance(error, kind):
            return MoveOutcome(move, result, reason, str(error), before, before, error=error)
    return MoveOutcome(move, MoveResult.FAILED, "error", str(error), before, before, error=error)


def halted_outcome(move: Move, refusal: Refusal) -> MoveOutcome:
    """The outcome of a move that was not begun since ``halt`` refused."""
    return MoveOutcome(move, MoveResult.GAVE_WAY, "halted", refusal.sentence)


def one_at_a_time(mover: Mover) -> Callable[[str, Layout], None]:
    """The form in which the file system port asks for a move: one file, and an OSError where it did not come about."""

    def migrate(path: str, layout: Layout) -> None:
        for outcome in mover.move((Move(path, layout),)):
            if outcome.result in {MoveResult.DONE, MoveResult.ALREADY}:
                return
            if outcome.result is MoveResult.REFUSED:
                raise Refused(errno.ECANCELED, outcome.detail, path)
            if outcome.result is MoveResult.GAVE_WAY and not isinstance(outcome.error, Gone):
                raise Busy(errno.EBUSY, outcome.detail, path)
            raise outcome.error or LustreError(errno.EIO, outcome.detail, path)

    return migrate


class PortMover:
    """Implements the movers' interface; looks whether the file is still the one that was chosen."""

    def __init__(self, filesystem: Filesystem) -> None:
        self._filesystem = filesystem

    def move(self, moves: Sequence[Move], halt: Halt = never_halt) -> Iterator[MoveOutcome]:
        """One after the other."""
        for move in moves:
            if why := halt():
                yield halted_outcome(move, why)
                continue
            (found,) = self.examine((move,))
            yield found if found.result is not MoveResult.MOVABLE else self._migrated(move)

    def examine(self, moves: Sequence[Move]) -> Iterator[MoveOutcome]:
        """Whether each is there, and still the one that was chosen."""
        for move in moves:
            try:
                status = self._filesystem.status(move.path)
            except OSError as error:
                yield _port_failure(move, error)
                continue
            if move.fid is not None and status.fid != move.fid:
                yield MoveOutcome(move, MoveResult.REFUSED, "changed", "another file has this name now")
            else:
                yield MoveOutcome(move, MoveResult.MOVABLE)

    def _migrated(self, move: Move) -> MoveOutcome:
        try:
            self._filesystem.migrate(move.path, move.layout)
        except OSError as error:
            return _port_failure(move, error)
        return MoveOutcome(move, MoveResult.DONE)


def _port_failure(move: Move, error: OSError) -> MoveOutcome:
    if isinstance(error, FileNotFoundError):
        return MoveOutcome(move, MoveResult.GAVE_WAY, "gone", "it is gone", error=error)
    words = error.strerror or str(error)
    if error.errno in {errno.EBUSY, errno.ETXTBSY, errno.EAGAIN}:
        return MoveOutcome(move, MoveResult.GAVE_WAY, "busy", words, error=error)
    return replace(outcome_of_error(move, error), detail=words)
