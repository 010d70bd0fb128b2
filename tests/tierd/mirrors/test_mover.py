"""Mirrors on flash over the Lustre in memory: extension, resync and split, with writers and kills between."""

from dataclasses import replace
from pathlib import Path

import pytest

from lustre.filesystem import FileFlags, Hsm, HsmFlags, Quota
from lustre.layout.model import Component, Layout, in_sync, mirrors, one_mirror, with_mirror, without_objects
from tests.tierd.act import gate_world
from tests.tierd.act.gate_world import FAST
from tests.tierd.act.movers.both_engines import PFL, Both
from tests.tierd.act.movers.fakelfs import MOUNT, FakeLfs
from tests.tierd.act.movers.minicalls import Killed, MiniCalls, just_before
from tests.tierd.act.movers.minilustre import HDD, PAGE, MiniClock
from tests.tierd.later import raising
from tierd.act.movers.lfs import FinishedCommand, LfsMover
from tierd.act.movers.moves import Move, MoveOutcome, Mover, MoveResult
from tierd.act.movers.space_and_quota import Destination
from tierd.act.orders import requeue_refusal
from tierd.act.undo import close_unfinished
from tierd.acts import Outcome
from tierd.config.act import ActSettings, Limits, Rate
from tierd.config.settings import Settings
from tierd.mirrors.mover import MirrorMover
from tierd.refusal import Reason, Refusal

TO_FLASH = Layout(tuple(replace(part, mirror_id=2) for part in PFL.components), mirror_count=2)


class World(Both):
    """A file ``/a`` on disks, and the mover of mirrors."""

    def __init__(self, layout: Layout = HDD, data: bytes = b"x" * 2 * PAGE) -> None:
        super().__init__("lfs", layout, data)
        assert isinstance(self.engine, LfsMover)
        self.lfs_engine = self.engine
        self.engine = MirrorMover(self.engine, self.engine)

    @property
    def layout(self) -> Layout:
        return self.node.store.layout

    def change(self, wanted: Layout, *, own: bool = True) -> MoveOutcome:
        (outcome,) = self.engine.move((Move("/a", wanted, self.node.fid, own_mirrors=own),))
        assert not self.lustre.descriptors, "it left files open"
        assert self.lustre.contents("/a") == self.data
        return outcome

    def extend(self) -> MoveOutcome:
        return self.change(with_mirror(self.layout, TO_FLASH), own=False)

    def split(self, *, own: bool = True) -> MoveOutcome:
        return self.change(one_mirror(mirrors(self.layout)[0]), own=own)

    def write(self) -> None:
        self.data = b"new" + self.data[3:]
        self.lustre.write("/a", b"new", 0)
        self.lustre.clock_ns += 60_000_000_000

    @property
    def pools(self) -> list[str]:
        return [part.pool for part in self.layout.components]

    @property
    def verbs(self) -> list[str]:
        return [command[2] for command in self.lfs.commands]


def mirrored(*, written: bool = False) -> World:
    world = World()
    world.extend()
    if written:
        world.write()
    return world


def killed() -> None:
    raise Killed


def test_a_file_gets_a_preferred_mirror_and_gives_it_up_without_a_copy() -> None:
    world = World()
    mtime_ns = world.node.mtime_ns
    assert world.extend().result is MoveResult.DONE
    assert world.pools == ["hdd", "flash", "hdd"], "the first part on flash: it cannot grow there without end"
    assert in_sync(world.layout)
    assert "prefer" in world.layout.components[1].flags
    kept = world.layout.components[0].objects
    assert world.split().result is MoveResult.DONE
    assert (world.pools, world.layout.components[0].objects) == (["hdd"], kept)
    assert world.verbs == ["extend", "split"], "nothing is copied back"
    assert world.node.mtime_ns == mtime_ns


def test_mirrors_of_others_are_not_touched() -> None:
    world = mirrored()
    world.lfs.commands.clear()
    outcome = world.split(own=False)
    assert (outcome.result, outcome.reason) == (MoveResult.REFUSED, Reason.MIRRORED)
    (first, second, tail) = world.layout.components
    world.node.store.layout = replace(world.layout, components=(first, replace(second, flags=("init",)), tail))
    outcome = world.split()
    assert (outcome.result, outcome.reason) == (MoveResult.REFUSED, Reason.MIRRORED), "not marked as preferred"
    world.node.store.layout = replace(world.layout, mirror_count=3, components=(
        first, second, tail, replace(second, mirror_id=3)))
    assert world.change(one_mirror((first,))).reason == Reason.MIRRORED, "somebody added one"
    assert not world.lfs.commands


def test_a_stale_mirror_on_disks_is_synchronised_before_that_on_flash_is_removed() -> None:
    world = mirrored(written=True)
    assert "stale" in world.layout.components[0].flags, "the preferred mirror is written"
    mtime_ns = world.node.mtime_ns
    assert world.split().result is MoveResult.DONE
    assert world.verbs == ["extend", "resync", "split"]
    assert world.pools == ["hdd"]
    assert world.node.mtime_ns == mtime_ns


def test_lfs_before_2_17_synchronises_no_mirror() -> None:
    """It would leave the old end of the file in the mirror on disks, which is the file once the other one is gone."""
    world = mirrored(written=True)
    world.lfs_engine.release = lambda: (2, 16)
    for outcome in (world.split(), world.change(world.layout)):
        assert (outcome.result, outcome.reason) == (MoveResult.REFUSED, Reason.MIRRORED)
    assert world.verbs == ["extend"]
    world = World()
    world.lfs_engine.release = lambda: (2, 16)
    assert world.extend().reason == Reason.MIRRORED, "after a write it could not be removed again"


@pytest.mark.parametrize("step", ["open_fid", "data_version", "set_times"])
def test_the_time_of_a_write_after_a_split_stands(step: str) -> None:
    world = mirrored(written=True)

    def before(name: str, _: int) -> None:
        if name == step and world.pools == ["hdd"]:
            world.calls.before = lambda *_: None
            world.data = b"later" + world.data[5:]
            world.lustre.write("/a", b"later", 0)
            written.append(world.node.mtime_ns)

    written: list[int] = []
    world.calls.before = before
    assert world.split().result is MoveResult.DONE
    assert world.node.mtime_ns >= written[0]


def test_a_stale_mirror_on_flash_is_removed_without_a_copy() -> None:
    world = mirrored()
    first, second, tail = world.layout.components
    second = replace(second, flags=("prefer", "stale"))
    world.node.store.layout = replace(world.layout, components=(first, second, tail))
    assert world.split().result is MoveResult.DONE
    assert world.verbs == ["extend", "split"]


def test_a_stale_file_that_is_hot_again_is_synchronised() -> None:
    world = mirrored()
    wanted = without_objects(world.layout)
    assert world.change(wanted).result is MoveResult.ALREADY
    world.write()
    assert world.change(wanted).result is MoveResult.DONE
    assert in_sync(world.layout)
    assert world.verbs == ["extend", "resync"]


@pytest.mark.parametrize("step", ["open_for_swap", "create_volatile", "lease", "copy", "merge", "merged"])
@pytest.mark.parametrize("act", ["kill", "write", "open"])
def test_an_extension_that_somebody_disturbs_leaves_the_file_whole(step: str, act: str) -> None:
    world = World()
    acts = {"kill": killed, "write": world.write, "open": lambda: world.lustre.open_writer("/a")}
    world.lfs.before = just_before(step, acts[act])
    outcome = world.extend()
    assert world.pools in (["hdd"], ["hdd", "flash", "hdd"])
    assert outcome.result is not MoveResult.DOUBTFUL
    assert (outcome.result is MoveResult.DONE) == (len(world.pools) == 3), outcome


@pytest.mark.parametrize("act", ["kill", "write", "open"])
@pytest.mark.parametrize("step", ["open", "copy", "remove"])
def test_a_split_that_somebody_disturbs_leaves_the_newest_data(step: str, act: str) -> None:
    world = mirrored(written=True)
    acts = {"kill": killed, "write": world.write, "open": lambda: world.lustre.open_writer("/a")}
    world.lfs.before = just_before(step, acts[act])
    outcome = world.split()
    assert outcome.result is not MoveResult.DOUBTFUL
    assert (outcome.result is MoveResult.DONE) == (world.pools == ["hdd"]), outcome
    assert any("stale" not in part.flags for part in world.layout.components)


def test_a_write_that_a_split_loses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """``lfs`` reads the layout, then opens the file and takes the lease. The MDT splits what has become stale too."""
    world = mirrored()
    run = world.lfs_engine.run

    def raced(*words: str) -> FinishedCommand:
        finished = run(*words)
        (rest,) = world.layout.components
        world.node.store.layout = replace(world.layout, components=(replace(rest, flags=("init", "stale")),))
        return finished

    monkeypatch.setattr(world.lfs_engine, "run", raced)
    assert world.split().result is MoveResult.DOUBTFUL


@pytest.mark.parametrize(("change", "reason"), [
    ({"hsm": Hsm(HsmFlags.EXISTS | HsmFlags.ARCHIVED)}, Reason.ARCHIVED),
    ({"flags": FileFlags.ENCRYPTED}, Reason.ENCRYPTED),
    ({"flags": FileFlags.IMMUTABLE}, Reason.IMMUTABLE),
    ({"mode": 0o100755}, Reason.EXECUTABLE),
    ({"pin": b"hot"}, Reason.PINNED),
    ({"project": 9, "shown_project": 9}, Reason.PROJECT),
])
def test_files_that_get_no_mirror(change: dict[str, object], reason: Reason) -> None:
    world = World()
    for name, value in change.items():
        setattr(world.node, name, value)
    outcome = world.extend()
    assert (outcome.result, outcome.reason) == (MoveResult.REFUSED, reason)
    assert not world.lfs.commands


@pytest.mark.parametrize("lacking", ["_by_fid", "_mirrors"])
def test_no_mirror_is_made_where_it_could_not_be_removed(monkeypatch: pytest.MonkeyPatch, lacking: str) -> None:
    world = World()
    monkeypatch.setattr(world.lfs_engine, lacking, lambda: False)
    assert world.extend().result is MoveResult.REFUSED
    assert not world.lfs.commands


def test_a_mirror_needs_room_and_quota_for_one_more_copy_only() -> None:
    world = World()
    world.lustre.quotas[0, world.node.uid, "flash"] = Quota(1, 0, len(world.data) - 1)
    assert world.extend().reason == Reason.QUOTA
    world.lustre.quotas[0, world.node.uid, "flash"] = Quota(1, 0, len(world.data) + 1)
    world.lustre.quotas[0, world.node.uid, ""] = Quota(1, 0, len(world.data) + 1)
    assert world.extend().result is MoveResult.DONE
    world.lustre.room_bytes = 0
    assert world.split().result is MoveResult.DONE, "a split needs none"


def test_a_file_that_was_changed_since_it_was_chosen_stays() -> None:
    world = World()
    wanted = with_mirror(world.layout, TO_FLASH)
    for move in (Move("/a", wanted, objects="other"), Move("/a", wanted, size_bytes=1)):
        (outcome,) = world.engine.move((move,))
        assert (outcome.result, outcome.reason) == (MoveResult.REFUSED, Reason.CHANGED)
    world.extend()
    (outcome,) = world.engine.move((Move("/a", one_mirror(mirrors(wanted)[0]), objects="other", own_mirrors=True),))
    assert (outcome.result, outcome.reason) == (MoveResult.REFUSED, Reason.CHANGED)


def test_a_recently_modified_file_waits() -> None:
    world = mirrored(written=True)
    world.lustre.clock_ns -= 59_000_000_000
    assert world.split().result is MoveResult.GAVE_WAY


def test_a_dry_run_and_a_halt_change_nothing() -> None:
    world = World()
    wanted = with_mirror(world.layout, TO_FLASH)
    moves = [Move("/a", wanted)]
    (found,) = world.engine.examine(moves)
    assert found.result is MoveResult.MOVABLE
    (halted,) = world.engine.move(moves, lambda: Refusal(Reason.PAUSED, "paused"))
    (fenced,) = world.engine.move([replace(moves[0], fence=lambda: Refusal(Reason.OUT_OF_DATE, "late"))])
    assert halted.reason == fenced.reason == Reason.HALTED
    assert not world.lfs.commands


def test_other_moves_go_to_the_engine() -> None:
    world = World()
    (outcome,) = world.engine.move([Move("/a", Layout((Component(pool="flash"),), composite=False))])
    assert outcome.result is MoveResult.DONE
    assert [command[1] for command in world.lfs.commands] == ["migrate"]


@pytest.mark.parametrize(("step", "stale"), [("remove", False), ("open", True), ("remove", True)])
def test_a_file_that_takes_the_name_keeps_its_mirrors(step: str, stale: bool) -> None:
    """Between the examination and the moment ``lfs`` opens the file, its owner may give its name to any other."""
    world = mirrored(written=stale)

    def replaced() -> None:
        world.lustre.rename("/a", "/b")
        world.lustre.create("/a", world.data).store.layout = replace(world.layout)

    world.lfs.before = just_before(step, replaced)
    world.split()
    assert world.lustre.names["/a"].store.layout.mirror_count == 2
    assert in_sync(world.layout)


# Mirrors through the gate: the journal knows which are tierd's, what they cost, and how they are undone

SIZE = 100


class MirrorWorld(gate_world.World):
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
        world.lfs.before = just_before("", raising(Died()), step)
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
