"""Several engines at work at the same time, and never more than a few of them at one target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

from tierd.act.movers.outcome import Move, Mover, Outcome, Result
from tierd.act.movers.room import needed
from tierd.act.movers.thread_name import as_the_process
from tierd.act.standstill import Halt, never

Pools = Callable[[], Mapping[str, tuple[str, ...]]]
Lane = list[Move]


class Abreast:
    """Implements :class:`~tierd.act.movers.outcome.Mover` over an engine that any number of threads may use."""

    def __init__(self, mover: Mover, pools: Pools, at_once: int, per_target: int) -> None:
        self._mover = mover
        self._pools = pools
        self._at_once = at_once
        self._per_target = per_target

    def move(self, moves: Sequence[Move], halt: Halt = never) -> Iterator[Outcome]:
        """Move these, lane beside lane; outcomes come in any order."""
        try:
            members = {pool: len(targets) for pool, targets in self._pools().items()}
        except OSError as error:
            yield from (Outcome(move, Result.FAILED, "error", str(error), error=error) for move in moves)
            return
        for wave in waves(moves, members, self._at_once, self._per_target):
            yield from self._wave(wave, halt)

    def examine(self, moves: Sequence[Move]) -> Iterator[Outcome]:
        """Look, and move nothing."""
        return self._mover.examine(moves)

    def _wave(self, lanes: list[Lane], halt: Halt) -> Iterator[Outcome]:
        told: SimpleQueue[Outcome | None] = SimpleQueue()

        def work(lane: Lane) -> None:
            try:
                for outcome in self._mover.move(lane, halt):
                    told.put(outcome)
            finally:
                told.put(None)

        with ThreadPoolExecutor(len(lanes), "tierd-mover", as_the_process) as threads:
            futures = [threads.submit(work, lane) for lane in lanes]
            for _ in lanes:
                while (outcome := told.get()) is not None:
                    yield outcome
        for future in futures:
            future.result()  # a mistake in an engine is not to be swallowed


def waves(moves: Sequence[Move], members: Mapping[str, int], at_once: int, per_target: int) -> Iterator[list[Lane]]:
    """The moves in lanes that may run side by side; those that fit into none wait for the next wave.

    A lane does its moves one after the other, so a target is busy with as many moves as there are lanes that name it. A
    pool bears as many lanes as its targets do together, for nobody knows before which of them a file will be put on.
    """
    left = list(moves)
    while left:
        lanes: list[Lane] = [[] for _ in range(at_once)]
        named: list[set[str]] = [set() for _ in lanes]
        waiting = []
        for move in left:
            places = _places(move)
            fitting = [n for n in range(at_once) if _fits(places - named[n], named, members, per_target)]
            if not fitting:
                waiting.append(move)
                continue
            lane = min(fitting, key=lambda n: (len(lanes[n]), n))
            lanes[lane].append(move)
            named[lane] |= places
        yield [lane for lane in lanes if lane]
        left = waiting


def _places(move: Move) -> set[str]:
    """Targets it reads from, and pools it writes to. Names of pools are told apart by a colon."""
    size_bytes = move.size_bytes or 0
    return set(move.targets) | {f"pool:{pool}" for pool in needed(move.layout, size_bytes) if pool}


def _fits(more: set[str], named: list[set[str]], members: Mapping[str, int], per_target: int) -> bool:
    """Whether one more lane may name all of these."""
    lanes = Counter(place for places in named for place in places if place in more)
    return all(lanes[place] < per_target * (members.get(place[5:], 1) if place.startswith("pool:") else 1)
               for place in more)
