"""Acts that the gate passes or refuses, and conditions that do not stop it."""

import errno
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.errors import understood
from lustre.layout.model import Component, Layout
from lustre.layout.xattr import from_xattr
from tests.tierd.act.gate_world import DATA, FAST, FINDING, World
from tests.tierd.act.movers.minicalls import just_before
from tests.tierd.act.movers.minilustre import FLASH, HDD
from tests.tierd.later import raising
from tierd.act.dispatch import Dispatch
from tierd.act.gate import Gate
from tierd.act.guard import ActGuard
from tierd.act.limits import Budget, CircuitBreaker
from tierd.act.movers.moves import Halt, Move, MoveOutcome, Mover, never_halt
from tierd.act.queue import BATCH_MOVES, BATCH_MOVES_REMOTE
from tierd.act.undo import Undo, close_unfinished
from tierd.acts import ActKind, Outcome
from tierd.config.act import Rate
from tierd.model import Action
from tierd.refusal import Reason, Refusal


class OptedOut(ActGuard):
    """The owner of one file and one directory takes no part."""

    def refusal(self, action: Action) -> Refusal | None:
        theirs = action.path == "/0" or action.directory == "/d"
        return Refusal(Reason.OPTED_OUT, "the owner opted out") if theirs else None


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_act_that_the_guard_refuses_is_not_done_and_takes_no_bytes_of_the_budget(
        tmp_path: Path, dry_run: bool) -> None:
    world = World(tmp_path, replace(FAST, bytes_per_second=100.0, burst_seconds=1.0), dry_run)
    world.gate.queue.guard = world.gate.default_layouts.guard = OptedOut()
    assert (world.default().detail, world.port.defaults["/d"]) == ("the owner opted out", HDD)
    world.submit(*world.files(2))
    assert world.pump() == {"refused": 1, "dry-run" if dry_run else "done": 1}
    assert [(entry.place, entry.detail) for entry in world.journal.entries(Outcome.REFUSED)] == [
        ("/d", "the owner opted out"), ("/0", "the owner opted out")]
    assert world.pool("/0") == "hdd"
    assert world.gate.completed_acts.reasons == {(Outcome.REFUSED, "the owner opted out"): 2}


class ToOtherNodes(Dispatch):
    """Moves at once what would be sent to movers on other nodes."""

    remote = True

    def __init__(self, world: World) -> None:
        super().__init__(world.engine)
        self.batches: list[int] = []

    def begin(self, moves: Sequence[Move], halt: Halt) -> None:
        self.batches.append(len(moves))
        super().begin(moves, halt)


def test_a_batch_for_other_nodes_fills_messages_for_many_targets(world: World) -> None:
    """A message has files of one target: a batch of 16 would give each of 16 targets a message with one file."""
    dispatch = ToOtherNodes(world)
    world.gate = Gate(world.port, world.engine, Budget(FAST, 1000.0), CircuitBreaker(), world.journal,
                      world.clock, False, dispatch=dispatch)
    world.submit(*world.files(BATCH_MOVES_REMOTE + 50))
    assert world.pump() == {"done": BATCH_MOVES_REMOTE + 50}
    assert dispatch.batches == [BATCH_MOVES_REMOTE, 50]


def test_a_target_that_is_busy_is_passed_over_for_others(tmp_path: Path) -> None:
    world = World(tmp_path, replace(FAST, per_target=Rate(1.0, 1e12), burst_seconds=1.0))
    names = world.files(6)
    world.lustre.pool_members["hdd"] = ("lustre-OST0005",)
    world.lustre.create("/elsewhere", DATA)
    world.submit(*names, "/elsewhere")  # the six lie on OST0002, the last on OST0005
    assert world.pump() == {"done": 2}
    assert (world.pool("/0"), world.pool("/elsewhere"), world.pool("/1")) == ("flash", "flash", "hdd")
    assert world.gate.queue.waits_for == "target lustre-OST0002: the limit of 1 files/s is reached"
    world.clock.at += 1.0
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
    left_alone = "already" if by == "look" else "refused"
    assert world.pump() == {left_alone: 1, "dry-run" if dry_run else "done": 1}


def test_a_directory_in_whose_place_somebody_put_a_link_is_left_alone(world: World) -> None:
    """Or a user could have tierd, which is root, change the directory of another."""
    world.port.defaults["/victim"] = HDD
    del world.port.defaults["/d"]
    world.port.links["/d"] = "/victim"
    outcome = world.default()
    assert (outcome.result, outcome.detail) == ("refused", "the path leads to /victim now")
    assert world.port.defaults == {"/victim": HDD}


def test_a_file_behind_a_link_in_the_place_of_a_directory_is_left_alone(world: World) -> None:
    """Mode and opt-out are those of the path: a user could have tierd move the files of another who takes no part."""
    world.lustre.create("/victim/0", DATA)
    world.lustre.names["/d/0"] = world.lustre.names["/victim/0"]  # /d is a symbolic link
    world.submit("/d/0")
    assert (world.pump(), world.pool("/victim/0")) == ({"refused": 1}, "hdd")
    assert world.journal.entries(Outcome.REFUSED)[0].detail == "the path leads to /victim/0 now"
    world.gate.submit([Action(ActKind.MIGRATE, FLASH, "", ("request", "root", "/d"), "/d", "/d/0", 100)], world.finding)
    assert world.pump() == {"done": 1}, "an administrator may name a file by a link"


@pytest.mark.parametrize(("names", "known", "result"), [
    ("/0 /this", 2, "refused"), ("/1 /this", 2, "done"), ("/this /0", 2, "refused"), ("/1 /this /2", 3, "done"),
    ("/1 /this /0", 3, "refused"), ("/1 /this /2", 2, "refused")])
def test_every_name_of_a_file_must_allow_its_move(world: World, names: str, known: int, result: str) -> None:
    world.gate.queue.guard, world.port.most_links = OptedOut(), known
    first, *others = names.split()
    world.lustre.create(first, DATA)
    for other in others:
        world.lustre.link(first, other)
    world.submit("/this")
    assert world.pump() == {result: 1}


def test_a_layout_of_a_later_release_is_refused_and_holds_nothing_up(
        world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = world.port.layout
    monkeypatch.setattr(world.port, "layout", lambda path: understood(
        from_xattr, b"\xd0\x0b\xd9\x0b" * 20) if path in {"/odd", "/d"} else layout(path))
    for path in ("/odd", "/plain"):
        world.lustre.create(path, DATA)
    world.submit("/odd", "/plain")
    outcome = world.default()
    assert (outcome.result, outcome.detail) == ("failed", "layout: unknown magic number 0xbd90bd0 at byte 0")
    assert [(o.action.path, o.result) for o in world.gate.pump(world.clock.at + 2.5)] == [
        ("/odd", "refused"), ("/plain", "done")]
    world.journal.intend(Action(ActKind.MIGRATE, FLASH, "", FINDING.key, "/", "/odd", 100), world.finding, HDD, 1.0,
                         dry_run=False)
    ((_, how, why),) = close_unfinished(world.journal, world.port, 2.0)
    assert (how, "unknown magic" in why) == ("interrupted", True)


def test_a_layout_lustre_cannot_have_is_a_failure_and_no_crash(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    impossible = ValueError("no file can be given the pattern 'compress'")
    monkeypatch.setattr(world.port, "set_default_layout", raising(impossible))
    outcome = world.default()
    assert (outcome.result, outcome.detail) == ("failed", "no file can be given the pattern 'compress'")


def test_a_dry_run_looks_as_closely_as_a_move_and_changes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, dry_run=True)
    names = world.files(3)
    world.lustre.names["/1"].pin = b"- pool: hdd\n"
    world.submit(*names, "/gone")
    assert world.pump() == {"dry-run": 2, "refused": 1, "gone": 1}
    assert {world.pool(name) for name in names} == {"hdd"}
    assert "swap_and_close" not in world.calls.made
    assert "the file is pinned" in world.journal.entries(Outcome.REFUSED)[0].detail
    assert world.default().result == "dry-run"
    assert world.port.defaults["/d"] == HDD


def test_moves_wait_while_nothing_is_mounted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.gate.queue.guard = OptedOut()
    world.submit("/gone")
    with monkeypatch.context() as unmounted:
        unmounted.setattr(world.gate.queue.guard, "blocked_by", lambda: Refusal(Reason.CLAIM_UNREADABLE, "no mount"))
        assert (world.pump(), world.gate.waiting) == ({}, 1)
    assert world.pump() == {"gone": 1}


def test_the_pause_file_is_seen_between_two_files_of_a_batch(world: World) -> None:
    world.submit(*world.files(10))
    world.calls.before = just_before("swap_and_close", world.pause.touch, occurrence=3)
    assert world.pump() == {"done": 3, "gave-way": 7}
    assert world.gate.waiting == 7
    assert world.default().result == "refused"
    assert world.pump() == {}
    world.pause.unlink()
    assert world.pump() == {"done": 7}


@pytest.mark.parametrize("by_number", [False, True])
def test_a_move_that_is_dropped_while_its_batch_is_moved_does_not_wait_again(world: World, *, by_number: bool) -> None:
    world.submit(*world.files(10))

    def dropped() -> None:
        world.gate.drop_by_number(world.finding) if by_number else world.gate.drop(FINDING.key)
        world.pause.touch()

    world.calls.before = just_before("swap_and_close", dropped)
    assert world.pump() == {"done": 1, "gave-way": 9}
    world.pause.unlink()
    assert (world.gate.waiting, len(world.journal.queue), world.pump()) == (0, 0, {})


def test_a_kill_leaves_each_move_in_the_queue_or_among_the_acts(world: World) -> None:
    world.submit(*world.files(2))
    world.journal.db.raw.execute("CREATE TRIGGER kill BEFORE INSERT ON actions WHEN (SELECT count(*) FROM actions) = 1 "
                                 "BEGIN SELECT RAISE(ABORT, 'killed'); END")
    with pytest.raises(sqlite3.IntegrityError):
        world.pump()
    assert (len(list(world.journal.queue.all())), world.journal.entries()) == (2, [])


def test_a_file_that_is_queued_twice_is_moved_once(world: World) -> None:
    world.files(1)
    world.submit("/0", "/0")
    world.submit("/0")
    assert world.pump() == {"done": 1}


def test_a_move_onto_a_target_that_is_drained_is_refused(world: World) -> None:
    world.files(2)
    named = Layout((Component(pool="hdd", stripe_count=1, ost_list=(4,)),), composite=False)
    other = Layout((Component(pool="hdd", stripe_count=1, ost_list=(3,)),), composite=False)
    world.gate.queue.closed = {"lustre-OST0004": "is being drained, or was"}
    world.submit("/0", layout=named)
    world.submit("/1", layout=other)
    world.pump()
    (refused,) = world.journal.entries(Outcome.REFUSED)
    assert (refused.place, refused.detail) == ("/0", "lustre-OST0004 is being drained, or was")


class Broken:
    """An engine with an error of its own: it moves one file, and raises at the next."""

    def __init__(self, engine: Mover, error: Exception) -> None:
        self._engine, self._error, self.ended = engine, error, False

    def move(self, moves: Sequence[Move], halt: Halt = never_halt) -> Iterator[MoveOutcome]:
        try:
            yield from self._engine.move(moves[:1], halt)
            raise self._error
        finally:
            self.ended = True

    def examine(self, moves: Sequence[Move]) -> Iterator[MoveOutcome]:
        yield from self._engine.examine(moves[:1])
        raise self._error


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), RuntimeError("a mistake")])
def test_an_error_of_the_engine_itself_ends_its_moves_as_failed(tmp_path: Path, error: Exception,
                                                                dry_run: bool) -> None:
    world = World(tmp_path, dry_run=dry_run, engine=lambda engine: Broken(engine, error))
    world.submit(*world.files(3))
    assert world.pump() == {"dry-run" if dry_run else "done": 1, "failed": 2}
    assert (world.gate.under_way, world.gate.waiting) == (0, 0)
    failed = list(world.journal.entries(Outcome.FAILED))
    assert [entry.place for entry in failed] == ["/1", "/2"]
    assert all(f"the mover failed: {type(error).__name__}: " in entry.detail for entry in failed)
    assert list(world.journal.unfinished()) == []


def test_errors_of_the_engine_itself_open_the_circuit_breaker(tmp_path: Path) -> None:
    world = World(tmp_path, engine=lambda engine: Broken(engine, OSError(errno.EIO, "Input/output error")))
    world.submit(*world.files(2 * BATCH_MOVES))
    world.pump()
    assert world.gate.operating_state.tripped.endswith("of the last moves failed")


def test_the_engine_ends_when_the_journal_fails(world: World) -> None:
    """Its threads went on to move files, which the next start took for unchanged."""
    engine = Broken(world.engine, RuntimeError("a mistake"))
    world.gate.dispatch = Dispatch(engine)
    world.calls.before = lambda *_: world.journal.db.execute("PRAGMA query_only = ON")
    world.submit(*world.files(2))
    with pytest.raises(sqlite3.OperationalError) as caught:
        world.pump()
    assert engine.ended, caught


def test_an_error_of_the_engine_during_an_undo_leaves_the_act_done(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.submit(*world.files(1))
    world.pump()
    (entry,) = world.journal.entries(Outcome.DONE)

    class Unable(Broken):
        def move(self, moves: Sequence[Move], halt: Halt = never_halt) -> Iterator[MoveOutcome]:
            raise self._error
            yield

    undo = Undo(world.port, Unable(world.engine, RuntimeError("a mistake")), world.journal, world.clock)
    result = undo(entry, "by tierctl")
    assert (result.outcome, result.detail.startswith("the mover failed: RuntimeError: a mistake;")) == ("failed", True)
    assert [each.outcome for each in world.journal.entries()] == ["done"]
    assert world.undo(entry, "by tierctl")[0] == "undone"
