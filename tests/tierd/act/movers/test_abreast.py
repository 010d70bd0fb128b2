"""Lanes side by side, and how many of them a target has to bear."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.act.movers.minilustre import FLASH, HDD, POOLS
from tierd.act.movers.abreast import Abreast, waves
from tierd.act.movers.outcome import Move, Outcome, Result
from tierd.act.standstill import Halt, never

MEMBERS = {pool: len(members) for pool, members in POOLS.items()}
TARGETS = tuple(f"lustre-OST000{n}" for n in range(6))
some_moves = st.lists(st.builds(
    lambda n, targets, layout: Move(f"/{n}", layout, size_bytes=10, targets=frozenset(targets)),
    st.integers(0, 10**6), st.sets(st.sampled_from(TARGETS), max_size=3), st.sampled_from((FLASH, HDD)),
), max_size=40)


@given(some_moves, st.integers(1, 8), st.integers(1, 3))
def test_every_move_once_and_never_more_lanes_than_a_target_bears(
        moves: list[Move], at_once: int, per_target: int) -> None:
    done: list[Move] = []
    for lanes in waves(moves, MEMBERS, at_once, per_target):
        assert 1 <= len(lanes) <= at_once
        for target in TARGETS:
            assert sum(any(target in move.targets for move in lane) for lane in lanes) <= per_target
        for pool, layout in (("flash", FLASH), ("hdd", HDD)):
            assert sum(any(move.layout is layout for move in lane) for lane in lanes) <= per_target * MEMBERS[pool]
        done += [move for lane in lanes for move in lane]
    assert Counter(map(id, done)) == Counter(map(id, moves))


def test_unlike_targets_are_moved_side_by_side() -> None:
    moves = [Move(f"/{n}", HDD, targets=frozenset((TARGETS[n % 2],))) for n in range(8)]
    (lanes,) = waves(moves, MEMBERS, at_once=4, per_target=1)
    assert [len(lane) for lane in lanes] == [4, 4]


class Engine:
    """Waits in each move until as many are at work as should be."""

    def __init__(self, together: int) -> None:
        self.barrier = threading.Barrier(together, timeout=10)
        self.fails = False

    def move(self, moves: Sequence[Move], halt: Halt = never) -> Iterator[Outcome]:
        for move in moves:
            if self.fails:
                raise RuntimeError("a mistake")
            self.barrier.wait()
            yield Outcome(move, Result.GAVE_WAY if halt() else Result.DONE)

    def examine(self, moves: Sequence[Move]) -> Iterator[Outcome]:
        return (Outcome(move, Result.MOVABLE) for move in moves)


def test_lanes_really_run_at_the_same_time() -> None:
    moves = [Move(f"/{n}", HDD, targets=frozenset((TARGETS[n % 2],))) for n in range(8)]
    mover = Abreast(Engine(2), lambda: POOLS, 2, 1)
    assert {o.move.path for o in mover.move(moves)} == {m.path for m in moves}
    assert {o.result for o in mover.move(moves, lambda: "stop")} == {Result.GAVE_WAY}


def test_a_mistake_in_an_engine_is_not_swallowed() -> None:
    engine = Engine(1)
    engine.fails = True
    with pytest.raises(RuntimeError):
        list(Abreast(engine, lambda: POOLS, 2, 1).move([Move("/a", HDD)]))


def test_without_pools_nothing_is_tried() -> None:
    def fails() -> dict[str, tuple[str, ...]]:
        raise OSError(5, "no answer")

    (outcome,) = Abreast(Engine(1), fails, 2, 1).move([Move("/a", HDD)])
    assert outcome.result is Result.FAILED
