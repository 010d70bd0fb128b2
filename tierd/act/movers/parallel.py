"""Runs moves in several threads, with a limit for each target.

Threads of a mover take the name of their process: if ``jobid_var`` is ``procname_uid``, the job id contains that name.
Python 3.14 and later set the name of each thread in the kernel. Without the change, tierd's own reads and writes would
belong to an unknown job ``tierd-mover_0.0``.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Condition

from lustre.priority import run_as_applications
from tierd.act.limits import bytes_per_pool
from tierd.act.movers.inspection import FileEngine
from tierd.act.movers.moves import Halt, Move, MoveOutcome, Mover, MoveResult, never_halt
from tierd.act.movers.space_and_quota import DestinationState

PROC_SELF = Path("/proc/self")


def name_thread_as_process(proc: Path = PROC_SELF) -> None:
    """Set the name of the calling thread to the name of its process."""
    with suppress(OSError):  # without procfs, `own_jobs` has to name the job id of the threads
        name = (proc / "comm").read_bytes().rstrip(b"\n")
        (proc / "task" / str(threading.get_native_id()) / "comm").write_bytes(name)


def prepare_mover_thread() -> None:
    name_thread_as_process()
    run_as_applications()


Pools = Callable[[], Mapping[str, tuple[str, ...]]]
_POOL_PREFIX = "pool:"
"""Distinguishes names of pools from names of targets."""


class ParallelMover(Mover):
    """Runs an engine in several threads. Each thread takes the next files whose targets and pools have a free slot,
    without waiting for other threads. The limits apply to all callers of :meth:`move` together.
    """

    def __init__(self, mover: FileEngine, pools: Pools, at_once: int, per_target: int) -> None:
        self._mover = mover
        self._pools = pools
        self._at_once = at_once
        self._places = TargetSlots(per_target)
        self._threads = ThreadPoolExecutor(at_once, "tierd-mover", prepare_mover_thread)

    def move(self, moves: Sequence[Move], halt: Halt = never_halt) -> Iterator[MoveOutcome]:
        """Move files in parallel; outcomes come in any order. If closed early, files being moved are completed."""
        try:
            members = {pool: len(targets) for pool, targets in self._pools().items()}
        except OSError as error:
            yield from (MoveOutcome(move, MoveResult.FAILED, "error", str(error)) for move in moves)
            return
        run = ParallelRun(moves, members, self._places, self._mover.files_at_a_time, self._at_once)
        shared = self._mover.batch()
        outcomes: SimpleQueue[MoveOutcome | None] = SimpleQueue()
        futures: list[Future[None]] = []
        for _ in range(min(self._at_once, len(moves))):
            try:
                futures.append(self._threads.submit(self._work, run, halt, shared, outcomes))
            except RuntimeError as error:  # the system grants no thread: those that run end their files
                run.stop()
                futures.append(Future())
                futures[-1].set_exception(error)
            futures[-1].add_done_callback(lambda _: outcomes.put(None))
        try:
            for _ in futures:
                while (outcome := outcomes.get()) is not None:
                    yield outcome
        finally:
            # a caller that ends early must leave no thread that moves files
            run.stop()
            wait(futures)
        for future in futures:
            future.result()  # an exception of an engine must not be lost

    def examine(self, moves: Sequence[Move]) -> Iterator[MoveOutcome]:
        return self._mover.examine(moves)

    def _work(self, run: ParallelRun, halt: Halt, batch: DestinationState,
              outcomes: SimpleQueue[MoveOutcome | None]) -> None:
        while part := run.take():
            try:
                for outcome in self._mover.move_batch(part, halt, batch):
                    outcomes.put(outcome)
            finally:
                run.done(part)


class TargetSlots:
    """Number of threads that use each target and each pool."""

    def __init__(self, per_target: int) -> None:
        self.per_target = per_target
        self.busy: Counter[str] = Counter()
        self.changed = Condition()


class ParallelRun:
    """The moves of one call, each taken by one thread. A pool has the slots of all its targets together, because the
    target of a new file is not known before.
    """

    def __init__(self, moves: Sequence[Move], members: Mapping[str, int], places: TargetSlots, at_a_time: int,
                 threads: int) -> None:
        self._left = [(move, _slots_of(move)) for move in moves]
        self._members = members
        self._places = places
        # a few files are for all threads, not for one process
        self._at_a_time = max(1, min(at_a_time, -(-len(moves) // threads)))

    def take(self) -> list[Move]:
        """Take the next moves with free slots; waits for slots. Empty if no move is left, or after :meth:`stop`."""
        with self._places.changed:
            while self._left:
                part, named = self._fitting()
                if part:
                    self._places.busy.update(named)
                    return part
                self._places.changed.wait()
        return []

    def done(self, part: Sequence[Move]) -> None:
        with self._places.changed:
            self._places.busy.subtract(set().union(*map(_slots_of, part)))
            self._places.busy += Counter()  # removes zero counts
            self._places.changed.notify_all()

    def stop(self) -> None:
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
            # files of one part share a slot
            if all(self._places.busy[place] < self._limit(place) for place in places - named):
                part.append(move)
                named |= places
            else:
                left.append((move, places))
        self._left = left
        return part, named

    def _limit(self, place: str) -> int:
        targets = self._members.get(place.removeprefix(_POOL_PREFIX), 1) if place.startswith(_POOL_PREFIX) else 1
        return self._places.per_target * max(1, targets)  # the engine refuses an empty pool


def _slots_of(move: Move) -> set[str]:
    size_bytes = move.size_bytes or 0
    return set(move.targets) | {_POOL_PREFIX + pool for pool in bytes_per_pool(move.layout, size_bytes) if pool}
