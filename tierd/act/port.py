"""Moves through the file system port: the mover of the simulator, and of anything else that can migrate one file."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lustre.filesystem import Filesystem
from tierd.act.movers.outcome import Move, Outcome, Result, of_error


class PortMover:
    """Implements the movers' interface; looks whether the file is still the one that was chosen."""

    def __init__(self, filesystem: Filesystem) -> None:
        self._filesystem = filesystem

    def move(self, moves: Sequence[Move]) -> Iterator[Outcome]:
        """One after the other."""
        for move in moves:
            try:
                status = self._filesystem.status(move.path)
                if move.fid is not None and status.fid != move.fid:
                    yield Outcome(move, Result.REFUSED, "changed", "another file has this name now")
                    continue
                self._filesystem.migrate(move.path, move.layout)
            except FileNotFoundError as error:
                yield Outcome(move, Result.GAVE_WAY, "gone", "it is gone", error=error)
            except OSError as error:
                busy = error.errno in {errno.EBUSY, errno.ETXTBSY, errno.EAGAIN}
                yield (Outcome(move, Result.GAVE_WAY, "busy", error.strerror or str(error), error=error) if busy
                       else replace(of_error(move, error), detail=error.strerror or str(error)))
            else:
                yield Outcome(move, Result.DONE)
