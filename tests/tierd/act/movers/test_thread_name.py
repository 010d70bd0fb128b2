"""By which name the kernel, and so Lustre, knows the threads of a mover."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lustre.filesystem import Quota
from tests.tierd.act.movers.minilustre import FLASH
from tierd.act.movers.moves import Halt, Move, MoveOutcome, MoveResult, never_halt
from tierd.act.movers.parallel import ParallelMover, name_thread_as_process
from tierd.act.movers.space_and_quota import Destination, DestinationState


def name() -> str:
    return Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_text(encoding="ascii")


def take(other: str) -> None:
    Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(other, encoding="ascii")


def test_a_thread_with_a_name_of_its_own_gives_it_up() -> None:
    def named() -> tuple[str, str]:
        take("tierd-mover_0")
        before = name()
        name_thread_as_process()
        return before, name()

    with ThreadPoolExecutor(1) as pool:
        before, after = pool.submit(named).result()
    assert (before, after) == ("tierd-mover_0\n", Path("/proc/self/comm").read_text(encoding="ascii"))


def test_without_procfs_it_goes_on(tmp_path: Path) -> None:
    name_thread_as_process(tmp_path)


class Engine:
    """Tells in which thread it works, by the kernel's name."""

    def __init__(self) -> None:
        self.names: list[str] = []

    files_at_a_time = 1

    def batch(self) -> DestinationState:
        return DestinationState(Destination(dict, dict, lambda kind, owner, pool: Quota(0, 0, 0)))

    def move(
        self, moves: Iterable[Move], halt: Halt = never_halt, batch: DestinationState | None = None
    ) -> Iterator[MoveOutcome]:
        for move in moves:
            self.names.append(name())
            yield MoveOutcome(move, MoveResult.DONE)

    def examine(self, moves: Sequence[Move]) -> Iterator[MoveOutcome]:
        raise NotImplementedError


def test_engines_abreast_work_by_the_name_of_the_process() -> None:
    engine = Engine()
    moves = [Move(f"/{number}", FLASH, targets=frozenset({f"t{number}"})) for number in range(4)]

    def moved() -> int:
        take("other")  # which threads inherit
        return len(list(ParallelMover(engine, lambda: {"flash": ("a", "b", "c", "d")}, 2, 1).move(moves)))

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(moved).result() == 4
    assert set(engine.names) == {Path("/proc/self/comm").read_text(encoding="ascii")}
