"""The model of flows, and its size. test_calibration compares it with the model of events."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from lustre.changelog.record import RecordType, decode
from lustre.errors import copied_before
from lustre.formats import job_stats
from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.fluid.cluster import FluidCluster
from simulator.jobs import Job
from simulator.jobs.large_files import RandomWriter, SharedFile, StreamingReader, StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.parameters import write_parameters
from simulator.scenarios import scenario
from simulator.scenarios.events import Event
from simulator.settings import recorded_test_bed

MIB = 1 << 20
STREAM = "ior_stream.1002"
TOO_SMALL = Layout((Component(0, 128 << 10, "flash"), Component(128 << 10, None, "hdd")))


def test_files_whose_second_component_finds_no_space_end_before_it() -> None:
    flows = FluidCluster(recorded_test_bed(), (SmallFileWriter(files_per_second=10.0, layout=TOO_SMALL),))
    for ost in flows.osts[2:]:  # the pool hdd
        ost.max_create_count = 0
    flows.advance(10)
    assert {inode.size_bytes for inode in flows.namespace.files()} == {0}


def test_counters_are_the_bytes_that_flowed(tmp_path: Path) -> None:
    flows = FluidCluster(recorded_test_bed(), (StreamingWriter(),))
    flows.advance(20)
    assert write_parameters(flows, tmp_path) > 2 * len(flows.osts)
    parsed = job_stats.parse((tmp_path / "proc/fs/lustre/obdfilter/lustre-OST0002/job_stats").read_bytes())
    (job,) = parsed.jobs
    written = int(job.sums[job.names.index(b"write_bytes")])
    assert written == pytest.approx(sum(flows.throughput(STREAM, 0, 20)) * 1e6 / 4, rel=0.02)


def test_ten_thousand_clients_and_four_hundred_targets() -> None:
    variants = scenario.library("large-site").variants()
    rates = {}
    for name, case in variants.items():
        cluster = case.build()
        assert (cluster.mounts, len(cluster.osts)) == (10_000, 400)
        cluster.advance(100)
        rates[name] = sum(cluster.log.mean(job.job_id, 80, 100) for job in case.jobs if job.job_id != "untar.2003")
    assert 0 < rates["alone"] < 300 * 1500
    assert rates["contended"] < 0.9 * rates["alone"]
    assert rates["flash_covers"] > 0.97 * rates["alone"]


def test_names_records_and_room_are_those_of_the_files_made() -> None:
    noise = SmallFileWriter(files_per_second=10.0, keep=50, layout=TOO_SMALL)
    flows = FluidCluster(recorded_test_bed(), (noise,))
    flows.advance(20)
    inodes = list(flows.namespace.files())
    assert len(inodes) == 50
    records, _ = decode(flows.mdts[0].changelog.read(0))
    kinds = [record.type for record in records]
    made = kinds.count(RecordType.CREATE)
    assert made == pytest.approx(200, abs=2)
    assert kinds.count(RecordType.CLOSE) == kinds.count(RecordType.LAYOUT) == made
    assert kinds.count(RecordType.UNLINK) == made - 50
    assert [record.index for record in records] == list(range(1, len(records) + 1))
    assert {record.job_id for record in records if record.type is RecordType.CREATE} == {b"mdt_small.1001"}
    used = sum(ost.store.used_bytes for ost in flows.osts)
    assert used == sum(inode.size_bytes for inode in inodes)
    stored = {fid for ost in flows.osts for fid in ost.store.objects}
    assert stored == {s.fid for i in inodes if i.layout for part in i.layout.components for s in part.objects}


@pytest.mark.parametrize(("change", "rate"), [
    (Event(0, "slow", {"target": "OST0003", "factor": 2.0}), 0.5),
    (Event(0, "degraded", {"target": "OST0003", "rebuild_share": 0.5}), 0.5),
    (Event(0, "gone", {"target": "OST0005"}), 0.0),
    (Event(0, "recovery", {"target": "OST0005", "seconds": 60}), 0.0),
    (lambda flows: flows.change(STREAM, threads=1, think_seconds=10.0), 0.01),
    (lambda flows: flows.stop(STREAM), 0.0),
    (Event(0, "clock_jump", {"seconds": 3600}), 1.0),
])  # fmt: skip
def test_faults_of_targets_and_jobs_change_the_flows(change: Callable[[Cluster], None], rate: float) -> None:
    flows = FluidCluster(recorded_test_bed(), (StreamingWriter(),))
    flows.advance(10)
    change(flows)
    flows.advance(20)
    assert flows.log.mean(STREAM, 11, 30) == pytest.approx(rate * flows.log.mean(STREAM, 1, 9), abs=2)


def test_a_job_that_moves_to_another_directory_creates_its_files_there() -> None:
    flows = FluidCluster(recorded_test_bed(), (SmallFileWriter(stop_seconds=10.0),))
    flows.advance(10)
    first = flows.namespace.lookup("/proj/ingest").children.keys()
    before = set(first)
    for place in ("/proj/next", "/proj/ingest"):
        flows.add(SmallFileWriter(directory=place, start_seconds=flows.now, stop_seconds=flows.now + 10))
        flows.advance(10)
    there = flows.namespace.lookup("/proj/next").children.keys()
    assert len(there) == pytest.approx(len(before), rel=0.1)
    assert before < set(first)
    assert not set(there) & set(first)


MODELS = pytest.mark.parametrize("model", [Cluster, FluidCluster], ids=["events", "flows"])
ON_HDD = Layout((Component(pool="hdd", stripe_count=1),), composite=False)


@MODELS
@pytest.mark.parametrize("job", [
    StreamingWriter(file_bytes=16 * MIB, stop_seconds=20.0),
    RandomWriter(file_bytes=16 * MIB, stop_seconds=20.0),
    SharedFile(piece_bytes=MIB, nodes=1, threads=4, pieces_each=15, think_seconds=1.0, stop_seconds=20.0),
], ids=lambda job: type(job).__name__)
def test_a_file_is_not_moved_while_a_job_has_it_open_for_writing(model: type[Cluster], job: Job) -> None:
    cluster = model(recorded_test_bed(), (job,))
    filesystem = SimulatedFilesystem(cluster)
    ((path, _),) = job.files()
    cluster.advance(5)
    with pytest.raises(OSError, match="busy") as caught:
        filesystem.migrate(path, ON_HDD)
    assert caught.value.errno == errno.EBUSY
    assert cluster.namespace.lookup(path).mtime > cluster.epoch - cluster.now
    cluster.advance(40)
    filesystem.migrate(path, ON_HDD)
    layout = filesystem.layout(path)
    assert layout.components[0].stripe_count == 1


@MODELS
def test_a_move_gives_way_to_a_job_that_opens_the_file(model: type[Cluster]) -> None:
    job = StreamingWriter(file_bytes=256 * MIB, start_seconds=3.0)
    cluster = model(recorded_test_bed(), (job,))
    cluster.advance(1)
    with pytest.raises(OSError, match="busy") as caught:
        SimulatedFilesystem(cluster).migrate(job.path, ON_HDD)
    assert cluster.now >= 3.0
    assert 0 < (copied_before(caught.value) or 0) < 256 * MIB


@MODELS
def test_a_file_that_is_only_read_moves(model: type[Cluster]) -> None:
    job = StreamingReader(file_bytes=16 * MIB)
    cluster = model(recorded_test_bed(), (job,))
    cluster.advance(2)
    SimulatedFilesystem(cluster).migrate(job.path, ON_HDD)
