"""Moves through the file system port: the mover of the simulator, and of anything else that can migrate one file."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lustre.filesystem import Filesystem
from tierd.act.movers.outcome import Move, Outcome, Result, halted, of_error
from tierd.act.standstill import Halt, never


class PortMover:
    """Implements the movers' interface; looks whether the file is still the one that was chosen."""

    def __init__(self, filesystem: Filesystem) -> None:
        self._filesystem = filesystem

    def move(self, moves: Sequence[Move], halt: Halt = never) -> Iterator[Outcome]:
        """One after the other."""
        for move in moves:
            if why := halt():
                yield halted(move, why)
                continue
            (found,) = self.examine((move,))
            yield found if found.result is not Result.MOVABLE else self._migrated(move)

    def examine(self, moves: Sequence[Move]) -> Iterator[Outcome]:
        """Whether each is there, and still the one that was chosen."""
        for move in moves:
            try:
                status = self._filesystem.status(move.path)
            except OSError as error:
                yield _failed(move, error)
                continue
            if move.fid is not None and status.fid != move.fid:
                yield Outcome(move, Result.REFUSED, "changed", "another file has this name now")
            else:
                yield Outcome(move, Result.MOVABLE)

    def _migrated(self, move: Move) -> Outcome:
        try:
            self._filesystem.migrate(move.path, move.layout)
        except OSError as error:
            return _failed(move, error)
        return Outcome(move, Result.DONE)


def _failed(move: Move, error: OSError) -> Outcome:
    if isinstance(error, FileNotFoundError):
        return Outcome(move, Result.GAVE_WAY, "gone", "it is gone", error=error)
    words = error.strerror or str(error)
    if error.errno in {errno.EBUSY, errno.ETXTBSY, errno.EAGAIN}:
        return Outcome(move, Result.GAVE_WAY, "busy", words, error=error)
    return replace(of_error(move, error), detail=words)
