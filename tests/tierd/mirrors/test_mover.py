"""Mirrors on flash over the Lustre in memory: extension, resync and split, with writers and kills between."""

from dataclasses import replace

import pytest

from lustre.filesystem import FileFlags, Hsm, HsmFlags, Quota
from lustre.layout.model import Component, Layout, in_sync, mirrors, one_mirror, with_mirror, without_objects
from tests.tierd.act.movers.both_engines import PFL, Both
from tests.tierd.act.movers.minicalls import Killed, just_before
from tests.tierd.act.movers.minilustre import HDD, PAGE
from tierd.act.movers.lfs import FinishedCommand, LfsMover
from tierd.act.movers.moves import Move, MoveOutcome, MoveResult
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
