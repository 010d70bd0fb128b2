"""The gate over the Lustre in memory, with a real engine behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.errors import of_errno
from lustre.layout import Component, Layout, same_shape
from lustre.layout_xattr import understood
from tests.tierd.act.miniport import MiniPort
from tests.tierd.act.movers.minicalls import MiniCalls
from tests.tierd.act.movers.minilustre import FLASH, HDD, MiniLustre
from tierd.act.breaker import Breaker
from tierd.act.breaker import Settings as BreakerSettings
from tierd.act.budget import Budget, Limits, Rate
from tierd.act.endings import Outcome
from tierd.act.gate import Gate
from tierd.act.journal import UNDOING, Journal
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.room import Destination
from tierd.act.recovery import close_unfinished
from tierd.act.standstill import Standstill
from tierd.act.undo import Undo
from tierd.act.way_back import wish
from tierd.model import Action, Finding

FINDING = Finding("noisy-neighbour", 1.0, "m", "s", ("lustre-OST0002",), "…", {"slowdown": 1.5}, ("/d",))
DATA = b"data" * 25
FAST = Limits(1e6, 1e12, per_pool=Rate(1e6, 1e12), per_target=Rate(1e6, 1e12))


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> bool:
        self.time += seconds
        return False


class World:
    """Files ``/0`` … on HDD targets in turn, and a directory ``/d``."""

    def __init__(self, folder: Path, limits: Limits = FAST, dry_run: bool = False) -> None:
        self.lustre = MiniLustre()
        self.port = MiniPort(self.lustre)
        self.port.defaults["/d"] = HDD
        self.clock = Clock()
        self.journal = Journal(folder / "journal.sqlite")
        self.pause = folder / "pause"
        self.calls = MiniCalls(self.lustre)
        self.engine = LeaseMover(self.calls, Destination(self.port.pools, self.port.space, self.lustre.quota))
        still = Standstill(str(self.pause))
        self.gate = Gate(self.port, self.engine, Budget(limits, 1000.0), Breaker(BreakerSettings()), self.journal,
                         self.clock, dry_run, standstill=still)
        self.undo = Undo(self.port, self.engine, self.journal, self.clock, still.by_file)
        self.finding = self.journal.found(FINDING)

    def files(self, count: int, size: int = 100) -> list[str]:
        for number in range(count):
            self.lustre.create(f"/{number}", bytes((number % 251,)) * size)
        return [f"/{number}" for number in range(count)]

    def submit(self, *paths: str, layout: Layout = FLASH) -> None:
        self.gate.submit([Action("migrate", layout, "because", FINDING.key, "/", path, 100) for path in paths],
                         self.finding)

    def default(self) -> Outcome:
        (outcome,) = self.gate.submit([Action("set-default-layout", FLASH, "because", FINDING.key, "/d")], self.finding)
        return outcome

    def pump(self) -> Counter[str]:
        return Counter(outcome.result for outcome in self.gate.pump(self.clock.time + 2.5))

    def pool(self, path: str) -> str:
        return self.lustre.names[path].store.layout.components[0].pool


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_every_move_is_in_the_journal_with_what_was_there_before(world: World) -> None:
    world.submit(*world.files(40))
    assert world.pump() == {"done": 40}
    entries = list(world.journal.entries("done"))
    assert [entry.place for entry in entries] == [f"/{n}" for n in range(40)]
    assert {entry.fid for entry in entries} == {node.fid for node in world.lustre.names.values()}
    assert all(entry.layout_before is not None and same_shape(entry.layout_before, HDD) for entry in entries)


def test_a_target_that_is_busy_is_passed_over_for_others(tmp_path: Path) -> None:
    world = World(tmp_path, replace(FAST, per_target=Rate(1.0, 1e12), burst_seconds=1.0))
    names = world.files(6)
    world.lustre.pool_members["hdd"] = ("lustre-OST0005",)
    world.lustre.create("/elsewhere", DATA)
    world.submit(*names, "/elsewhere")  # the six lie on OST0002, the last on OST0005
    assert world.pump() == {"done": 2}
    assert (world.pool("/0"), world.pool("/elsewhere"), world.pool("/1")) == ("flash", "flash", "hdd")
    assert world.gate.waits_for == "target lustre-OST0002: 1 files a second are reached"
    world.clock.time += 1.0
    assert world.pump() == {"done": 1}
    assert (world.pool("/1"), world.gate.waiting) == ("flash", 4)


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("by", ["look", "engine"])
def test_a_large_file_that_is_left_alone_holds_up_no_others(tmp_path: Path, by: str, dry_run: bool) -> None:
    """By its bytes it would take every limit for hours."""
    slow = Rate(1e6, 100.0)
    world = World(tmp_path, replace(FAST, bytes_per_second=100.0, per_pool=slow, per_target=slow, burst_seconds=1.0),
                  dry_run)
    world.lustre.create("/large", b"x" * 100_000, FLASH if by == "look" else HDD)  # for the engine: it has grown
    world.lustre.create("/small", DATA)
    world.submit("/large", "/small")
    assert world.pump() == {"refused": 1, "dry-run" if dry_run else "done": 1}


def test_a_directory_in_whose_place_somebody_put_a_link_is_left_alone(world: World) -> None:
    """Or a user could have tierd, which is root, change the directory of another."""
    world.port.defaults["/victim"] = HDD
    del world.port.defaults["/d"]
    world.port.links["/d"] = "/victim"
    outcome = world.default()
    assert (outcome.result, outcome.detail) == ("refused", "the path leads to /victim now")
    assert world.port.defaults == {"/victim": HDD}


class Odd(MiniPort):
    """Some files have a layout that a later release made."""

    odd = frozenset({"/odd", "/d"})

    def layout(self, path: str) -> Layout | None:
        return understood(b"\xd0\x0b\xd9\x0b" * 20) if path in self.odd else super().layout(path)


def test_a_layout_of_a_later_release_is_refused_and_holds_nothing_up(world: World) -> None:
    port = Odd(world.lustre)
    port.defaults["/d"] = HDD
    gate = Gate(port, world.engine, Budget(FAST, 1000.0), Breaker(BreakerSettings()), world.journal, world.clock, False)
    world.lustre.create("/odd", DATA)
    world.lustre.create("/plain", DATA)
    actions = [Action("migrate", FLASH, "", FINDING.key, "/", path, 100) for path in ("/odd", "/plain")]
    (outcome,) = gate.submit([Action("set-default-layout", FLASH, "", FINDING.key, "/d"), *actions], world.finding)
    assert (outcome.result, outcome.detail) == ("failed", "layout: unknown magic number 0xbd90bd0 at byte 0")
    assert [(o.action.path, o.result) for o in gate.pump(world.clock.time + 2.5)] == [
        ("/odd", "refused"), ("/plain", "done")]
    world.journal.intend(actions[0], world.finding, HDD, 1.0, dry_run=False)
    ((_, how, why),) = close_unfinished(world.journal, port, 2.0)
    assert (how, "unknown magic" in why) == ("interrupted", True)


def test_a_layout_lustre_cannot_have_is_a_failure_and_no_crash(world: World) -> None:
    class Strict(MiniPort):
        def set_default_layout(self, directory: str, layout: Layout | None) -> None:
            raise ValueError("no file can be given the pattern 'compress'")

    port = Strict(world.lustre)
    port.defaults["/d"] = HDD
    gate = Gate(port, world.engine, Budget(FAST, 1000.0), Breaker(BreakerSettings()), world.journal, world.clock, False)
    (outcome,) = gate.submit([Action("set-default-layout", FLASH, "", FINDING.key, "/d")], world.finding)
    assert (outcome.result, outcome.detail) == ("failed", "no file can be given the pattern 'compress'")


def test_a_dry_run_looks_as_closely_as_a_move_and_changes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, dry_run=True)
    names = world.files(3)
    world.lustre.names["/1"].pin = b"- pool: hdd\n"
    world.submit(*names, "/gone")
    assert world.pump() == {"dry-run": 2, "refused": 1, "gone": 1}
    assert {world.pool(name) for name in names} == {"hdd"}
    assert "swap_and_close" not in world.calls.made
    assert "it is pinned" in next(world.journal.entries("refused")).detail
    assert world.default().result == "dry-run"
    assert world.port.defaults["/d"] == HDD


def test_the_pause_file_is_seen_between_two_files_of_a_batch(world: World) -> None:
    world.submit(*world.files(10))
    seen = 0

    def before(name: str, _: int) -> None:
        nonlocal seen
        seen += name == "swap_and_close"
        if name == "swap_and_close" and seen == 3:
            world.pause.touch()

    world.calls.before = before
    assert world.pump() == {"done": 3, "gave-way": 7}
    assert world.gate.waiting == 7
    assert world.default().result == "refused"
    assert world.pump() == {}
    world.pause.unlink()
    assert world.pump() == {"done": 7}


def test_who_waits_twice_is_moved_once(world: World) -> None:
    world.files(1)
    world.submit("/0", "/0")
    world.submit("/0")
    assert world.pump() == {"done": 1}


@pytest.mark.parametrize("change", [
    lambda w: w.lustre.write("/0", b"x" * 99999, 0), lambda w: w.lustre.unlink("/0"),
    lambda w: w.lustre.rename("/1", "/0"),
], ids=["grown", "gone", "another"])
def test_what_changed_since_it_was_planned_is_left_alone(world: World, change: Callable[[World], None]) -> None:
    world.files(2)
    fid = world.lustre.names["/0"].fid
    layout = Layout((Component(0, 4096, "flash"), Component(4096, None, "hdd")))
    world.gate.submit([Action("migrate", layout, "", FINDING.key, "/", "/0", 100, fid)], world.finding)
    change(world)
    assert world.pump()["done"] == 0


# -- undo -------------------------------------------------------------------------------------------------------------


def test_a_move_is_taken_back_and_only_of_the_file_that_was_moved(world: World) -> None:
    world.submit(*world.files(2))
    world.pump()
    first, second = world.journal.entries("done")
    assert world.undo(first, "by tierctl") == ("undone", "by tierctl")
    assert (world.pool("/0"), world.lustre.contents("/0")) == ("hdd", bytes(100))
    world.lustre.rename("/0", "/1")
    assert world.undo(second, "by tierctl")[0] == "refused"
    assert [e.outcome for e in world.journal.entries()] == ["undone", "done"]


def test_a_file_that_had_no_pool_goes_back_to_the_pool_its_objects_were_in(world: World) -> None:
    node = world.lustre.create("/plain", DATA, Layout((Component(),), composite=False))
    assert [o.ost_index for o in node.store.layout.components[0].objects] == [5]
    world.submit("/plain")
    assert world.pump() == {"done": 1}
    (entry,) = world.journal.entries("done")
    assert world.undo(entry, "")[0] == "undone"
    assert world.pool("/plain") == "hdd"
    assert world.lustre.contents("/plain") == DATA


def test_without_such_a_pool_people_decide(world: World) -> None:
    world.lustre.create("/plain", DATA, Layout((Component(),), composite=False))
    world.submit("/plain")
    world.pump()
    world.lustre.pool_members["hdd"] = ("lustre-OST0002",)
    (entry,) = world.journal.entries("done")
    result, detail = world.undo(entry, "")
    assert result == "refused"
    assert "lay on OST0005, and no pool holds all of these" in detail
    assert [e.outcome for e in world.journal.entries()] == ["done"]


def test_components_without_objects_go_where_the_one_before_went() -> None:
    lustre = MiniLustre()
    placed = lustre.create("/a", b"", Layout((Component(0, 1 << 20),))).store.layout.components[0]
    before = Layout((placed, Component(1 << 20, None, stripe_count=4)))
    assert [c.pool for c in wish(before, lustre.pool_members).components] == ["hdd", "hdd"]
    with pytest.raises(ValueError, match="nothing says where it lay"):
        wish(Layout((Component(),), composite=False), lustre.pool_members)


def test_an_undo_that_fails_leaves_the_act_done(world: World) -> None:
    world.submit(*world.files(1))
    world.pump()
    world.lustre.open_writer("/0")
    (entry,) = world.journal.entries("done")
    assert world.undo(entry, "")[0] == "gave-way"
    (entry,) = world.journal.entries("done")
    assert entry.detail.startswith("not undone: ")


# -- what was under way when tierd died -------------------------------------------------------------------------------


def test_unfinished_acts_are_closed_by_what_is_found(world: World) -> None:
    names = world.files(4)
    world.submit(*names)
    world.pump()
    world.default()
    world.undo(next(world.journal.entries()), "")
    world.lustre.unlink("/2")
    world.lustre.rename("/3", "/2")
    world.journal._db.execute("UPDATE actions SET outcome = NULL")
    found = {entry.place: outcome for entry, outcome, _ in close_unfinished(world.journal, world.port, 2.0)}
    assert found == {"/0": "interrupted", "/1": "done", "/2": "gone", "/3": "gone", "/d": "done"}
    assert list(world.journal.entries("")) == []


def test_an_undo_that_was_under_way_is_closed_either_way(world: World) -> None:
    world.submit(*world.files(2))
    world.pump()
    first, second = world.journal.entries()
    world.undo(first, "")
    for entry in (first, second):
        world.journal.undoing(entry.id, 2.0)
    assert [e.outcome for e in world.journal.entries()] == [UNDOING, UNDOING]
    assert [outcome for _, outcome, _ in close_unfinished(world.journal, world.port, 2.0)] == ["undone", "done"]


def test_what_cannot_be_looked_at_is_closed_as_interrupted(world: World) -> None:
    world.submit(*world.files(1))
    world.pump()
    world.journal._db.execute("UPDATE actions SET outcome = NULL")

    def fails(name: str, _: int) -> None:
        raise of_errno(5, name)

    world.port.calls.before = fails
    ((_, outcome, detail),) = close_unfinished(world.journal, world.port, 2.0)
    assert outcome == "interrupted"
    assert "cannot be looked at" in detail


def test_a_journal_of_an_earlier_release_is_taken_over(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.submit(*world.files(1))
    world.pump()
    world.journal._db.execute("DROP INDEX actions_of_file")
    world.journal._db.execute("ALTER TABLE actions DROP COLUMN fid")
    world.journal.close()
    (entry,) = Journal(tmp_path / "journal.sqlite").entries()
    assert (entry.place, entry.fid, entry.outcome) == ("/0", None, "done")
