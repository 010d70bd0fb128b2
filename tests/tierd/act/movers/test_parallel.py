"""Several threads side by side, and how many of them a target has to bear."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.filesystem import Quota
from tests.tierd.act.movers.minilustre import FLASH, HDD, POOLS
from tests.tierd.later import raising
from tierd.act.movers.inspection import FileEngine
from tierd.act.movers.moves import Halt, Move, MoveOutcome, MoveResult, outcome_of_each
from tierd.act.movers.parallel import ParallelMover, ParallelRun, TargetSlots, name_thread_as_process
from tierd.act.movers.space_and_quota import Destination, DestinationState
from tierd.refusal import Reason, Refusal

MEMBERS = {pool: len(members) for pool, members in POOLS.items()}
TARGETS = tuple(f"lustre-OST000{n}" for n in range(6))
some_moves = st.lists(st.builds(
    lambda n, targets, layout: Move(f"/{n}", layout, size_bytes=10, targets=frozenset(targets)),
    st.integers(0, 10**6), st.sets(st.sampled_from(TARGETS), max_size=3), st.sampled_from((FLASH, HDD)),
), max_size=40)


@given(some_moves, st.integers(1, 8), st.integers(1, 3), st.integers(1, 5), st.randoms(use_true_random=False))
def test_every_move_once_and_never_more_threads_than_a_target_bears(
        moves: list[Move], at_once: int, per_target: int, at_a_time: int, random: object) -> None:
    """Threads end their parts in any order; who is free takes what fits, and only waits when nothing does."""
    run = ParallelRun(moves, MEMBERS, TargetSlots(per_target), at_a_time, at_once)
    done: list[Move] = []
    parts: list[list[Move]] = []
    while True:
        while len(parts) < at_once and (part := _take_if_any(run)):
            parts.append(part)
            assert 1 <= len(part) <= at_a_time
        if not parts:
            break
        for target in TARGETS:
            assert sum(any(target in move.targets for move in part) for part in parts) <= per_target
        for pool, layout in (("flash", FLASH), ("hdd", HDD)):
            assert sum(any(move.layout is layout for move in part) for part in parts) <= per_target * MEMBERS[pool]
        part = parts.pop(random.randrange(len(parts)))  # type: ignore[attr-defined]
        run.done(part)
        done += part
    assert Counter(map(id, done)) == Counter(map(id, moves))


def _take_if_any(run: ParallelRun) -> list[Move]:
    """What a thread would take at once, without waiting for others."""
    part, named = run._fitting()
    run._places.busy.update(named)
    return part


def test_a_pool_without_targets_holds_up_nobody() -> None:
    moves = [Move("/a", HDD), Move("/b", FLASH)]
    run = ParallelRun(moves, {"hdd": 0, "flash": 2}, TargetSlots(1), 1, 2)
    assert [run.take(), run.take(), run.take()] == [[moves[0]], [moves[1]], []]


class Engine(FileEngine):
    """Does something at each move."""

    def __init__(self, work: Callable[[Move], object] = lambda move: None) -> None:
        self.work = work
        self.threads: set[int] = set()
        self.batches = 0

    def batch(self) -> DestinationState:
        self.batches += 1
        return DestinationState(Destination(lambda: POOLS, dict, lambda kind, owner, pool: Quota(0, 0, 0)))

    def move_batch(self, moves: Iterable[Move], halt: Halt, batch: DestinationState) -> Iterator[MoveOutcome]:
        for move in moves:
            self.threads.add(threading.get_ident())
            self.work(move)
            yield MoveOutcome(move, MoveResult.GAVE_WAY if halt() else MoveResult.DONE)

    def examine(self, moves: Sequence[Move]) -> Iterator[MoveOutcome]:
        return (MoveOutcome(move, MoveResult.MOVABLE) for move in moves)


def test_threads_work_at_the_same_time_last_and_ask_once_for_all() -> None:
    moves = [Move(f"/{n}", HDD, targets=frozenset((TARGETS[n % 2],))) for n in range(8)]
    both_at_work = threading.Barrier(2, timeout=10)
    engine = Engine(lambda move: both_at_work.wait())
    mover = ParallelMover(engine, lambda: POOLS, 2, 1)
    assert {o.move.path for o in mover.move(moves)} == {m.path for m in moves}
    assert {o.result for o in mover.move(moves, lambda: Refusal(Reason.STOPPING, "stop"))} == {MoveResult.GAVE_WAY}
    assert len(engine.threads) == 2
    assert engine.batches == 2


def test_nobody_waits_for_a_slow_file_of_others() -> None:
    """With waves, a file that takes long would hold up all those behind it, whose targets are idle."""
    slow, go_on = threading.Event(), threading.Event()

    def work(move: Move) -> None:
        if move.path == "/slow":
            slow.set()
            assert go_on.wait(10)

    moves = [Move("/slow", HDD, targets=frozenset(("a",)))]
    moves += [Move(f"/{n}", FLASH, targets=frozenset(("b",))) for n in range(20)]
    outcomes = ParallelMover(Engine(work), lambda: POOLS, 2, 1).move(moves)
    first = [next(outcomes).move.path for _ in range(20)]
    assert slow.is_set()
    assert "/slow" not in first
    go_on.set()
    assert [outcome.move.path for outcome in outcomes] == ["/slow"]


def test_two_callers_share_threads_and_limits() -> None:
    """The mover may be used from any thread, and from several."""
    lock, busy, most = threading.Lock(), Counter[str](), Counter[str]()

    def count(move: Move) -> None:
        (target,) = move.targets
        with lock:
            busy[target] += 1
            most[target] = max(most[target], busy[target])
        with lock:
            busy[target] -= 1

    mover = ParallelMover(Engine(count), lambda: POOLS, 3, 1)
    moves = [Move(f"/{n}", HDD, targets=frozenset((TARGETS[n % 3],))) for n in range(60)]
    with ThreadPoolExecutor(2) as callers:
        found = list(callers.map(lambda _: len(list(mover.move(moves))), range(2)))
    assert (found, set(most.values())) == ([60, 60], {1})


def test_given_up_early_it_ends_the_files_at_work_and_begins_no_more() -> None:
    engine = Engine()
    outcomes = ParallelMover(engine, lambda: POOLS, 2, 1).move([Move(f"/{n}", HDD) for n in range(50)])
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]
    seen = ParallelMover(engine, lambda: POOLS, 2, 1).move([Move("/again", HDD)])
    assert [outcome.move.path for outcome in seen] == ["/again"]


def test_without_a_further_thread_the_file_at_work_has_its_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        if threads:
            at_work.wait(10)
            raise RuntimeError("can't start new thread")
        threads.append(thread)
        original(thread)

    threads: list[threading.Thread] = []
    original, at_work = threading.Thread.start, threading.Event()
    mover = ParallelMover(Engine(lambda _: at_work.set()), lambda: POOLS, at_once=2, per_target=2)
    monkeypatch.setattr(threading.Thread, "start", start)
    found = {each.move.path: each.result for each in outcome_of_each(mover.move, [Move("/a", HDD), Move("/b", FLASH)])}
    assert (len(found), found["/a"]) == (2, MoveResult.DONE)


def test_a_mistake_in_an_engine_is_not_swallowed() -> None:
    with pytest.raises(RuntimeError):
        list(ParallelMover(Engine(raising(RuntimeError("a mistake"))), lambda: POOLS, 2, 1).move([Move("/a", HDD)]))


def test_without_pools_nothing_is_tried() -> None:
    (outcome,) = ParallelMover(Engine(), raising(OSError(5, "no answer")), 2, 1).move([Move("/a", HDD)])
    assert outcome.result is MoveResult.FAILED


def thread_name() -> str:
    return Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_text(encoding="ascii")


def rename_thread(other: str) -> None:
    Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(other, encoding="ascii")


def test_without_procfs_it_continues(tmp_path: Path) -> None:
    name_thread_as_process(tmp_path)


def test_threads_of_a_mover_have_the_name_of_the_process() -> None:
    """The kernel, and so Lustre, knows them by it."""
    names: list[str] = []
    mover = ParallelMover(Engine(lambda move: names.append(thread_name())), lambda: POOLS, 2, 1)
    moves = [Move(f"/{number}", FLASH, targets=frozenset({f"t{number}"})) for number in range(4)]

    def moved() -> int:
        rename_thread("other")  # which threads inherit
        return len(list(mover.move(moves)))

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(moved).result() == 4
    assert set(names) == {Path("/proc/self/comm").read_text(encoding="ascii")}
