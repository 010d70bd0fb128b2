"""Mirrors through the gate: the journal knows which are tierd's, what they cost, and how they are undone."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.layout.model import Layout, mirrors, one_mirror
from tests.tierd.act.gate_world import FAST, World
from tests.tierd.act.movers.both_engines import PFL
from tests.tierd.act.movers.fakelfs import MOUNT, FakeLfs
from tests.tierd.act.movers.minicalls import MiniCalls
from tests.tierd.act.movers.minilustre import HDD, MiniClock
from tierd.act.movers.lfs import LfsMover
from tierd.act.movers.moves import Mover
from tierd.act.movers.space_and_quota import Destination
from tierd.act.orders import requeue_refusal
from tierd.act.undo import close_unfinished
from tierd.acts import Outcome
from tierd.config.act import ActSettings, Limits, Rate
from tierd.config.settings import Settings
from tierd.mirrors.mover import MirrorMover
from tierd.refusal import Reason

TO_FLASH = Layout(tuple(replace(part, mirror_id=2) for part in PFL.components), mirror_count=2)
SIZE = 100


class MirrorWorld(World):
    """Files ``/0`` … on disks, and the mover of mirrors behind the gate."""

    def __init__(self, folder: Path, limits: Limits = FAST, *, dry_run: bool = False) -> None:
        super().__init__(folder, limits, dry_run, engine=self.with_mirrors)

    def with_mirrors(self, engine: Mover) -> Mover:
        self.lfs = FakeLfs(self.lustre, (PFL, HDD))
        destination = Destination(self.port.pools, self.port.space, self.lustre.quota)
        return MirrorMover(engine, LfsMover(  # type: ignore[arg-type]
            MiniCalls(self.lustre), destination, MOUNT.__add__, self.lfs, clock=MiniClock(self.lustre)))

    def extend(self, path: str = "/0") -> Outcome:
        self.lustre.clock_ns += 60_000_000_000
        self.submit(path, layout=TO_FLASH)
        return self.ended()

    def split(self, path: str = "/0") -> Outcome:
        self.lustre.clock_ns += 60_000_000_000
        self.submit(path, layout=one_mirror(mirrors(self.layout(path))[0]))
        return self.ended()

    def ended(self) -> Outcome:
        (outcome,) = self.gate.pump(self.clock.at + 2.5)
        return outcome.result

    def undone(self, number: int) -> bool:
        entry = self.journal.entry(number)
        assert entry is not None
        return self.undo(entry, "by root").outcome == Outcome.UNDONE

    def layout(self, path: str = "/0") -> Layout:
        return self.lustre.names[path].store.layout

    def pools(self, path: str = "/0") -> list[str]:
        return [part.pool for part in self.layout(path).components]


@pytest.fixture
def world(tmp_path: Path) -> MirrorWorld:
    found = MirrorWorld(tmp_path)
    found.lustre.directory_project = 7
    found.files(2)
    return found


def test_a_file_that_is_on_flash_already_needs_no_mirror(world: MirrorWorld) -> None:
    world.lustre.create("/2", b"x" * SIZE, PFL)
    assert world.extend("/2") is Outcome.ALREADY
    assert not world.lfs.commands


def test_a_mirror_that_waits_is_planned_again_after_a_restart_and_not_moved(world: MirrorWorld) -> None:
    world.submit("/0", layout=TO_FLASH)
    (stored,) = world.journal.queue.all()
    settings = Settings(act=ActSettings(dry_run=False))
    why = requeue_refusal(stored, stored.stamp.fs, settings, lambda _: True, stored.stamp.since)
    assert why is not None
    assert why.reason is Reason.REMEDIATION_OVER


def test_mirrors_that_tierd_did_not_make_stay(world: MirrorWorld) -> None:
    world.extend()
    world.lustre.names["/1"].store.layout = world.layout("/0")
    assert world.split("/1") is Outcome.REFUSED
    assert world.pools("/1") == ["hdd", "flash", "hdd"]
    world.split("/0")
    world.lustre.names["/0"].store.layout = world.layout("/1")
    assert world.split("/0") is Outcome.REFUSED, "its own mirror is gone: somebody made another one"


def test_undo_removes_the_mirror_and_an_undone_split_makes_it_again(world: MirrorWorld) -> None:
    world.extend()
    assert world.undone(1)
    assert world.pools() == ["hdd"]
    assert [command[2] for command in world.lfs.commands] == ["extend", "split"]
    world.extend()
    world.split()
    assert world.undone(3)
    assert world.pools() == ["hdd", "flash", "hdd"]


def test_a_file_without_a_pool_gets_its_layout_back(world: MirrorWorld) -> None:
    node = world.lustre.names["/0"]
    node.store.layout = replace(node.store.layout, components=tuple(
        replace(part, pool="") for part in node.store.layout.components))
    assert world.extend() is Outcome.DONE
    assert world.undone(1)
    assert world.pools() == [""]


def test_an_extension_takes_its_bytes_from_the_budgets_and_a_split_none(tmp_path: Path) -> None:
    world = MirrorWorld(tmp_path, Limits(1e6, 1e12, per_pool=Rate(1e6, 40.0), per_target=Rate(1e6, 1e12)))
    world.lustre.directory_project = 7
    world.files(1)
    assert world.extend() is Outcome.DONE
    assert world.split() is Outcome.DONE, "the budget of the pools is overdrawn"


class Died(BaseException):
    """SIGKILL of tierd, and of its lfs."""


def lived(world: MirrorWorld) -> None:
    """A mirror is made, the file is written, the mirror is removed, made again, and removed once more."""
    world.extend()
    world.lustre.write("/0", b"new", 0)
    world.split()
    for number in (2, 1):
        world.lustre.clock_ns += 60_000_000_000
        world.undone(number)


def test_after_a_kill_at_any_step_of_lfs_the_journal_knows_its_mirrors(tmp_path: Path) -> None:
    survived = step = 0
    while not survived:
        step += 1
        (tmp_path / str(step)).mkdir()
        world = MirrorWorld(tmp_path / str(step))
        world.lustre.directory_project = 7
        world.files(1)
        world.lfs.before = counted(step)
        try:
            lived(world)
            survived = step
        except Died:
            world.lustre.process_died()
        list(close_unfinished(world.journal, world.port, 2.0))
        where = f"killed at step {step}"
        layout, fid = world.layout(), world.port.status("/0").fid
        assert world.lustre.contents("/0")[:3] in (b"new", b"\0\0\0"), where
        assert world.journal.made_mirrors(fid, layout) == (layout.mirror_count == 2), where
        world.journal.close()
    assert survived > 15


def counted(last: int) -> Callable[[str, int], None]:
    steps: list[str] = []

    def before(name: str, _: int) -> None:
        steps.append(name)
        if len(steps) == last:
            raise Died

    return before
