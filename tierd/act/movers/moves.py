"""A move, its outcome, which is the same for all engines, and the interface of movers."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from lustre.errors import Busy, NoKey, NoSpace, NotPermitted, QuotaExceeded, ReadOnly, Stale, UnknownLayout
from lustre.fid import Fid
from lustre.layout.model import Layout
from tierd.refusal import Reason, Refusal

Halt = Callable[[], Refusal | None]
"""Refuses further moves. Engines call it before each file, or before each process that moves several."""


def never_halt() -> Refusal | None:
    return None


class MoveResult(StrEnum):
    """How one move went. In every case but DOUBTFUL the file is known to be whole."""

    DONE = "done"
    ALREADY = "already"
    """The file already has the layout."""
    MOVABLE = "movable"
    """The file was only examined, and may be moved."""
    REFUSED = "refused"
    """The file must not be moved. Nothing was attempted."""
    GAVE_WAY = "gave-way"
    """Somebody used or changed the file meanwhile. Their change stands."""
    FAILED = "failed"
    """Lustre reported an error. The file is unchanged."""
    DOUBTFUL = "doubtful"
    """The file is not as expected after the move. All moves stop until an administrator has examined it."""


@dataclass(frozen=True, slots=True)
class Move:
    """A file and its new layout. Facts known from the time of planning must still hold."""

    path: str
    layout: Layout
    fid: Fid | None = None
    size_bytes: int | None = None
    targets: frozenset[str] = frozenset()
    """Full names of the targets that hold the file, for the limit of moves per target."""
    objects: str = ""
    """Digest of the objects that held the file (:func:`tierd.act.movers.checks.objects_digest`); "" if unknown."""
    layout_generation: int = 0
    """Generation of the layout that it had; 0 if unknown."""
    own_mirrors: bool = False
    """Whether tierd gave the file the mirrors that it has, by the journal. Those of others are not touched."""
    act: int = 0
    """Number of the act in the journal, which has its intent; 0 without one."""
    before: Layout | None = None
    """Layout of the file when the leader examined it."""
    by_request: bool = False
    """Whether an administrator asked for it, or it undoes a move."""
    fence: Halt = field(default=never_halt, compare=False)
    """Refuses the exchange of the layouts. Engines that can ask just before it do: a mover may have hung for long."""


@dataclass(frozen=True, slots=True)
class MoveOutcome:
    """How one move went, and why."""

    move: Move
    result: MoveResult
    reason: str = ""
    """A word for counters: ``released``, ``busy``, ``no-space``, …; empty for a move that was done."""
    detail: str = ""
    """A sentence for people."""
    after: Layout | None = None
    """Layout of a file that was examined after an attempt; None for others."""
    copied_bytes: int = 0
    not_copied: float = 0.0
    """Share of the file that was certainly not copied. Its budget is returned. 0 if it is not known what was copied."""


class Mover(Protocol):
    """Moves files: an engine, or several engines in parallel."""

    def move(self, moves: Sequence[Move], halt: Halt = never_halt) -> Iterator[MoveOutcome]:
        """Move files. Yields each outcome as soon as it is known, and raises nothing for errors of a file. Calls
        ``halt`` before each file, or before each process that moves several. When it refuses, no further file is moved.
        """

    def examine(self, moves: Sequence[Move]) -> Iterator[MoveOutcome]:
        """Examine files as before a move, and move none. The outcome is ``MOVABLE``, or that of a move not begun."""


def outcome_of_each(call: Callable[[Sequence[Move]], Iterator[MoveOutcome]],
                    moves: Sequence[Move]) -> Iterator[MoveOutcome]:
    """Move or examine files: one outcome for each, whatever error ends the engine itself."""
    left = {move.path: move for move in moves}
    why = "the mover did not report an outcome"
    try:
        for outcome in call(moves):
            del left[outcome.move.path]
            yield outcome
    except Exception as error:  # noqa: BLE001 -- whatever it is, no act may stay under way
        why = f"the mover failed: {type(error).__name__}: {error}; the file has its old layout or the new one"
    for move in left.values():
        yield MoveOutcome(move, MoveResult.FAILED, "error", why)


_NO_FILE = {errno.ELOOP, errno.ENXIO, errno.EISDIR}
"""Errors of opening a symbolic link, a socket or a device without following or waiting."""
_REASONS: tuple[tuple[type[OSError], str, MoveResult], ...] = (
    (Busy, "busy", MoveResult.GAVE_WAY),
    (Stale, "busy", MoveResult.GAVE_WAY),  # a broken lease; tierd.act.movers.inspection.is_gone finds removed files
    (FileNotFoundError, Reason.GONE, MoveResult.GAVE_WAY),
    (NoKey, "encrypted", MoveResult.REFUSED),
    (UnknownLayout, "layout", MoveResult.REFUSED),
    (NoSpace, "no-space", MoveResult.FAILED),
    (QuotaExceeded, "quota", MoveResult.FAILED),
    (NotPermitted, "not-permitted", MoveResult.FAILED),
    (ReadOnly, "read-only", MoveResult.FAILED),
    (OSError, "error", MoveResult.FAILED),
)


def outcome_of_error(move: Move, error: OSError) -> MoveOutcome:
    """The outcome of a move that an error ended while the file was untouched."""
    if error.errno in _NO_FILE:
        return MoveOutcome(move, MoveResult.REFUSED, "not-a-file", "not a regular file")
    if error.errno == errno.ENAMETOOLONG:  # anybody can make such directories: no reason to stop moves
        return MoveOutcome(move, MoveResult.REFUSED, "path", "the path is too long for a copy next to the file")
    reason, result = next((reason, result) for kind, reason, result in _REASONS if isinstance(error, kind))
    return MoveOutcome(move, result, reason, error.strerror or str(error))  # no path: equal errors share a line


def refused_outcome(move: Move, refusal: Refusal) -> MoveOutcome:
    return MoveOutcome(move, MoveResult.REFUSED, refusal.reason, refusal.sentence)


def halted_outcome(move: Move, refusal: Refusal) -> MoveOutcome:
    """The outcome of a move that was not begun since ``halt`` refused."""
    return MoveOutcome(move, MoveResult.GAVE_WAY, Reason.HALTED, refusal.sentence, not_copied=1.0)
