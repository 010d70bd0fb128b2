"""Moves to the MDT and from it: which engine makes them, and what an interruption leaves."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from lustre.layout.model import Component, Layout, explain, same_shape
from tests.tierd.act.movers.both_engines import ENGINES, Both
from tests.tierd.act.movers.fakelfs import FakeLfs
from tests.tierd.act.movers.minicalls import Killed, just_before
from tests.tierd.act.movers.minilustre import FLASH, HDD
from tests.tierd.later import raising
from tierd.act.movers.engines import EitherEngine
from tierd.act.movers.moves import Move, MoveResult
from tierd.model import MetadataSpace
from tierd.refusal import Reason

END = 64 << 10
ON_MDT = Layout((Component(0, END, pattern="mdt"), Component(END, None, "hdd")))
ROOMY = MetadataSpace(1 << 40, 1 << 39, 10**6, 10**6)
LONG_AGO = 1_500_000_000


class World(Both):
    """A file that is old, one engine, and the other one for what that cannot move."""

    def __init__(self, first: str = "lfs", spaces: Sequence[MetadataSpace] = (ROOMY,)) -> None:
        super().__init__(first, data=b"data" * 100, metadata=lambda: spaces)
        self.node.mtime_ns = self.node.store.mtime_ns = LONG_AGO * 10**9
        self.lfs.layouts |= FakeLfs(self.lustre, (ON_MDT,)).layouts
        other = ENGINES["lease" if first == "lfs" else "lfs"](self, self.destination)
        self.engine = EitherEngine(self.engine, other)

    @property
    def layout(self) -> Layout:
        return self.node.store.layout


@pytest.mark.parametrize("first", ["lfs", "lease"])
def test_either_engine_moves_a_file_to_the_mdt_and_back(first: str) -> None:
    """The client that wrote the mirror shows the time of its writes until it loses the lock of the data."""
    world = World(first)
    assert world.move(ON_MDT).result is MoveResult.DONE
    assert world.calls.status_of("/a").mtime_ns // 10**9 == LONG_AGO
    assert same_shape(world.layout, ON_MDT)
    assert len(world.lfs.commands) == 1, "only lfs can move it there"
    back = world.move(HDD)
    assert back.result is MoveResult.DONE, back.detail
    assert same_shape(world.layout, HDD)
    # after lfs no attribute shows whether the file was written since
    assert len(world.lfs.commands) == 1, "only lease keeps the modification time"
    assert world.lustre.contents("/a") == b"data" * 100
    assert world.node.mtime_ns // 10**9 == LONG_AGO


def test_no_file_goes_to_an_mdt_that_may_remove_its_newest_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 2.15, a write between the steps of ``lfs`` would be lost."""
    world = World()
    assert isinstance(world.engine, EitherEngine)
    monkeypatch.setattr(world.engine.first, "_mirrors", lambda: False)
    outcome = world.move(ON_MDT)
    assert (outcome.result, outcome.reason) == (MoveResult.REFUSED, Reason.MIRRORED)
    assert not world.lfs.commands


def test_no_file_is_left_to_the_lfs_of_2_14_which_overlooks_write_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    assert isinstance(world.engine, EitherEngine)
    monkeypatch.setattr(world.engine.first, "release", lambda: (2, 14))
    assert world.move(FLASH).result is MoveResult.DONE
    assert not world.lfs.commands


@pytest.mark.parametrize("first", ["lfs", "lease"])
def test_either_engine_moves_a_file_of_another_project_than_its_directory_gives(first: str) -> None:
    world = World(first)
    world.node.project = 8
    moved = world.move(FLASH)
    assert moved.result is MoveResult.DONE, moved.detail
    assert world.node.store.owner == (1001, 1001, 8)
    assert not world.lfs.commands, "lfs leaves new objects with the project of the directory: the wrong one"


@pytest.mark.parametrize("first", ["lfs", "lease"])
def test_a_dry_run_says_what_would_be_done(first: str) -> None:
    world = World(first)
    (outcome,) = world.engine.examine([Move("/a", ON_MDT)])
    assert outcome.result is MoveResult.MOVABLE
    assert not world.lfs.commands


@pytest.mark.parametrize(("spaces", "reason"), [
    ((), Reason.MDT_UNKNOWN),
    ((ROOMY, MetadataSpace(10_000, 2_500, 10, 10)), Reason.MDT_ROOM),
])
def test_no_file_goes_to_an_mdt_without_room(spaces: tuple[MetadataSpace, ...], reason: Reason) -> None:
    world = World(spaces=spaces)
    outcome = world.move(ON_MDT)
    assert (outcome.result, outcome.reason) == (MoveResult.REFUSED, reason)
    assert not world.lfs.commands


@pytest.mark.parametrize("step", ["merge", "resync", "split"])
def test_a_killed_move_leaves_the_old_layout(step: str) -> None:
    world = World()
    world.lfs.before = just_before(step, raising(Killed()), occurrence=None)
    outcome = world.move(ON_MDT)
    assert outcome.result in {MoveResult.FAILED, MoveResult.GAVE_WAY}
    assert explain(world.layout) == explain(HDD)
    assert world.lustre.contents("/a") == b"data" * 100


def test_the_mirror_of_a_file_that_took_the_name_stays() -> None:
    """``lfs mirror split`` removes the mirror of the file that was moved, whatever its name is by then."""
    world = World()

    def replaced() -> None:
        world.lustre.rename("/a", "/b")
        other = world.lustre.create("/a", b"other").store
        first, second = (replace(other.layout.components[0], mirror_id=number) for number in (1, 2))
        other.layout = replace(other.layout, components=(first, second), mirror_count=2)
        raise Killed

    world.lfs.before = just_before("resync", replaced, occurrence=None)
    assert world.move(ON_MDT).result is MoveResult.FAILED
    assert world.lustre.names["/a"].store.layout.mirror_count == 2
    assert explain(world.layout) == explain(HDD)


def test_a_writer_wins_and_the_mirror_that_is_left_is_named() -> None:
    world = World()
    world.lfs.before = just_before("split", lambda: world.lustre.open_writer("/a"), occurrence=None)
    outcome = world.move(ON_MDT)
    assert (outcome.result, outcome.reason) == (MoveResult.FAILED, "mirror-left")
    assert outcome.detail.endswith(
        f"remove the second: lfs mirror split -d --mirror-id 2 /mnt/lustre/.lustre/fid/{world.node.fid}")
    assert world.lustre.contents("/a") == b"data" * 100
