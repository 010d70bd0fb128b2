"""What must hold whatever the jobs do: bytes and objects are conserved, counters grow, the same seed gives the same."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lustre.fid import Fid
from lustre.formats import brw_stats, job_stats, rpc_stats, stats
from lustre.layout.model import Component, Layout
from simulator.clients.data import FileHandle
from simulator.clients.mount import ClientSettings
from simulator.cluster import Cluster
from simulator.counters import Counter, Histogram, Stats
from simulator.devices import DeviceSettings
from simulator.devices.flash import FlashSettings
from simulator.devices.hdd import HddSettings
from simulator.devices.raid import RaidSettings
from simulator.devices.throttled import ThrottledSettings
from simulator.filesystem import SimulatedFilesystem
from simulator.fluid.cluster import FluidCluster
from simulator.jobs import Job
from simulator.jobs.large_files import RandomWriter, SharedFile, StreamingReader, StreamingWriter
from simulator.jobs.metadata import Mdtest
from simulator.jobs.small_files import SmallFileWriter
from simulator.parameters import render
from simulator.scenarios.events import Event, schedule
from simulator.servers.changelog import Actor
from simulator.servers.namespace import Inode
from simulator.servers.objects import Capacity
from simulator.servers.ost import OstSettings
from simulator.servers.placement import Extent
from simulator.settings import ClusterSettings, recorded_test_bed

MIB = 1 << 20
DEVICES: st.SearchStrategy[DeviceSettings] = st.sampled_from(
    [FlashSettings(), HddSettings(), RaidSettings(size_bytes=1 << 30), ThrottledSettings(16 * MIB, 40)]
)
POOLS = st.sampled_from(["", "a", "b"])
PLAIN = st.builds(
    lambda ends, pools, counts: Layout(
        tuple(
            Component(start, end, pool, count, stripe_size=MIB)
            for (start, end), pool, count in zip(ends, pools, counts, strict=False)
        ),
        composite=len(ends) > 1,
    ),
    st.sampled_from([[(0, None)], [(0, 128 << 10), (128 << 10, None)], [(0, MIB), (MIB, 4 * MIB), (4 * MIB, None)]]),
    st.lists(POOLS, min_size=3, max_size=3),
    st.lists(st.sampled_from([1, 2, -1]), min_size=3, max_size=3),
)
SPECIAL = st.sampled_from([
    Layout((Component(0, MIB, pattern="mdt"), Component(MIB, None, "a"))),
    Layout((Component(pool="b", stripe_count=5, stripe_size=MIB, pattern="raid0,overstriped"),), composite=False),
    Layout((Component(pool="a", mirror_id=1), Component(pool="b", mirror_id=2, flags=("prefer",))), mirror_count=2),
])  # fmt: skip
TROUBLE = st.sampled_from([
    (), (Event(2.0, "failover", {"target": "OST0001", "seconds": 1.5}),),
    (Event(1.0, "failover", {"target": "MDT0000", "seconds": 1.0}), Event(3.0, "slow", {"target": "OST0000"})),
    (Event(1.0, "full", {"target": "OST0000"}), Event(4.0, "healthy", {"target": "OST0000"})),
    (Event(1.0, "degraded", {"target": "OST0001"}), Event(2.0, "clock_jump", {"seconds": -60.0})),
])  # fmt: skip
COMPONENTS = PLAIN | SPECIAL


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    devices: list[DeviceSettings] = draw(st.lists(DEVICES, min_size=2, max_size=4))
    size = draw(st.sampled_from([256, 1024])) * MIB
    osts = tuple(OstSettings(device, Capacity(size, 4096)) for device in devices)
    half = len(osts) // 2
    return Cluster(
        ClusterSettings(
            osts, {"a": tuple(range(half)), "b": tuple(range(half, len(osts)))},
            clients=(ClientSettings(instance="ff01"), ClientSettings(instance="ff02")), seed=draw(st.integers(0, 99)),
        ),
        draw(jobs()),
    )  # fmt: skip


@st.composite
def jobs(draw: st.DrawFn) -> list[Job]:
    small = SmallFileWriter(
        files_per_second=draw(st.sampled_from([5.0, 60.0])), sizes=draw(st.sampled_from([(4096,), (MIB, 3 * MIB + 1)])),
        keep=draw(st.sampled_from([0, 20])), fsync=draw(st.booleans()), rereads_per_second=5.0,
        layout=draw(COMPONENTS), stop_seconds=6.0,
    )  # fmt: skip
    stream = StreamingWriter(
        file_bytes=32 * MIB, direct=draw(st.booleans()), layout=draw(COMPONENTS), stop_seconds=6.0,
        threads=draw(st.integers(1, 3)),
    )  # fmt: skip
    reader = StreamingReader(file_bytes=32 * MIB, direct=draw(st.booleans()), stop_seconds=6.0, client=1, layout=None)
    random = RandomWriter(file_bytes=16 * MIB, layout=draw(COMPONENTS), stop_seconds=6.0)
    shared = SharedFile(
        piece_bytes=draw(st.sampled_from([47008, MIB])), pieces_each=10, layout=draw(COMPONENTS), stop_seconds=6.0,
        write=draw(st.booleans()),
    )  # fmt: skip
    mdtest = Mdtest(
        nodes=2, threads=2, files_each=5, file_bytes=draw(st.sampled_from([0, 5000])), layout=draw(COMPONENTS),
        shared=draw(st.booleans()),
    )  # fmt: skip
    everything: list[Job] = [small, stream, reader, random, shared, mdtest]
    chosen: list[Job] = draw(st.lists(st.sampled_from(everything), unique=True, min_size=1, max_size=4))
    return chosen


def check_conservation(cluster: Cluster) -> None:
    referenced = [
        (stripe.ost_index, stripe.fid)
        for inode in cluster.namespace.files()
        if inode.layout is not None
        for part in inode.layout.components
        for stripe in part.objects
    ]
    assert len(referenced) == len(set(referenced)), "an object belongs to two files"
    stored = {(ost.index, fid) for ost in cluster.osts for fid in ost.store.objects}
    assert stored == set(referenced), "objects without a file, or files without their objects"
    for ost in cluster.osts:
        assert ost.store.used_bytes == sum(o.allocated_bytes for o in ost.store.objects.values())
        assert ost.store.created - ost.stats["destroy"].samples == len(ost.store.objects)
        space = ost.store.space()
        assert 0 <= space.avail_bytes <= space.free_bytes <= space.size_bytes


def counters(cluster: Cluster) -> Iterator[Counter]:
    for ost in cluster.osts:
        yield from (counter for _, counter in ost.stats.items())
    for mdt in cluster.mdts:
        yield from (counter for _, counter in mdt.stats.items())
    for client in cluster.clients:
        for each in (client.stats, *(osc.stats for osc in client.oscs), *(mdc.stats for mdc in client.mdcs)):
            yield from (counter for _, counter in each.items())


@settings(max_examples=25)
@given(clusters(), TROUBLE)
def test_bytes_objects_and_queues(cluster: Cluster, trouble: tuple[Event, ...]) -> None:
    schedule(trouble, cluster)
    before: list[tuple[int, int]] = []
    for _ in range(12):
        cluster.advance(0.5)
        now = [(counter.samples, counter.total) for counter in counters(cluster)]
        for (samples, total), (samples_before, total_before) in zip(now, before, strict=False):
            assert samples >= samples_before
            assert total >= total_before
        before = now
        for ost in cluster.osts:
            assert ost.disks.queued >= 0
            assert ost.bulk.active >= 0
        for osc in (osc for client in cluster.clients for osc in client.oscs):
            assert 0 <= sum(osc.in_flight) <= osc.settings.max_rpcs_in_flight
            assert osc.dirty_bytes >= 0
    cluster.advance(120)  # jobs have stopped, what was dirty is written, what was unlinked is destroyed
    check_conservation(cluster)
    for ost in cluster.osts:
        assert ost.disks.queued == 0
        assert ost.bulk.active == 0
        assert ost.stats["write_bytes"].total == ost.bulk.written_bytes
        sent = sum(client.oscs[ost.index].stats["write_bytes"].total for client in cluster.clients)
        assert ost.bulk.written_bytes == sent
    for osc in (osc for client in cluster.clients for osc in client.oscs):
        assert osc.dirty_bytes == 0


@settings(max_examples=10)
@given(clusters(), COMPONENTS)
def test_moves_lose_nothing(cluster: Cluster, layout: Layout) -> None:
    cluster.advance(20)
    filesystem = SimulatedFilesystem(cluster)
    for inode in list(cluster.namespace.files())[:5]:
        content, size = inode.content, inode.size_bytes
        with suppress(OSError):
            filesystem.migrate(inode.path, layout)
        assert (inode.content, inode.size_bytes) == (content, size)
    cluster.advance(60)
    check_conservation(cluster)


@pytest.mark.parametrize("model", [Cluster, FluidCluster])
def test_the_same_seed_gives_the_same(model: type[Cluster]) -> None:
    def story(seed: int) -> tuple[list[float], dict[str, bytes], bytes]:
        files = SmallFileWriter(start_seconds=2, sizes=(4096, MIB))
        cluster = model(recorded_test_bed(seed), (StreamingWriter(), files))
        cluster.advance(15)
        log = cluster.throughput("ior_stream.1002", 0, 15)
        return log, render(cluster), cluster.mdts[0].changelog.read(0)

    assert story(7) == story(7)
    assert story(7) != story(8)


def test_steps_of_any_length_give_the_same() -> None:
    one = Cluster(recorded_test_bed(1), (StreamingWriter(), SmallFileWriter()))
    many = Cluster(recorded_test_bed(1), (StreamingWriter(), SmallFileWriter()))
    one.advance(8)
    for _ in range(64):
        many.advance(0.125)
    assert one.throughput("ior_stream.1002", 0, 8) == many.throughput("ior_stream.1002", 0, 8)


@settings(max_examples=15)
@given(clusters(), st.floats(0.1, 8.0))
def test_every_file_reads_back_as_the_model_s_own_numbers(cluster: Cluster, seconds: float) -> None:
    cluster.advance(seconds)
    files = render(cluster)
    for check in (read_counters, read_jobs, read_rpcs, read_disks):
        check(cluster, files)


@settings(max_examples=10)
@given(jobs(), st.integers(0, 99), st.floats(0.1, 20.0))
def test_flows_conserve_too(work: list[Job], seed: int, seconds: float) -> None:
    known = [job for job in work if job.layout is None or {p.pool for p in job.layout.components} <= {"", "a", "b"}]
    pools = {"a": (0, 1), "b": (2, 3), "hdd": (2, 3, 4, 5)}
    cluster = FluidCluster(replace(recorded_test_bed(seed), pools=pools), known)
    before: list[tuple[int, int]] = []
    for _ in range(3):
        cluster.advance(seconds)
        now = [(counter.samples, counter.total) for counter in counters(cluster)]
        assert all(new >= old for pair, former in zip(now, before, strict=False)
                   for new, old in zip(pair, former, strict=True))  # fmt: skip
        before = now
        check_conservation(cluster)
    files = render(cluster)
    read_counters(cluster, files)
    read_jobs(cluster, files)


@pytest.mark.parametrize(("seed", "threads", "direct"),
                         [(0, 1, True), (1, 1, True), (3, 1, True), (1, 3, False), (4, 3, False)])
def test_who_reads_what_another_writes_and_the_writer_do_not_wait_for_each_other(
        seed: int, threads: int, direct: bool) -> None:
    """A writer requests a lock again while the lock is being returned, and queues behind the waiting reader."""
    first, rest = Component(0, 128 << 10, "a", 1, stripe_size=MIB), Component(128 << 10, None, "a", 2, stripe_size=MIB)
    layout = Layout((first, rest))
    osts = tuple(OstSettings(device, Capacity(256 * MIB, 4096))
                 for device in (RaidSettings(size_bytes=1 << 30), HddSettings()))
    clients = ClientSettings(instance="ff01"), ClientSettings(instance="ff02")
    cluster = Cluster(ClusterSettings(osts, {"a": (0, 1)}, clients=clients, seed=seed), [
        StreamingWriter(file_bytes=32 * MIB, direct=False, layout=layout, stop_seconds=6.0, threads=threads),
        StreamingReader(file_bytes=32 * MIB, direct=direct, stop_seconds=6.0, client=1, layout=None)])
    cluster.advance(60)
    assert [osc.dirty_bytes for client in cluster.clients for osc in client.oscs] == [0, 0, 0, 0]


PIECES = st.builds(lambda ost, offset, size: Extent(ost, Fid(1, ost + 1), offset, size),
                   st.integers(0, 2), st.integers(0, 40), st.integers(1, 20))


@given(st.lists(st.tuples(st.lists(PIECES, max_size=3), st.none() | st.integers(0, 50)), max_size=12))
def test_the_sums_of_dirty_bytes_are_those_of_the_pieces(steps: list[tuple[list[Extent], int | None]]) -> None:
    handle = FileHandle(Inode(Fid(2, 1), 0, None, "f", 0.0), Actor(), 2, 0.0, writable=True)
    dirty: dict[int, set[int]] = {}
    for pieces, least_bytes in steps:
        before = sum(map(len, dirty.values()))
        for piece in pieces:
            dirty.setdefault(piece.ost_index, set()).update(range(piece.offset, piece.offset + piece.size_bytes))
        assert sum(map(handle.mark_dirty, pieces)) == sum(map(len, dirty.values())) - before
        if least_bytes is not None:
            full = {ost for ost, places in dirty.items() if len(places) >= least_bytes}
            assert handle.has_dirty(least_bytes) == bool(full)
            taken: dict[int, list[int]] = {}
            for piece in handle.clean(least_bytes):
                taken.setdefault(piece.ost_index, []).extend(range(piece.offset, piece.offset + piece.size_bytes))
            assert taken == {ost: sorted(dirty.pop(ost)) for ost in full}
        assert handle.dirty == bool(dirty)


PROC, SYSFS, DEBUGFS = "proc/fs/lustre", "sys/fs/lustre", "sys/kernel/debug/lustre"


def same_counters(data: bytes, expected: Stats) -> None:
    read = stats.parse(data)
    assert read.skipped == 0
    used = {name.encode(): counter for name, counter in expected.items() if counter.samples}
    assert set(read.names) == set(used)
    for name, counter in used.items():
        got = read.counter(name)
        assert got.samples == counter.samples
        assert got.unit == counter.unit.encode()
        if counter.detail:
            words = next(line for line in data.splitlines() if line.split()[0] == name).split()
            assert [*map(int, words[4:7]), got.sum] == [counter.minimum, counter.maximum, *[counter.total] * 2]


def nonzero(histogram: Histogram) -> list[int]:
    return [count for count in histogram.buckets if count]


def read_counters(cluster: Cluster, files: dict[str, bytes]) -> None:
    """Every stats file has the counters of the model, no more and no fewer."""
    for client in cluster.clients:
        same_counters(files[f"{DEBUGFS}/llite/lustre-{client.settings.instance}/stats"], client.stats)
        for osc in client.oscs:
            same_counters(files[f"{DEBUGFS}/osc/{osc.name}/stats"], osc.stats)
        for mdc in client.mdcs:
            same_counters(files[f"{DEBUGFS}/mdc/{mdc.name}/stats"], mdc.stats)
            same_counters(files[f"{PROC}/mdc/{mdc.name}/md_stats"], mdc.md_stats)
    for ost in cluster.osts:
        same_counters(files[f"{DEBUGFS}/obdfilter/{ost.name}/stats"], ost.stats)
    for mdt in cluster.mdts:
        same_counters(files[f"{PROC}/mdt/{mdt.name}/md_stats"], mdt.stats)


def read_jobs(cluster: Cluster, files: dict[str, bytes]) -> None:
    """Every job, with its counters and histograms."""
    for ost in cluster.osts:
        read = job_stats.parse(files[f"{PROC}/obdfilter/{ost.name}/job_stats"])
        entries = ost.jobs.entries(cluster.now)
        assert read.skipped == 0
        assert [job.job_id for job in read.jobs] == [entry.job_id.encode() for entry in entries]
        for job, entry in zip(read.jobs, entries, strict=True):
            assert job.names == tuple(name.encode() for name, _ in entry.stats.items())
            assert [int(n) for n in job.samples] == [counter.samples for _, counter in entry.stats.items()]
            assert [int(n) for n in job.sums] == [counter.total for _, counter in entry.stats.items()]
            for name, buckets in job.histograms:
                model = entry.histograms[name.decode()]
                assert buckets == tuple((1 << i, n) for i, n in enumerate(model.buckets) if n)


def read_rpcs(cluster: Cluster, files: dict[str, bytes]) -> None:
    """Every table of every connection."""
    for client in cluster.clients:
        for osc in client.oscs:
            read = rpc_stats.parse(files[f"{DEBUGFS}/osc/{osc.name}/rpc_stats"])
            assert read.skipped == 0
            assert (read.read_in_flight, read.write_in_flight) == tuple(osc.in_flight)
            assert (read.pending_read_pages, read.pending_write_pages) == osc.pages_waiting
            for got, name in (
                (read.pages_per_rpc, "pages"), (read.offset, "offset"), (read.rpcs_in_flight, "in_flight"),
                (read.latency_usec, "latency"),
            ):  # fmt: skip
                for direction, side in enumerate(osc.histograms):
                    counts = [] if got is None else [n for n in got.columns[direction] if n]
                    assert counts == nonzero(side[name]), (osc.name, name)


def read_disks(cluster: Cluster, files: dict[str, bytes]) -> None:
    """Every table of every disk."""
    for ost in cluster.osts:
        read = brw_stats.parse(files[f"{DEBUGFS}/osd-ldiskfs/{ost.name}/brw_stats"])
        assert read.skipped == 0
        for histogram in read.histograms:
            title = histogram.name.decode()
            model = next(side for name, side in ost.bulk.brw.sides[True].items() if name.startswith(title))
            assert [n for n in histogram.columns[1] if n] == nonzero(model)
