"""The port over the model: what tierd may look at, and the two things it may do."""

from __future__ import annotations

import errno

import pytest

from lustre.changelog.decode import decode
from lustre.errors import Unsupported
from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.jobs.large_files import StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.migration import Migration
from simulator.parameters import render
from simulator.servers.changelog import Actor
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import without_user_xattr

MIB = 1 << 20
FLASH = Layout((Component(0, 2 * MIB, "flash"), Component(2 * MIB, None, "hdd")))
PLAIN_FLASH = Layout((Component(pool="flash"),), composite=False)
ACTOR = Actor("vi.1001", 1001, "10.0.2.15@tcp")


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


def test_a_mount_without_user_xattr_has_no_attributes_of_users() -> None:
    cluster = Cluster(without_user_xattr())
    cluster.make_file("/proj/a", 1000)
    filesystem = SimulatedFilesystem(cluster)
    filesystem.set_xattr("/proj/a", "lustre.pin", b"- pool: hdd")
    assert filesystem.xattr("/proj/a", "lustre.pin") == b"- pool: hdd"
    with pytest.raises(Unsupported):
        filesystem.xattr("/proj/a", "user.tierd")
    files = dict(render(cluster))
    assert files["proc/mounts"].count(b",nouser_xattr,") == len(cluster.clients)


def test_a_default_needs_a_directory_and_a_known_pool(filesystem: SimulatedFilesystem) -> None:
    with pytest.raises(NotADirectoryError):
        filesystem.set_default_layout("/proj/ingest/f0", FLASH)
    with pytest.raises(OSError, match="Invalid argument"):
        filesystem.set_default_layout("/proj/ingest", Layout((Component(pool="nosuch"),), composite=False))


def test_a_move_takes_time_and_keeps_the_file(cluster: Cluster, filesystem: SimulatedFilesystem) -> None:
    inode = cluster.namespace.lookup("/proj/ingest/f0")
    before = inode.fid, inode.content, inode.size_bytes, inode.mtime
    used = cluster.osts[2].store.used_bytes
    began = cluster.now
    filesystem.migrate("/proj/ingest/f0", FLASH)
    assert cluster.now > began
    assert (inode.fid, inode.content, inode.size_bytes, inode.mtime) == before
    layout = filesystem.layout("/proj/ingest/f0")
    assert [part.pool for part in layout.components] == ["flash", "hdd"]
    assert layout.components[0].objects
    assert not layout.components[1].objects
    cluster.advance(5)
    assert cluster.osts[2].store.used_bytes == used - MIB
    assert cluster.osts[2].bulk.read_bytes == MIB
    assert sum(cluster.osts[i].bulk.written_bytes for i in (0, 1)) == MIB
    assert {e.job_id for e in cluster.osts[2].jobs.entries(cluster.now)} == {"lfs.0"}


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
