"""Layouts as Lustre applies them: where bytes go, what a write makes of a layout, and moves through the port."""

import errno
from dataclasses import replace
from typing import Any

import pytest

from lustre.changelog.record import RecordType, decode
from lustre.layout.model import Component, Layout, in_sync, one_mirror, with_mirror
from simulator.cluster import Cluster
from simulator.engine import Steps
from simulator.filesystem import SimulatedFilesystem
from simulator.jobs.large_files import StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.migration import Migration, Resync
from simulator.parameters import render
from simulator.servers import layouts
from simulator.servers.changelog import Actor
from simulator.servers.namespace import Inode
from simulator.servers.placement import extents
from simulator.settings import ClusterSettings, recorded_test_bed
from tests.tierd.simulated import without_user_xattr

MIB = 1 << 20
ACTOR = Actor("cp.1000", 1000)
BOTH = Layout((Component(pool="hdd", mirror_id=1), Component(pool="flash", mirror_id=2)), mirror_count=2)


def bed(**changes: Any) -> ClusterSettings:
    return replace(recorded_test_bed(), **changes)


def written(cluster: Cluster, layout: Layout, *sizes: int, name: str = "file") -> Any:
    """A file written to in calls of these sizes."""
    cluster.make_directory("/d", layout)
    client = cluster.clients[0]

    def steps() -> Steps[Inode]:
        handle = yield from client.create(cluster.namespace.lookup("/d"), name, ACTOR)
        at = 0
        for size in sizes:
            yield from client.data.write(handle, at, size, direct=False)
            at += size
        yield from client.data.fsync(handle)
        yield from client.close(handle)
        return handle.inode

    done = cluster.engine.spawn(steps())
    cluster.advance(60)
    assert done.error is None
    return done.value


def pools(inode: Inode) -> list[str]:
    return [part.pool for part in inode.layout.components if part.objects]


def test_data_on_the_mdt_take_no_object_and_no_ost() -> None:
    cluster = Cluster(bed())
    layout = Layout((Component(0, MIB, pattern="mdt"), Component(MIB, None, "hdd")))
    inode = written(cluster, layout, 65536)
    assert pools(inode) == []
    assert cluster.mdts[0].stats["write_bytes"].total == 65536
    assert sum(ost.bulk.written_bytes for ost in cluster.osts) == 0
    inode = written(cluster, layout, 3 * MIB, name="larger")
    assert pools(inode) == ["hdd"]
    assert sum(ost.bulk.written_bytes for ost in cluster.osts) == 2 * MIB


def test_overstriping_puts_several_objects_on_a_target() -> None:
    cluster = Cluster(bed())
    part = Component(pool="hdd", stripe_count=8, stripe_size=MIB, pattern="raid0,overstriped")
    inode = written(cluster, Layout((part,), composite=False), 8 * MIB)
    targets = [stripe.ost_index for stripe in inode.layout.components[0].objects]
    assert sorted(targets) == [2, 2, 3, 3, 4, 4, 5, 5]
    assert len({extent.fid for extent in extents(inode.layout, 0, 8 * MIB)}) == 8


@pytest.mark.parametrize(("release", "flash"), [("2.17.57", True), ("2.15.0", True), ("2.14.0", False)])
def test_since_2_15_the_copy_on_flash_is_written(release: str, flash: bool) -> None:
    cluster = Cluster(replace(bed(), version=release))
    layout = written(cluster, BOTH, MIB).layout
    assert ["stale" in part.flags for part in layout.components] == [flash, not flash]
    preferred = replace(BOTH, components=(replace(BOTH.components[0], flags=("prefer",)), BOTH.components[1]))
    layout = written(Cluster(replace(bed(), version=release)), preferred, MIB).layout
    assert ["stale" in part.flags for part in layout.components] == [False, True], "the preferred mirror comes first"


def test_a_write_to_a_mirrored_file_goes_to_one_copy_and_makes_the_other_stale() -> None:
    cluster = Cluster(replace(bed(), version="2.14.0"))
    inode = written(cluster, BOTH, MIB)
    layout = inode.layout
    assert layout.state == "wp"
    assert sum(ost.bulk.written_bytes for ost in cluster.osts[:2]) == 0
    records, _ = decode(cluster.mdts[0].changelog.read(0))
    assert [record.type for record in records].count(RecordType.FLR_WRITE) == 1
    assert layouts.mirror_to_read(layout, cluster.osts).components[0].pool == "hdd"
    again = layouts.with_synced_mirrors(layout)
    assert layouts.mirror_to_read(again, cluster.osts).components[0].pool == "flash"
    index = again.components[1].objects[0].ost_index
    cluster.osts[index].health.leave()
    assert layouts.mirror_to_read(again, cluster.osts).components[0].pool == "hdd"


def test_a_resync_copies_through_the_same_targets() -> None:
    cluster = Cluster(replace(bed(), version="2.14.0"))
    inode = written(cluster, BOTH, MIB)
    content = inode.content
    resync = cluster.start_lfs(Resync(inode.path))
    cluster.advance(5)
    assert resync.finished.done
    assert resync.finished.error is None
    assert inode.layout.state == "ro"
    assert not any("stale" in part.flags for part in inode.layout.components)
    assert sum(ost.bulk.read_bytes for ost in cluster.osts[2:]) == resync.copied_bytes == MIB
    assert sum(ost.bulk.written_bytes for ost in cluster.osts[:2]) == MIB
    assert (inode.content, inode.size_bytes) == (content, MIB)
    records, _ = decode(cluster.mdts[0].changelog.read(0))
    assert [record.type for record in records].count(RecordType.RESYNC) == 1


def test_a_resync_gives_way_to_a_writer() -> None:
    cluster = Cluster(bed())
    inode = written(cluster, BOTH, 64 * MIB)
    resync = cluster.start_lfs(Resync(inode.path))
    cluster.advance(1)
    cluster.engine.spawn(cluster.clients[0].open(inode, ACTOR, write=True))
    cluster.advance(30)
    assert resync.finished.error.errno == errno.EBUSY
    assert any("stale" in part.flags for part in inode.layout.components)


def test_objects_go_where_there_is_room_when_targets_are_unevenly_filled() -> None:
    cluster = Cluster(bed())
    cluster.osts[2].store.withheld_bytes = cluster.osts[2].store.space().avail_bytes * 9 // 10
    for _ in range(200):
        cluster.placement.create(Layout((Component(pool="hdd"),), composite=False))
    created = [ost.store.created for ost in cluster.osts[2:]]
    assert created[0] < 0.3 * min(created[1:])


def test_layouts_are_inherited_from_the_parent_and_else_from_the_root() -> None:
    cluster = Cluster(bed())
    client = cluster.clients[0]
    cluster.set_default_layout("/", Layout((Component(pool="hdd", stripe_count=2),), composite=False))
    cluster.make_directory("/p", Layout((Component(pool="flash"),), composite=False))
    cluster.make_directory("/plain")

    def steps() -> Steps[list[Inode]]:
        made = yield from client.mkdir(cluster.namespace.lookup("/p"), "child", ACTOR)
        below = yield from client.create(made, "a", ACTOR)
        plain = yield from client.create(cluster.namespace.lookup("/plain"), "b", ACTOR)
        return [below.inode, plain.inode]

    done = cluster.engine.spawn(steps())
    cluster.advance(5)
    inherited, from_root = done.value
    assert pools(inherited) == ["flash"]
    assert from_root.layout.components[0].stripe_count == 2


def test_a_layout_that_ends_takes_no_bytes_behind_its_end() -> None:
    cluster = Cluster(bed())
    cluster.make_directory("/d", Layout((Component(0, MIB, "hdd"), Component(MIB, 2 * MIB, "hdd"))))
    client = cluster.clients[0]

    def steps() -> Steps[None]:
        handle = yield from client.create(cluster.namespace.lookup("/d"), "file", ACTOR)
        yield from client.data.write(handle, 0, 4 * MIB, direct=True)

    done = cluster.engine.spawn(steps())
    cluster.advance(5)
    assert done.error.errno == errno.ENODATA


def mirrored(cluster: Cluster, size: int = MIB) -> Any:
    """A file on disks with a mirror on flash."""
    inode = written(cluster, Layout((Component(pool="hdd"),), composite=False), size)
    flash = Layout((Component(0, MIB, "flash", mirror_id=2), Component(MIB, None, "hdd", mirror_id=2)), mirror_count=2)
    done(cluster, inode, with_mirror(inode.layout, flash))
    return inode


def again(cluster: Cluster, inode: Inode) -> None:
    """Write a page of a file that exists."""
    client = cluster.clients[0]

    def steps() -> Steps[None]:
        handle = yield from client.open(inode, ACTOR, write=True)
        yield from client.data.write(handle, 0, 4096, direct=False)
        yield from client.data.fsync(handle)
        yield from client.close(handle)

    assert cluster.engine.spawn(steps()).error is None
    cluster.advance(60)


def done(cluster: Cluster, inode: Inode, layout: Layout) -> int:
    """Bytes that a change of the mirrors has copied."""
    change = cluster.start_lfs(Migration(inode.path, layout))
    cluster.advance(5)
    assert change.finished.done
    assert change.finished.error is None
    return change.copied_bytes


def test_a_mirror_is_added_read_and_removed_without_a_copy() -> None:
    cluster = Cluster(bed())
    inode = mirrored(cluster)
    layout = inode.layout
    assert (pools(inode), layout.state) == (["hdd", "flash"], "ro")
    assert layouts.mirror_to_read(layout, cluster.osts).components[0].pool == "flash"
    flash = layout.components[1].objects[0]
    assert done(cluster, inode, one_mirror(layout.components[:1])) == 0
    assert pools(inode) == ["hdd"]
    assert flash.fid not in cluster.osts[flash.ost_index].store.objects, "its space is free"


def test_a_stale_mirror_is_synchronised_on_request_and_before_the_other_one_goes() -> None:
    cluster = Cluster(bed())
    inode = mirrored(cluster)
    again(cluster, inode)
    assert ["stale" in part.flags for part in inode.layout.components] == [True, False, False]
    assert done(cluster, inode, inode.layout) == MIB
    assert (in_sync(inode.layout), inode.layout.mirror_count) == (True, 2)
    again(cluster, inode)
    assert done(cluster, inode, one_mirror(inode.layout.components[:1])) == MIB
    assert (in_sync(inode.layout), pools(inode)) == (True, ["hdd"])


FLASH = Layout((Component(0, 2 * MIB, "flash"), Component(2 * MIB, None, "hdd")))
PLAIN_FLASH = Layout((Component(pool="flash"),), composite=False)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(recorded_test_bed(1))
    cluster.make_directory("/proj/ingest", Layout((Component(pool="hdd"),), composite=False), uid=1001)
    for number in range(4):
        cluster.make_file(f"/proj/ingest/f{number}", MIB, uid=1001)
    return cluster


@pytest.fixture
def filesystem(cluster: Cluster) -> SimulatedFilesystem:
    return SimulatedFilesystem(cluster)


def test_a_mount_without_user_xattr_says_so() -> None:
    cluster = Cluster(without_user_xattr())
    assert render(cluster)["proc/mounts"].count(b",nouser_xattr,") == len(cluster.clients)


def test_a_default_needs_a_directory_and_a_known_pool(filesystem: SimulatedFilesystem) -> None:
    with pytest.raises(NotADirectoryError):
        filesystem.set_default_layout("/proj/ingest/f0", FLASH)
    with pytest.raises(OSError, match="Invalid argument"):
        filesystem.set_default_layout("/proj/ingest", Layout((Component(pool="nosuch"),), composite=False))


def test_a_move_echoes_in_the_changelog_as_the_real_one_does(filesystem: SimulatedFilesystem) -> None:
    fid = filesystem.status("/proj/ingest/f0").fid
    filesystem.migrate("/proj/ingest/f0", FLASH)
    records, _ = decode(filesystem.changelog("MDT0000", 0))
    assert {record.job_id for record in records} == {b"lfs.0"}
    of_file = [(record.type.label, record.flags) for record in records if record.target == fid]
    assert of_file == [("OPEN", 3), ("CLOSE", 3), ("LYOUT", 0)]
    (volatile,) = [record for record in records if record.target != fid]
    assert (volatile.type.label, volatile.flags) == ("OPEN", 0xCA)
    with pytest.raises(FileNotFoundError):
        filesystem.changelog("MDT0009", 0)


@pytest.mark.parametrize("what", ["open for writing", "unlink"])
def test_whoever_opens_the_file_during_a_move_wins(cluster: Cluster, what: str) -> None:
    big = cluster.make_file("/proj/ingest/big", 64 * MIB)
    client = cluster.clients[1]
    migration = cluster.start_lfs(Migration("/proj/ingest/big", PLAIN_FLASH))
    cluster.advance(2)
    assert 0 < migration.copied_bytes < 64 * MIB
    cluster.engine.spawn(client.unlink(big, ACTOR) if what == "unlink" else client.open(big, ACTOR, write=True))
    cluster.advance(30)
    assert migration.finished.error.errno == (errno.ENOENT if what == "unlink" else errno.EBUSY)
    assert all(not cluster.osts[i].store.objects for i in (0, 1))


def test_a_move_without_room_leaves_nothing(cluster: Cluster, filesystem: SimulatedFilesystem) -> None:
    cluster.make_file("/proj/ingest/huge", 1500 * MIB)
    with pytest.raises(OSError, match="No space") as caught:
        filesystem.migrate("/proj/ingest/huge", PLAIN_FLASH)
    assert caught.value.errno == errno.ENOSPC
    assert all(not cluster.osts[i].store.objects for i in (0, 1))
    assert all(cluster.osts[i].store.used_bytes == 0 for i in (0, 1))


def test_moves_slow_the_stream_a_little() -> None:
    jobs = (StreamingWriter(), SmallFileWriter(files_per_second=50, keep=300, stop_seconds=8))
    cluster = Cluster(recorded_test_bed(2), jobs)
    filesystem = SimulatedFilesystem(cluster)
    cluster.advance(25)
    began = cluster.now
    for name in list(filesystem.entries("/proj/ingest"))[:60]:
        filesystem.migrate(f"/proj/ingest/{name}", FLASH)
    share = cluster.log.mean("ior_stream.1002", began, cluster.now) / 66.6
    assert 0.7 < share < 0.97
