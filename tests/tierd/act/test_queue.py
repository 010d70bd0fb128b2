"""The queue of moves: no finding waits for the moves of another, and no move goes that was dropped meanwhile."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lustre.filesystem import FileStatus
from lustre.layout.model import Component, Layout
from tests.tierd.act.gate_world import DATA, FAST, FINDING, World
from tests.tierd.act.movers.minilustre import FLASH, HDD
from tierd.acts import ActKind, Outcome
from tierd.config.act import MoverSettings, Rate
from tierd.model import Action, FindingKey
from tierd.refusal import Reason, Refusal

OTHER = ("noisy-neighbour", "other", "s")
COUNT = 12
MANY = 300


def submit(world: World, key: FindingKey, paths: Sequence[str], size: int = 100, directory: str = "/") -> None:
    for path in paths:
        world.lustre.create(path, b"x" * size, HDD)
    world.gate.submit([Action(ActKind.MIGRATE, FLASH, "because", key, directory, path, size) for path in paths],
                      world.finding)


def test_held_moves_delay_no_others(world: World) -> None:
    submit(world, FINDING.key, [f"/held{number}" for number in range(MANY)])
    submit(world, OTHER, ["/other"])
    world.gate.queue.hold([FINDING.key])
    assert [act.action.path for act in world.gate.pump(world.clock.at + 2.5)] == ["/other"]
    world.gate.queue.hold([])
    assert world.pump() == {"done": MANY}


def test_an_order_does_not_wait_behind_findings(world: World) -> None:
    submit(world, FINDING.key, [f"/found{number}" for number in range(MANY)])
    submit(world, ("request", "root", "/wanted"), ["/wanted"])
    acts = world.gate.pump(world.clock.at + 2.5, requests_only=True)
    assert [act.action.path for act in acts] == ["/wanted"]


def test_no_number_of_delayed_moves_at_the_head_holds_back_the_rest_of_a_finding(tmp_path: Path) -> None:
    slow = replace(FAST, per_target=Rate(0.001, 1e12), burst_seconds=1.0)
    world = World(tmp_path, slow)
    submit(world, FINDING.key, [f"/{number}" for number in range(MANY)])
    world.lustre.pool_members["hdd"] = ("lustre-OST0005",)
    submit(world, FINDING.key, ["/behind"], directory="/elsewhere")
    moved = []
    for _ in range(3):
        moved += [act.action.path for act in world.gate.pump(world.clock.at + 2.5)]
        world.clock.at += 1.0
    assert moved == ["/0", "/behind"]


@pytest.mark.parametrize(("kind", "stripes", "undoes", "moved"), [
    ("striping", 4, None, False), ("striping", 2, None, True), ("request", 4, None, True), ("striping", 4, 1, True)])
def test_a_restripe_makes_no_file_narrower(world: World, kind: str, stripes: int, undoes: int | None,
                                           moved: bool) -> None:
    """An undo goes back to fewer, also of a file that has grown since it was moved: it had one byte then."""
    world.lustre.create("/wide", DATA, Layout((Component(pool="hdd", stripe_count=stripes),), composite=False))
    new = Layout((Component(pool="hdd", stripe_count=3),), composite=False)
    world.gate.submit([Action(ActKind.MIGRATE, new, "", (kind, "j", ""), "/d", "/wide", undoes or 0, undoes=undoes)],
                      world.finding)
    assert world.pump() == {"done" if moved else "already": 1}


def test_a_delayed_move_costs_no_request_until_its_limit_ends(tmp_path: Path) -> None:
    world = World(tmp_path, replace(FAST, per_target=Rate(0.001, 1e12), burst_seconds=1.0))
    submit(world, FINDING.key, [f"/{number}" for number in range(MANY)])
    for _ in range(3):
        world.gate.pump(world.clock.at + 2.5)
    requests = 0

    def counted(_: str) -> FileStatus:
        nonlocal requests
        requests += 1
        raise AssertionError("a request")

    world.port.status = counted  # type: ignore[method-assign, assignment]
    assert world.gate.pump(world.clock.at + 2.5) == []
    assert (requests, world.gate.waiting, world.gate.queue.delay_of(FINDING.key) is not None) == (0, MANY - 1, True)


def test_an_error_during_a_batch_loses_no_move(world: World) -> None:
    submit(world, FINDING.key, ["/0", "/1"])

    def idle(action: Action) -> Refusal | None:
        if action.path == "/1":
            raise OSError(5, "Input/output error")
        return None

    world.gate.queue.jobs.idle = idle  # type: ignore[method-assign]
    with pytest.raises(OSError, match="Input/output"):
        world.gate.pump(world.clock.at + 2.5)
    assert world.gate.waiting == 2
    world.gate.queue.jobs.idle = lambda _: None  # type: ignore[method-assign, assignment]
    assert world.pump() == {"done": 2}


def test_findings_take_turns_at_a_rate_of_one_file(tmp_path: Path) -> None:
    world = World(tmp_path, replace(FAST, files_per_second=1.0, burst_seconds=1.0))
    submit(world, FINDING.key, ["/a0", "/a1", "/a2"])
    submit(world, OTHER, ["/b0"])
    moved = []
    for _ in range(4):
        moved += [act.action.path for act in world.gate.pump(world.clock.at + 0.5)]
        world.clock.at += 1.0
    assert moved == ["/a0", "/b0", "/a1", "/a2"]


def test_files_that_no_longer_exist_end_the_turn_of_their_finding(world: World) -> None:
    world.gate.submit([Action(ActKind.MIGRATE, FLASH, "because", FINDING.key, "/", f"/gone{number}", 100)
                       for number in range(MANY)], world.finding)
    submit(world, OTHER, ["/b0"])
    looks: list[str] = []
    status = world.port.status
    world.port.status = lambda path: (looks.append(path), status(path))[1]  # type: ignore[method-assign]
    world.gate.pump(world.clock.at + 2.5)
    assert "/b0" in looks[:4]


def slow_looks(world: World) -> None:
    status = world.port.status

    def slow_status(path: str) -> FileStatus:
        world.clock.wait(0.9)
        return status(path)

    world.port.status = slow_status  # type: ignore[method-assign]


def test_every_thread_of_the_mover_gets_a_file_where_examining_one_takes_long(world: World) -> None:
    submit(world, FINDING.key, [f"/{number}" for number in range(COUNT)])
    slow_looks(world)
    assert len(world.gate.pump(world.clock.at + 0.5)) >= MoverSettings().at_once


def test_files_that_no_longer_exist_do_not_delay_a_step_where_examining_one_takes_long(world: World) -> None:
    """A neighbour deletes its files sooner than they are moved: hundreds of them wait when it has gone."""
    world.gate.submit([Action(ActKind.MIGRATE, FLASH, "because", FINDING.key, "/", f"/gone{number}", 100)
                       for number in range(MANY)], world.finding)
    slow_looks(world)
    skipped = 0
    while world.gate.waiting:
        before = world.clock.at
        skipped += len(world.gate.pump(before + 2.5))
        assert world.clock.at - before < 8.0
        assert len(world.journal.queue) == world.gate.waiting == MANY - skipped
    assert skipped == MANY


@settings(max_examples=60)
@given(owners=st.lists(st.booleans(), min_size=COUNT, max_size=COUNT), gone=st.sets(st.integers(0, COUNT - 1)),
       at_look=st.integers(0, 2 * COUNT), directory=st.booleans())
def test_a_move_dropped_during_its_check_is_neither_done_nor_kept(
        owners: list[bool], gone: set[int], at_look: int, directory: bool) -> None:
    with TemporaryDirectory() as folder:
        world = World(Path(folder))
        other = world.journal.add_finding(replace(FINDING, aggressor="other"))
        for number, ours in enumerate(owners):
            path = f"/{number}"
            if number not in gone:
                world.lustre.create(path, DATA, HDD)
            key = FINDING.key if ours else OTHER
            world.gate.submit([Action(ActKind.MIGRATE, FLASH, "because", key, "/d" if number % 2 else "/e", path, 100)],
                              world.finding if ours else other)
        looks, dropped = 0, set[str]()
        status = world.port.status

        def looked(path: str) -> FileStatus:
            nonlocal looks
            looks += 1
            if looks == at_look:
                dropped.update(a.path for a in world.gate.drop(FINDING.key, "/d" if directory else ""))
            return status(path)

        world.port.status = looked  # type: ignore[method-assign]
        world.pump()
        moved = {entry.place for entry in world.journal.entries(Outcome.DONE)}
        assert moved.isdisjoint(dropped)
        assert len(moved | dropped) >= COUNT - len(gone), "each was moved, dropped, or gone"
        assert (world.gate.waiting, len(world.journal.queue)) == (0, 0)
        world.journal.close()


def test_moves_of_an_earlier_run_wait_until_they_are_queued_again(tmp_path: Path) -> None:
    before = World(tmp_path)
    submit(before, FINDING.key, ["/a", "/b", "/late"])
    submit(before, OTHER, ["/c", "/d"])
    before.journal.close()
    world = World(tmp_path)
    world.gate.queue.planned_again = lambda move, *_: replace(move, layout=FLASH)
    world.gate.queue.earlier = {move.path: move for move in world.journal.queue.all()}
    assert (list(world.gate.queue.earlier), world.gate.waiting) == (["/a", "/b", "/late", "/c", "/d"], 5)
    assert world.pump() == {}
    assert [action.path for action in world.gate.drop(OTHER)] == ["/c", "/d"], "before they are queued"
    for path in ("/a", "/d"):  # stored in the journal, and not to be removed with those of before
        submit(world, OTHER, [path])
    world.lustre.create("/b", DATA, HDD)
    world.gate.requeue(dict.fromkeys(("/a", "/d", "/late"), Refusal(Reason.OUT_OF_DATE, "late")))
    assert world.gate.queue.by_finding() == {OTHER: 2, FINDING.key: 1}
    assert sorted(move.path for move in world.journal.queue.all()) == ["/a", "/b", "/d"]
    assert world.gate.not_requeued == {"late": 1}
    world.gate.drop(OTHER)
    assert world.pump() == {"done": 1}
    assert (world.gate.waiting, world.journal.queue.all()) == (0, [])
