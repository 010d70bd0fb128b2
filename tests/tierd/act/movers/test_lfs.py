"""The engine that runs ``lfs``: what it asks for, and that it believes nothing but its own eyes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pytest

from lustre.filesystem import FileFlags
from lustre.layout.model import Layout
from lustre.mounted_calls import MountedCalls
from tests.lustre.fake_llapi import Handle
from tests.tierd.act.movers.fakelfs import MOUNT, FakeLfs
from tests.tierd.act.movers.minicalls import Killed, MiniCalls, just_before
from tests.tierd.act.movers.minilustre import FLASH, HDD, PFL, MiniLustre
from tests.tierd.later import PassingClock, raising
from tierd.act.movers.lfs import CommandRunner, FinishedCommand, LfsMover, command_runner
from tierd.act.movers.moves import Move, MoveOutcome, MoveResult
from tierd.act.movers.space_and_quota import Destination
from tierd.refusal import Reason, Refusal


class World:
    def __init__(self) -> None:
        self.lustre = MiniLustre()
        self.lustre.directory_project = 7
        self.lfs = FakeLfs(self.lustre, (FLASH, HDD))
        self.clock = PassingClock(2e9)  # much later than the times of the files
        self.seconds_per_file = 0.0
        self.mover = self.mover_with(self.run)

    def mover_with(self, run: CommandRunner, lfs: str = "lfs") -> LfsMover:
        destination = Destination(lambda: self.lustre.pool_members, self.lustre.space, self.lustre.quota)
        return LfsMover(MiniCalls(self.lustre), destination, MOUNT.__add__, run, lfs=lfs, clock=self.clock)

    def run(self, command: Sequence[str]) -> FinishedCommand:
        self.clock.wait(self.seconds_per_file * sum(word.startswith(MOUNT) for word in command))
        return self.lfs(command)

    def files(self, count: int) -> list[str]:
        names = [f"/{number}" for number in range(count)]
        for name in names:
            self.lustre.create(name, name.encode())
        return names

    def files_of_processes(self) -> list[int]:
        return [sum(word.startswith(MOUNT) for word in command) for command in self.lfs.commands]

    def move(self, *paths: str, layout: Layout = FLASH) -> list[MoveOutcome]:
        return list(self.mover.move([Move(path, layout) for path in paths]))


@pytest.fixture
def world() -> Iterator[World]:
    found = World()
    yield found
    found.lustre.settle()
    assert {id(s) for s in found.lustre.live_stores()} == {id(n.store) for n in found.lustre.names.values()}


def test_one_process_moves_many_files_without_ever_blocking(world: World) -> None:
    names = world.files(200)
    outcomes = world.move(*names)
    assert {o.result for o in outcomes} == {MoveResult.DONE}
    assert world.files_of_processes() == [4, 8, 16, 32, 64, 64, 12]
    assert all(c[:7] == ("lfs", "migrate", "--non-block", "-c", "1", "-p", "flash") for c in world.lfs.commands)
    assert all(world.lustre.contents(name) == name.encode() for name in names)


def test_an_encrypted_file_stays_before_2_15_whose_lfs_gives_the_copy_a_key_of_its_own(world: World) -> None:
    world.files(1)
    world.lustre.names["/0"].flags = FileFlags.ENCRYPTED
    mover = LfsMover(world.mover.calls, world.mover._destination, MOUNT.__add__, world.run, clock=world.clock,
                     mirrors=lambda: False)
    (outcome,) = mover.move([Move("/0", FLASH)])
    assert (outcome.result, outcome.reason, world.lfs.commands) == (MoveResult.REFUSED, "encrypted", [])


def test_a_process_gets_the_files_of_two_seconds(world: World) -> None:
    world.seconds_per_file = 0.3
    names = world.files(30)
    assert {o.result for o in world.move(*names)} == {MoveResult.DONE}
    assert world.files_of_processes() == [4, 6, 6, 6, 6, 2]
    world.seconds_per_file = 5.0  # the targets get loaded
    assert {o.result for o in world.move(*names, layout=HDD)} == {MoveResult.DONE}
    assert world.files_of_processes()[6:] == [6] + [1] * 24


def test_no_process_begins_when_moves_are_halted(world: World) -> None:
    """Nor once the deadline of a message has passed, as after an examination that hung."""
    world.seconds_per_file = 1.0
    names = world.files(16)
    halted = Refusal(Reason.JOB_IDLE, "the job has gone")
    moves = [Move(name, FLASH) for name in names]
    gone = world.clock.now() + 8.0
    outcomes = list(world.mover.move(moves, lambda: halted if world.clock.now() > gone else None))
    assert [o.result for o in outcomes] == [MoveResult.DONE] * 10 + [MoveResult.GAVE_WAY] * 6
    fenced = world.mover.move([replace(move, fence=lambda: halted) for move in moves[10:]])
    assert {o.reason for o in (*outcomes[10:], *fenced)} == {"halted"}
    assert world.files_of_processes() == [4, 2, 2, 2]


def test_each_file_is_examined_just_before_its_process(world: World) -> None:
    """The last files of a batch wait for many processes: meanwhile their owner may mirror or pin them."""
    names = world.files(10)
    node = world.lustre.names["/9"]
    added = replace(node.store.layout.components[0], mirror_id=2)
    mirrored = Layout((replace(added, mirror_id=1), added), mirror_count=2)
    world.lfs.before = lambda name, _: setattr(node.store, "layout", mirrored)
    outcomes = {outcome.move.path: outcome for outcome in world.move(*names)}
    assert (outcomes["/9"].result, outcomes["/9"].reason) == (MoveResult.REFUSED, "mirrored")
    assert node.store.layout is mirrored
    assert sum(each.result is MoveResult.DONE for each in outcomes.values()) == 9


@pytest.mark.parametrize(("project", "flags"), [
    (0, FileFlags.NONE), (7, FileFlags.NONE), (0, FileFlags.ENCRYPTED)], ids=["by FID", "project", "encrypted"])
def test_another_file_that_takes_the_name_is_not_moved(world: World, project: int, flags: FileFlags) -> None:
    """Nor what a symbolic link leads to. By FID, new objects would have no project, and would not be encrypted."""
    world.lustre.directory_project = project
    node, other = world.lustre.create("/a", b"data"), world.lustre.create("/other", b"mirrored")
    node.project = node.shown_project = project
    other.store.owner = node.store.owner = (1001, 1001, project)
    node.flags = flags

    def renamed() -> None:
        world.lustre.rename("/a", "/b")
        world.lustre.rename("/other", "/a")

    world.lfs.before = just_before("open_for_swap", renamed)
    world.move("/a")
    found = [each.store.layout.components[0].pool for each in (node, other)]
    assert found == (["hdd", "flash"] if project or flags else ["flash", "hdd"])


def test_files_go_by_name_where_lfs_cannot_copy_by_fid(world: World) -> None:
    """Where a subdirectory is mounted, ``.lustre`` is not there."""
    world.lustre.directory_project = 0
    for name, by_fid in (("/a", False), ("/b", True), ("/c", False)):  # an MDT is away at first, and later
        world.mover._by_fid = partial(bool, by_fid)
        node = world.lustre.create(name, b"data")
        node.project = node.shown_project = 0
        assert [each.result for each in world.move(name)] == [MoveResult.DONE]
    assert [command[-1].startswith(f"{MOUNT}/.lustre/fid/") for command in world.lfs.commands] == [False, True, True]


def test_the_whole_layout_is_requested_not_only_a_pool(world: World) -> None:
    world.lustre.create("/a", b"data")
    (outcome,) = world.move("/a", layout=PFL)
    assert outcome.result is MoveResult.REFUSED  # 32K is no multiple of 64K: what lfs would not take is not tried
    assert not world.lfs.commands


def test_one_busy_file_does_not_hold_up_the_others(world: World) -> None:
    for name in ("/a", "/b", "/c"):
        world.lustre.create(name, b"data")
    world.lustre.open_writer("/b")
    outcomes = world.move("/a", "/b", "/c")
    assert [o.result for o in outcomes] == [MoveResult.DONE, MoveResult.GAVE_WAY, MoveResult.DONE]
    assert outcomes[1].reason == "busy"
    assert outcomes[1].not_copied == 1.0
    assert [o.detail for o in outcomes if o.result is MoveResult.DONE] == ["", ""]


def test_the_bytes_that_lfs_copied_before_a_broken_lease_are_unknown(world: World) -> None:
    world.lustre.create("/a", b"data" * 1000)
    world.lfs.before = lambda name, _: world.lustre.write("/a", b"x", 0) if name == "write" else None
    (outcome,) = world.move("/a")
    assert (outcome.result, outcome.reason, outcome.not_copied) == (MoveResult.GAVE_WAY, "busy", 0.0)


def test_words_after_success_and_success_after_nothing(world: World) -> None:
    world.lustre.create("/a", b"data")
    world.lfs.chatter = "lfs migrate: cannot get UNLOCK lease, ext 8 for [0x1:0x2:0x0]: Invalid argument (22)\n"
    assert [o.result for o in world.move("/a")] == [MoveResult.DONE]
    world.mover = world.mover_with(lambda command: FinishedCommand(0, ""))
    (outcome,) = world.move("/a", layout=HDD)
    assert (outcome.result, outcome.reason) == (MoveResult.FAILED, "not-moved")


def test_a_pool_emptied_under_way_spills_and_is_seen(world: World) -> None:
    world.lustre.create("/a", b"data")
    world.lfs.before = lambda *_: world.lustre.pool_members.update(flash=())
    (outcome,) = world.move("/a")
    assert outcome.result is MoveResult.DOUBTFUL
    assert "outside pool" in outcome.detail


def test_killed_in_the_middle(world: World) -> None:
    for name in ("/a", "/b", "/c"):
        world.lustre.create(name, b"data")
    world.lfs.before = just_before("open_for_swap", raising(Killed()), occurrence=2)
    outcomes = world.move("/a", "/b", "/c")
    assert [o.result for o in outcomes] == [MoveResult.DONE, MoveResult.FAILED, MoveResult.FAILED]
    assert "-9" in outcomes[1].detail


def test_names_of_any_bytes(world: World) -> None:
    for name in ("/with\nnewline", "/--dash", "/#hash", "/uml\udce4ut", "/a: b"):
        world.lustre.create(name, b"data")
    names = list(world.lustre.names)
    assert {o.result for o in world.move(*names)} == {MoveResult.DONE}


def test_what_is_no_path_ends_no_batch(world: World) -> None:
    world.lustre.create("/a", b"data")
    world.mover = LfsMover(MountedCalls(Handle().library(), "/nowhere"), Destination(dict, dict, world.lustre.quota),
                           MOUNT.__add__, world.run, clock=world.clock)
    assert [o.result for o in world.move("/\ud800", "/b/../c", "/a")] == [
        MoveResult.FAILED, MoveResult.FAILED, MoveResult.GAVE_WAY]


@pytest.mark.parametrize(("run", "words"), [
    (lambda _: FinishedCommand(1, "lfs migrate: odd words\n" * 300), "lfs exited with 1: lfs migrate: odd words"),
    (command_runner(10.0), "cannot be run"),
], ids=["not a word about the file", "not there"])
def test_an_lfs_that_fails(world: World, run: CommandRunner, words: str) -> None:
    world.lustre.create("/\udcff\x1b[2J", b"data")
    world.mover = world.mover_with(run, "/nowhere/lfs")
    (outcome,) = world.move("/\udcff\x1b[2J")
    assert outcome.result is MoveResult.FAILED
    assert words in outcome.detail
