"""Several engines at work at the same time, with a limit for each target.

Threads of a mover take the name of their process: where ``jobid_var`` is ``procname_uid``, that name makes the job id.
Threads inherit it, but from Python 3.14 on Python tells the system the name of each thread, and Lustre takes that:
tierd's own reads and writes would be those of an unknown job ``tierd-mover_0.0``.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Condition
from typing import Protocol

from tierd.act.movers.moves import Halt, Move, MoveOutcome, Mover, MoveResult, never_halt
from tierd.act.movers.space_and_quota import DestinationState, bytes_per_pool

PROC_SELF = Path("/proc/self")


def name_thread_as_process(proc: Path = PROC_SELF) -> None:
    """Give the thread that calls this the name of its process."""
    with suppress(OSError):  # no procfs: then the job id of our work has to stand in `own_jobs`
        name = (proc / "comm").read_bytes().rstrip(b"\n")
        (proc / "task" / str(threading.get_native_id()) / "comm").write_bytes(name)


Pools = Callable[[], Mapping[str, tuple[str, ...]]]
_POOL_PREFIX = "pool:"
"""Tells names of pools from names of targets."""


class Engine(Mover, Protocol):
    """A mover that any number of threads may use, and that shares what is asked once for many files."""

    @property
    def files_at_a_time(self) -> int:
        """Files it is given at a time: one, or as many as one process of it may move."""

    def batch(self) -> DestinationState:
        """Pools, room, quotas and directories, asked once for all files that are moved with it."""

    def move(
        self, moves: Iterable[Move], halt: Halt = never_halt, batch: DestinationState | None = None
    ) -> Iterator[MoveOutcome]:
        """See :class:`~tierd.act.movers.moves.Mover`; ``batch`` None: one of its own."""


class ParallelMover:
    """Implements :class:`Engine` over another one, with threads that last as long as this does.

    Each thread takes the next files whose targets and pools bear one more, as soon as it has done those before: none
    waits for the others. Limits hold for all threads that call :meth:`move`, taken together.
    """

    def __init__(self, mover: Engine, pools: Pools, at_once: int, per_target: int) -> None:
        self._mover = mover
        self._pools = pools
        self._at_once = at_once
        self._places = TargetSlots(per_target)
        self._threads = ThreadPoolExecutor(at_once, "tierd-mover", name_thread_as_process)

    @property
    def files_at_a_time(self) -> int:
        """See the protocol."""
        return self._mover.files_at_a_time * self._at_once

    def batch(self) -> DestinationState:
        """See the protocol."""
        return self._mover.batch()

    def move(
        self, moves: Iterable[Move], halt: Halt = never_halt, batch: DestinationState | None = None
    ) -> Iterator[MoveOutcome]:
        """Move these side by side; outcomes come in any order. Ends the files at work when it is given up early."""
        wanted = list(moves)
        try:
            members = {pool: len(targets) for pool, targets in self._pools().items()}
        except OSError as error:
            yield from (MoveOutcome(move, MoveResult.FAILED, "error", str(error), error=error) for move in wanted)
            return
        run = ParallelRun(wanted, members, self._places, self._mover.files_at_a_time, self._at_once)
        shared = self.batch() if batch is None else batch
        told: SimpleQueue[MoveOutcome | None] = SimpleQueue()
        futures = [self._threads.submit(self._lane, run, halt, shared, told)
                   for _ in range(min(self._at_once, len(wanted)))]
        try:
            for _ in futures:
                while (outcome := told.get()) is not None:
                    yield outcome
        finally:
            run.stop()
            wait(futures)
        for future in futures:
            future.result()  # a mistake in an engine is not to be swallowed

    def examine(self, moves: Sequence[Move]) -> Iterator[MoveOutcome]:
        """Look, and move nothing."""
        return self._mover.examine(moves)

    def _lane(
        self, run: ParallelRun, halt: Halt, batch: DestinationState, told: SimpleQueue[MoveOutcome | None]
    ) -> None:
        try:
            while part := run.take():
                try:
                    for outcome in self._mover.move(part, halt, batch):
                        told.put(outcome)
                finally:
                    run.done(part)
        finally:
            told.put(None)


class TargetSlots:
    """How many threads are busy with each target and each pool."""

    def __init__(self, per_target: int) -> None:
        self.per_target = per_target
        self.busy: Counter[str] = Counter()
        self.changed = Condition()


class ParallelRun:
    """Moves of one call, each to be taken by one thread.

    A pool bears as many as its targets do together: nobody knows before on which of them a file will be put.
    """

    def __init__(self, moves: Sequence[Move], members: Mapping[str, int], places: TargetSlots, at_a_time: int,
                 lanes: int) -> None:
        self._left = [(move, _slots_of(move)) for move in moves]
        self._members = members
        self._places = places
        self._at_a_time = max(1, min(at_a_time, -(-len(moves) // lanes)))

    def take(self) -> list[Move]:
        """The next moves that fit; waits until some do. Empty when none are left, or it was stopped."""
        with self._places.changed:
            while self._left:
                part, named = self._fitting()
                if part:
                    self._places.busy.update(named)
                    return part
                self._places.changed.wait()
        return []

    def done(self, part: Sequence[Move]) -> None:
        """What it took is over: others may have its places."""
        with self._places.changed:
            self._places.busy.subtract(set().union(*map(_slots_of, part)))
            self._places.busy += Counter()  # forget those that nobody is busy with
            self._places.changed.notify_all()

    def stop(self) -> None:
        """Nothing more is taken."""
        with self._places.changed:
            self._left.clear()
            self._places.changed.notify_all()

    def _fitting(self) -> tuple[list[Move], set[str]]:
        part: list[Move] = []
        named: set[str] = set()
        left = []
        for number, (move, places) in enumerate(self._left):
            if len(part) == self._at_a_time:
                left += self._left[number:]
                break
            if all(self._places.busy[place] < self._limit(place) for place in places - named):
                part.append(move)
                named |= places
            else:
                left.append((move, places))
        self._left = left
        return part, named

    def _limit(self, place: str) -> int:
        """Of a pool without targets one: the engine says what is wrong with it."""
        targets = self._members.get(place.removeprefix(_POOL_PREFIX), 1) if place.startswith(_POOL_PREFIX) else 1
        return self._places.per_target * max(1, targets)


def _slots_of(move: Move) -> set[str]:
    """Targets it reads from, and pools it writes to."""
    size_bytes = move.size_bytes or 0
    return set(move.targets) | {_POOL_PREFIX + pool for pool in bytes_per_pool(move.layout, size_bytes) if pool}
