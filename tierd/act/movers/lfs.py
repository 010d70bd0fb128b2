"""The engine that runs ``lfs migrate --non-block``, many files per process; the default one (docs/decisions).

``lfs`` is never believed: it may end with 0 after moving nothing where it should, and print words after success. Every
file is looked at before and after. Its default mode is never used: that takes the group lock, and loses a truncate.

One thing cannot be closed from outside: between the look and ``lfs`` opening the file, another file may take its name
and be moved unchecked. It would keep its data, though not its mirrors; its outcome is doubtful.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lustre.calls import Calls
from lustre.errors import LustreError, kind_of
from lustre.layout import setstripe_arguments
from tierd.act.movers import aftermath, checks, examining, room
from tierd.act.movers.facts import Facts
from tierd.act.movers.outcome import Move, Outcome, halted
from tierd.act.movers.runner import Finished, Runner
from tierd.act.standstill import Halt, never

FILES_PER_PROCESS = 64
ARGUMENT_BYTES = 64 << 10
_BUSY = ("Device or resource busy", "Text file busy", "Resource temporarily unavailable", "source file changed")
_NUMBERS = {
    "No space left on device": errno.ENOSPC, "Disk quota exceeded": errno.EDQUOT,
    "Operation not permitted": errno.EPERM, "Permission denied": errno.EACCES,
    "Read-only file system": errno.EROFS, "No such file or directory": errno.ENOENT,
    "Required key not available": errno.ENOKEY,
}


@dataclass(frozen=True, slots=True)
class _Ready:
    """A file that was looked at and may be moved."""

    move: Move
    facts: Facts
    place: str


class LfsMover:
    """Implements :class:`~tierd.act.movers.outcome.Mover`. Holds no state: any number of threads may use one."""

    def __init__(self, calls: Calls, destination: room.Destination, place: Callable[[str], str], run: Runner,
                 lfs: str = "lfs") -> None:
        """``place`` makes a path of this machine from one of the file system."""
        self._calls = calls
        self._destination = destination
        self._place = place
        self._run = run
        self._lfs = lfs

    def move(self, moves: Sequence[Move], halt: Halt = never) -> Iterator[Outcome]:
        """Move these; files that are to have the same layout go together."""
        ready: dict[tuple[str, ...], list[_Ready]] = {}
        room_left = room.Batch(self._destination)
        for move in moves:
            found = examining.facts_of(self._calls, move, room_left, self._also)
            if isinstance(found, Outcome):
                yield found
            else:
                group = ready.setdefault(setstripe_arguments(move.layout), [])
                group.append(_Ready(move, found, self._place(move.path)))
        for arguments, group in ready.items():
            for batch in _batches(group):
                if why := halt():
                    yield from (halted(each.move, why) for each in batch)
                else:
                    yield from self._batch(arguments, batch)

    def examine(self, moves: Sequence[Move]) -> Iterator[Outcome]:
        """Look, and move nothing."""
        return examining.outcomes(self._calls, moves, room.Batch(self._destination), self._also)

    def _also(self, move: Move, facts: Facts) -> checks.Refusal | None:
        setstripe_arguments(move.layout)  # raises for what lfs has no options for
        return self._project(move, facts)

    def _project(self, move: Move, facts: Facts) -> checks.Refusal | None:
        """``lfs`` gives the new objects to the project of the directory, whatever the file's is."""
        given = self._calls.project_beside(move.path)
        if given == facts.project:
            return None
        detail = f"it belongs to project {facts.project}, and its objects would count for project {given}"
        return checks.Refusal("project", detail)

    def _batch(self, arguments: tuple[str, ...], batch: list[_Ready]) -> Iterator[Outcome]:
        """One process. Whatever it says, each file is looked at."""
        command = [self._lfs, "migrate", "--non-block", *arguments, *(ready.place for ready in batch)]
        try:
            finished = self._run(command)
        except OSError as error:
            finished = Finished(127, f"{self._lfs} cannot be run: {error}")
        pools = self._destination.pools()  # anew: they may have changed while lfs was at work
        for ready in batch:
            failure = _failure(finished, ready.place)
            yield aftermath.judge(self._calls, ready.move, ready.facts, None, pools, failure)


def _batches(group: list[_Ready]) -> Iterator[list[_Ready]]:
    batch: list[_Ready] = []
    size = 0
    for ready in group:
        length = len(ready.place.encode("utf-8", "surrogateescape")) + 1
        if batch and (len(batch) == FILES_PER_PROCESS or size + length > ARGUMENT_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(ready)
        size += length
    if batch:
        yield batch


def _failure(finished: Finished, place: str) -> OSError | None:
    """What ``lfs`` said of one file, as an error that explains why it did not move; it does not say whether it did."""
    begin = finished.errors.find(f": {place}: ")
    if begin < 0:
        said = finished.errors.strip() or "nothing"
        return LustreError(errno.EIO, f"lfs ended with {finished.code}, saying: {said}") if finished.code else None
    words = finished.errors[begin + len(place) + 4 :].partition("\n")[0]
    number = next((number for text, number in _NUMBERS.items() if text in words), errno.EIO)
    if any(word in words for word in _BUSY):
        number = errno.EBUSY
    return kind_of(number)(number, f"lfs migrate: {words}")
