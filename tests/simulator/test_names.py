"""What clients do to names: the changelog they leave, layouts inherited, objects made and destroyed."""

from __future__ import annotations

import errno

import pytest

from lustre.changelog.decode import decode
from lustre.changelog.record import RecordType
from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.jobs.small_files import SmallFileWriter
from simulator.servers.changelog import Actor
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


def test_reading_on_after_clearing() -> None:
    cluster = after_small_files(None)
    log = cluster.mdts[0].changelog
    whole = log.read(0)
    records, _ = decode(whole)
    log.clear(records[4].index, cluster.now)
    assert decode(log.read(0))[0] == records[5:]
    assert decode(log.read(records[8].index))[0] == records[9:]
    assert log.read(log.last_index) == b""


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


def test_a_full_pool_is_enospc_and_takes_nothing() -> None:
    cluster = Cluster(recorded_test_bed(1))
    cluster.make_directory("/d", Layout((Component(pool="flash"),), composite=False))

    def fill() -> None:
        for number in range(100):
            cluster.make_file(f"/d/{number}", 64 * MIB)

    with pytest.raises(OSError, match="No space") as caught:
        fill()
    assert caught.value.errno == errno.ENOSPC
    files = list(cluster.namespace.files())
    assert sum(ost.store.used_bytes for ost in cluster.osts) == len(files) * 64 * MIB
    assert sum(len(ost.store.objects) for ost in cluster.osts) == len(files)


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
