"""What clients do to names: the changelog they leave, objects made and destroyed, directories over MDTs."""

import errno
from dataclasses import replace

import pytest

from lustre.changelog.record import RecordType, decode
from lustre.layout.directory import DefaultStriping
from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.jobs.metadata import StepFiles
from simulator.jobs.small_files import SmallFileWriter
from simulator.servers.changelog import Actor
from simulator.servers.mdt import MdtSettings
from simulator.settings import recorded_test_bed

MIB = 1 << 20
PFL = Layout((Component(0, 128 << 10, "flash"), Component(128 << 10, None, "hdd")))
ACTOR = Actor("touch.1001", 1001, "10.0.2.15@tcp")


def after_small_files(layout: Layout | None) -> Cluster:
    job = SmallFileWriter(files_per_second=5, threads=1, keep=3, layout=layout, stop_seconds=2.05)
    cluster = Cluster(recorded_test_bed(1), (job,))
    cluster.advance(6)
    return cluster


def test_a_small_file_leaves_the_records_of_the_tape() -> None:
    cluster = after_small_files(PFL)
    records, consumed = decode(cluster.mdts[0].changelog.read(0))
    assert consumed == len(cluster.mdts[0].changelog.read(0))
    first = [record for record in records if record.target == records[0].target]
    kinds = [record.type.label for record in first]
    assert kinds == ["CREAT", "OPEN", "LYOUT", "CLOSE", "UNLNK"]
    create, opened, layout, close, unlink = first
    assert create.name.startswith(b"f")
    assert (create.job_id, create.uid, create.gid, create.nid) == (b"mdt_small.1001", 1001, 1001, "10.0.2.15@tcp")
    assert (opened.flags, opened.open_mode) == (0xCA, 0xD0CA)
    assert (layout.job_id, layout.uid, layout.nid) == (b"", 0, "0@<0:0>")
    assert close.flags == 0xC2
    assert (unlink.flags, unlink.name, unlink.parent) == (1, create.name, create.parent)
    assert [record.index for record in records] == list(range(1, len(records) + 1))


def test_no_layout_record_where_the_first_component_holds_the_file() -> None:
    cluster = after_small_files(Layout((Component(0, 2 * MIB, "flash"), Component(2 * MIB, None, "hdd"))))
    records, _ = decode(cluster.mdts[0].changelog.read(0))
    assert RecordType.LAYOUT not in {record.type for record in records}
    assert all(cluster.osts[i].bulk.written_bytes == 0 for i in (2, 3, 4, 5))


def test_a_component_gets_objects_when_a_write_reaches_it() -> None:
    cluster = after_small_files(PFL)
    file = next(cluster.namespace.files())
    first, second = file.layout.components
    assert (first.flags, second.flags) == (("init",), ("init",))
    assert first.objects[0].ost_index in (0, 1)
    assert second.objects[0].ost_index in (2, 3, 4, 5)
    stored = cluster.osts[second.objects[0].ost_index].store.objects[second.objects[0].fid]
    assert (stored.start_bytes, stored.end_bytes) == (128 << 10, MIB)


def test_objects_go_round_the_pool() -> None:
    cluster = Cluster(recorded_test_bed(1))
    cluster.make_directory("/d", Layout((Component(pool="hdd"),), composite=False))
    places = []
    for number in range(8):
        layout = cluster.make_file(f"/d/{number}", 4096).layout
        places.append(layout.components[0].objects[0].ost_index)
    assert places == [2, 3, 4, 5, 2, 3, 4, 5]


def test_more_stripes_than_the_pool_has_targets_become_fewer() -> None:
    cluster = Cluster(recorded_test_bed(1))
    cluster.make_directory("/d", Layout((Component(pool="hdd", stripe_count=64),), composite=False))
    layout = cluster.make_file("/d/wide", 4096).layout
    assert layout.components[0].stripe_count == 4


def test_a_job_continues_when_its_disk_is_full() -> None:
    job = SmallFileWriter(
        files_per_second=200, sizes=(16 * MIB,), keep=10**6, stop_seconds=20, fsync=True,
        layout=Layout((Component(pool="flash"),), composite=False),
    )  # fmt: skip
    cluster = Cluster(recorded_test_bed(1), (job,))
    cluster.advance(25)
    assert cluster.runs[job.job_id].errors.get(errno.ENOSPC, 0) > 0
    assert all(ost.store.space().avail_bytes >= 0 for ost in cluster.osts)


def test_unwritten_pages_of_a_file_that_goes_never_reach_a_disk() -> None:
    job = SmallFileWriter(fsync=False, keep=5, stop_seconds=3)
    cluster = Cluster(recorded_test_bed(1), (job,))
    cluster.advance(20)
    written = sum(ost.bulk.written_bytes for ost in cluster.osts)
    assert written <= 7 * MIB
    assert cluster.runs[job.job_id].operations > 40


def made(cluster: Cluster, parent: str, name: str) -> None:
    client = cluster.clients[0]
    steps = client.mkdir(cluster.namespace.lookup(parent), name, Actor("mkdir.0", 0, client.settings.nid))
    cluster.wait_for(cluster.engine.spawn(steps))


def test_new_subdirectories_get_the_default_for_as_many_levels_as_it_says() -> None:
    cluster = Cluster(recorded_test_bed())
    cluster.make_directory("/top")
    filesystem = SimulatedFilesystem(cluster)
    assert filesystem.default_striping("/top") is None
    default = DefaultStriping(2, -1, "crush", 2)
    filesystem.set_default_striping("/top", default)
    made(cluster, "/top", "a")
    made(cluster, "/top/a", "b")
    made(cluster, "/top/a/b", "c")
    assert filesystem.directory_stripes("/top").stripe_count == 0
    assert filesystem.directory_stripes("/top/a").stripe_count == 2
    assert filesystem.default_striping("/top/a") is None, "it inherits, and has none of its own"
    assert filesystem.directory_stripes("/top/a/b").stripe_count == 2
    assert cluster.namespace.lookup("/top/a").effective_striping == replace(default, max_inherit=1)
    assert cluster.namespace.lookup("/top/a/b").effective_striping is None
    assert filesystem.directory_stripes("/top/a/b/c").stripe_count == 0
    filesystem.set_default_striping("/top", None)
    made(cluster, "/top", "later")
    assert filesystem.directory_stripes("/top/later").stripe_count == 0


def test_a_new_file_system_has_a_default_that_no_directory_has_of_its_own() -> None:
    cluster = Cluster(recorded_test_bed())
    made(cluster, "/", "top")
    filesystem = SimulatedFilesystem(cluster)
    assert filesystem.default_striping("/") == cluster.namespace.lookup("/top").effective_striping
    assert filesystem.default_striping("/top") is None
    assert filesystem.directory_stripes("/top").stripe_count == 0


def creates_per_second(nodes: int, striped: bool) -> float:
    """Of 32 processes on some nodes, in one directory at a time, on one of two equal MDTs or on both."""
    bed, mdt = recorded_test_bed(), MdtSettings(work_factor=33.0)
    job = StepFiles(nodes=nodes, threads=32 // nodes, files_each=15)
    cluster = Cluster(replace(bed, mdts=(mdt, mdt), clients=bed.clients[:1] * nodes), (job,))
    if striped:
        SimulatedFilesystem(cluster).set_default_striping(job.directory, DefaultStriping(2, -1, "crush", 1))
    cluster.advance(120)
    return cluster.runs[job.job_id].team.per_second("create")


@pytest.mark.parametrize(("nodes", "least", "most"), [(1, 0.95, 1.05), (4, 1.5, 1.9), (16, 1.75, 2.1)])
def test_a_second_mdt_serves_several_nodes_twice_as_fast_and_one_node_as_fast(
        nodes: int, least: float, most: float) -> None:
    """The kernel holds the lock of a directory while it makes a name in it, so one node has one such request."""
    assert least <= creates_per_second(nodes, striped=True) / creates_per_second(nodes, striped=False) <= most
