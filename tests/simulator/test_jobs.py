"""Applications of other kinds, IO500 among them: what they get depends on RPCs, locks and caches as on a real one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.changelog.record import RecordType, decode
from lustre.layout.model import Component, Layout
from simulator.clients.mount import ClientSettings, StataheadSettings
from simulator.clients.readahead import ReadAheadSettings
from simulator.cluster import Cluster
from simulator.devices.flash import Accelerator, AcceleratorSettings, FlashSettings
from simulator.devices.hdd import HddSettings
from simulator.devices.raid import RaidSettings
from simulator.jobs import Job, io500
from simulator.jobs.io500 import BANDWIDTH_PHASES, OPERATION_PHASES, PHASES, Io500
from simulator.jobs.large_files import RandomWriter, SharedFile
from simulator.jobs.metadata import LsScan, Mdtest
from simulator.jobs.small_files import SmallFileWriter
from simulator.scenarios import scenario
from simulator.servers.mdt import MdtSettings
from simulator.servers.objects import Capacity
from simulator.servers.ost import OstSettings
from simulator.settings import ClusterSettings, recorded_test_bed

MIB = 1 << 20
DISKS = OstSettings(HddSettings(size_bytes=1 << 40), Capacity(1 << 40, 1 << 20), journal_device=FlashSettings())


def disks(count: int, clients: int, ost: OstSettings = DISKS, client: ClientSettings | None = None) -> ClusterSettings:
    client = client or ClientSettings()
    mounts = tuple(replace(client, instance=f"ff{n:04d}", copy_seconds_per_mib=0.0005) for n in range(clients))
    return ClusterSettings((ost,) * count, {"hdd": tuple(range(count))}, clients=mounts)


def ran(settings: ClusterSettings, job: Job, seconds: float = 60.0) -> Cluster:
    cluster = Cluster(settings, (job,))
    cluster.advance(seconds)
    return cluster


def rate(cluster: Cluster, what: str) -> float:
    return next(iter(cluster.runs.values())).team.per_second(what)


def striped(count: int, pattern: str = "raid0") -> Layout:
    return Layout((Component(pool="hdd", stripe_count=count, stripe_size=MIB, pattern=pattern),), composite=False)


def test_mdtest_goes_through_its_phases_and_leaves_nothing() -> None:
    cluster = ran(recorded_test_bed(), Mdtest(nodes=2, threads=2, files_each=20))
    assert sum(mdt.stats["mknod"].samples for mdt in cluster.mdts) == 80
    assert sum(mdt.stats["unlink"].samples for mdt in cluster.mdts) == 80
    assert not list(cluster.namespace.files())
    assert all(rate(cluster, phase) > 0 for phase in ("create", "stat", "read", "unlink"))


def test_processes_of_an_old_kernel_look_up_names_of_one_directory_in_turn() -> None:
    job = Mdtest(nodes=1, threads=8, files_each=20, shared=True)
    rates = [rate(ran(disks(2, 1, client=ClientSettings(parallel_lookups=parallel)), job), "stat")
             for parallel in (True, False)]  # fmt: skip
    assert rates[1] < 0.6 * rates[0]
    apart = replace(job, shared=False)
    assert rate(ran(disks(2, 1, client=ClientSettings(parallel_lookups=False)), apart), "stat") > 1.5 * rates[1]


def test_the_size_of_data_on_the_mdt_comes_from_the_lock_holder() -> None:
    dom = Layout((Component(0, 65536, pattern="mdt"), Component(65536, None, "hdd")))
    held = Mdtest(nodes=2, files_each=20, layout=dom, drops_locks=False)
    slow, quick = (rate(ran(recorded_test_bed(), job), "stat") for job in (held, replace(held, drops_locks=True)))
    assert slow < 0.8 * quick


def test_files_written_in_small_calls_are_whole_in_the_end() -> None:
    job = SmallFileWriter(files_per_second=50.0, sizes=(65536,), call_bytes=4096, stop_seconds=1.0, fsync=False)
    cluster = ran(recorded_test_bed(), job, 20.0)
    files = list(cluster.namespace.files())
    assert len(files) > 5
    assert {inode.size_bytes for inode in files} == {65536}
    assert sum(ost.bulk.written_bytes for ost in cluster.osts) == 65536 * len(files)


def test_stat_of_files_on_the_mdt_asks_no_ost() -> None:
    dom = Layout((Component(0, 65536, pattern="mdt"), Component(65536, None, "hdd")))
    with_dom = ran(recorded_test_bed(), Mdtest(nodes=2, files_each=20, layout=dom))
    without = ran(recorded_test_bed(), Mdtest(nodes=2, files_each=20))
    assert rate(with_dom, "stat") > 1.2 * rate(without, "stat")
    assert sum(osc.stats["ldlm_glimpse_enqueue"].samples for osc in with_dom.clients[0].oscs) == 0


def test_one_directory_is_slower_than_one_for_each() -> None:
    job = Mdtest(nodes=8, threads=8, files_each=10, striped_directories=False)
    settings = replace(disks(2, 8), mdts=(MdtSettings(cores=64),))
    assert rate(ran(settings, job), "create") > 1.5 * rate(ran(settings, replace(job, shared=True)), "create")


def creates_in_one_directory(clients: int) -> float:
    settings = replace(disks(4, clients, client=ClientSettings(network_seconds=0.00004)),
                       mdts=(MdtSettings(cores=64, work_factor=0.1),))
    return rate(ran(settings, Mdtest(nodes=clients, threads=16 // clients, files_each=20, shared=True)), "create")


def test_a_client_has_one_change_of_a_directory_in_flight() -> None:
    one, many = creates_in_one_directory(1), creates_in_one_directory(16)
    assert many > 4 * one
    round_trip_and_service_seconds = 0.00008 + 0.00016
    assert one < 1.3 / round_trip_and_service_seconds


def test_lookups_in_one_directory_pass_one_lock_on_each_mdt() -> None:
    job = Mdtest(nodes=32, threads=4, files_each=10, shared=True, phases=("create", "stat"))
    client = ClientSettings(network_seconds=0.00004)
    rates = [rate(ran(replace(disks(4, 32, client=client), mdts=(MdtSettings(cores=64, work_factor=0.1),) * mdts), job),
                  "stat") for mdts in (1, 4)]  # fmt: skip
    assert rates[0] < 1.05 / 5e-6
    assert rates[1] > 1.5 * rates[0]


def test_more_objects_let_more_clients_write_one_file() -> None:
    job = SharedFile(nodes=8, piece_bytes=MIB, pieces_each=40, direct=True)
    one = ran(disks(4, 8), replace(job, layout=striped(1)))
    four = ran(disks(4, 8), replace(job, layout=striped(4)))
    over = ran(disks(4, 8), replace(job, layout=striped(16, "raid0,overstriped")))
    assert rate(four, "piece") > 1.5 * rate(one, "piece")
    assert rate(over, "piece") > rate(one, "piece")


def test_overstriping_on_many_disks_serves_processes_that_each_have_an_object() -> None:
    """Two groups of 20 disks, and 32 processes that write 1 MiB in turn. Rates are those of the disks."""
    group = replace(DISKS, device=RaidSettings(disks=20))
    found = {}
    for objects in (2, 32):
        job = SharedFile(nodes=8, threads=4, piece_bytes=MIB, pieces_each=1000, layout=striped(
            objects, "raid0,overstriped"))
        cluster = ran(disks(2, 8, group), job, 1.0)
        before = sum(ost.bulk.written_bytes for ost in cluster.osts)
        cluster.advance(1.0)
        found[objects] = sum(ost.bulk.written_bytes for ost in cluster.osts) - before
    assert found[32] > 1.5 * found[2]


def test_an_mdt_is_asked_once_for_each_client_and_records_one_open_for_each_user() -> None:
    mdt, _ = ran(disks(1, 3), SharedFile(nodes=3, threads=4, pieces_each=2, layout=striped(1))).mdts
    assert [mdt.stats[name].samples for name in ("open", "close")] == [3, 3]
    assert [record.type for record in decode(mdt.changelog.read(0))[0]] == [RecordType.OPEN, RecordType.CLOSE]


def test_clients_that_write_one_object_take_each_others_locks() -> None:
    cluster = ran(disks(1, 4), SharedFile(nodes=4, pieces_each=40, layout=striped(1)))
    (stored,) = cluster.osts[0].store.objects.values()
    assert stored.locks.callbacks > 3
    assert cluster.osts[0].bulk.written_bytes >= 4 * 40 * 47008
    apart = ran(disks(1, 1), SharedFile(nodes=1, pieces_each=160, layout=striped(1)))
    assert rate(apart, "piece") > 3 * rate(cluster, "piece")


def hit_share(by_bytes: bool) -> float:
    client = ClientSettings(read_ahead=ReadAheadSettings(strides_by_bytes=by_bytes))
    job = SharedFile(nodes=1, threads=8, pieces_each=60, write=False)
    stats = ran(disks(4, 1, client=client), job).clients[0].read_ahead.stats
    hits, misses = stats["hits"].samples, stats["misses"].samples
    return hits / (hits + misses)


def test_strides_that_are_no_whole_pages_are_seen_since_2_14() -> None:
    assert hit_share(by_bytes=False) < 0.25
    assert hit_share(by_bytes=True) > 0.75


def ls_seconds(settings: StataheadSettings) -> Cluster:
    client = ClientSettings(statahead=settings)
    return ran(disks(2, 1, client=client), LsScan(names=500))


def test_statahead_makes_ls_faster_and_batches_make_it_faster_still() -> None:
    none, single, batched = (ls_seconds(StataheadSettings(*both)) for both in ((0, 0), (128, 0), (128, 64)))
    assert rate(single, "stat") > 1.5 * rate(none, "stat")
    assert rate(batched, "stat") > rate(single, "stat")
    counters = batched.clients[0].statahead
    assert counters["hit_total"] > 450
    assert counters["miss_total"] < 50
    assert none.clients[0].statahead["hit_total"] == 0


def test_an_accelerator_writes_its_data_to_idle_disks() -> None:
    fast = replace(DISKS, accelerator=AcceleratorSettings())
    job = RandomWriter(file_bytes=64 << 20, layout=striped(2), stop_seconds=1.0, client=0)
    cluster = ran(disks(2, 1, fast), job, 90.0)
    for ost in cluster.osts:
        assert isinstance(ost.device, Accelerator)
        assert ost.device.taken_in > 10
        assert not ost.device._held


def test_an_accelerator_takes_small_random_writes_in_and_lets_large_ones_pass() -> None:
    fast = replace(DISKS, accelerator=AcceleratorSettings())
    small = RandomWriter(file_bytes=1 << 30, layout=striped(4), stop_seconds=3.0, client=0)
    large = replace(small, call_bytes=40960)
    rates = {
        (ost is fast, job.call_bytes): ran(disks(4, 1, ost), job, 4).log.mean(job.job_id, 1, 3)
        for ost in (DISKS, fast)
        for job in (small, large)
    }
    assert rates[True, 4096] > 2 * rates[False, 4096]
    assert rates[True, 40960] < 1.2 * rates[False, 40960]


def test_a_job_starts_with_a_burst() -> None:
    job = SmallFileWriter(burst_seconds=5.0, files_per_second=10, sizes=(4096,), start_seconds=7.0)
    rates = ran(recorded_test_bed(), job, 28).throughput(job.job_id, 0, 28)
    assert min(rates[8:11]) > 0
    assert max(rates[13:16]) == 0 < min(rates[18:21])


def test_a_rate_builds_up() -> None:
    job = SmallFileWriter(build_up_seconds=20.0, files_per_second=20, sizes=(4096,), start_seconds=5.0)
    cluster = ran(recorded_test_bed(), job, 45)
    files = [sum(cluster.throughput(job.job_id, since, since + 10)) * 1e6 / 4096 for since in (5, 15, 25, 35)]
    assert files == [pytest.approx(wanted, rel=0.15) for wanted in (53, 150, 200, 200)]


def test_jobs_with_different_prefixes_share_a_directory() -> None:
    jobs = [SmallFileWriter(job_id=f"7_{task}", prefix=f"t{task}.", sizes=(4096,), threads=2) for task in (1, 2)]
    cluster = Cluster(recorded_test_bed(), jobs)
    cluster.advance(10)
    assert [run.errors for run in cluster.runs.values()] == [{}, {}]
    assert all(run.operations > 100 for run in cluster.runs.values())


def test_think_time_is_time_not_worked() -> None:
    busy = SharedFile(nodes=1, pieces_each=1000, layout=striped(1))
    idle = replace(busy, think_seconds=0.1)
    assert rate(ran(disks(1, 1), idle), "piece") < 12 < rate(ran(disks(1, 1), busy), "piece")


PUBLISHED = {
    # seed 003, a column each: IOR easy write, easy read, hard write, hard read (GiB/s); IOPS (k/s); mean, score
    "1SC20": ((37.56, 45.95, 2.77, 40.81), 232.69, 21.02, 69.93),
    "1SC22": ((55.95, 83.86, 5.02, 39.73), 368.48, 31.10, 107.05),
    "SC22": ((58.07, 77.56, 5.27, 49.36), 544.23, 32.90, 133.81),
}


@pytest.mark.parametrize("column", PUBLISHED)
def test_published_bandwidths_give_the_published_score(column: str) -> None:
    bandwidths, iops, mean, total = PUBLISHED[column]
    phases = ("ior-easy-write", "ior-easy-read", "ior-hard-write", "ior-hard-read")
    rates = {phase: 1024 * rate for phase, rate in zip(phases, bandwidths, strict=True)}
    found = io500.score(rates | dict.fromkeys(OPERATION_PHASES, 1000 * iops))
    assert found.bandwidth_gib_s == pytest.approx(mean, abs=0.01)
    assert found.total == pytest.approx(total, abs=0.05)


@given(st.lists(st.floats(1e-3, 1e6), min_size=len(PHASES), max_size=len(PHASES)), st.floats(0.01, 100))
def test_the_score_scales_with_all_rates(values: list[float], factor: float) -> None:
    rates = dict(zip(PHASES, values, strict=True))
    one, more = io500.score(rates), io500.score({phase: rate * factor for phase, rate in rates.items()})
    assert more.total == pytest.approx(one.total * factor)
    assert min(rates[phase] for phase in BANDWIDTH_PHASES) <= one.bandwidth_gib_s * 1024 * (1 + 1e-9)


def small(name: str) -> dict[str, float]:
    variant = scenario.library("io500").variants()[name]
    (job,) = variant.jobs
    assert isinstance(job, Io500)
    short = replace(job, easy_bytes=8 << 20, pieces_each=40, easy_files_each=12, hard_files_each=8)
    cluster = Cluster(variant.cluster(1), (short,))
    cluster.advance(30)
    assert not [inode for inode in cluster.namespace.files() if "mdtest" in inode.path]
    run = cluster.runs[job.job_id]
    assert not run.errors
    done = {phase: run.team.done[phase][0] for phase in PHASES}
    processes = job.nodes * job.threads
    assert done["ior-easy-write"] == pytest.approx(8 * processes)
    assert done["ior-hard-read"] == pytest.approx(40 * processes * 47_008 / (1 << 20))
    assert done["find"] == processes * (12 + 8 + 1) + 1
    assert done["mdtest-hard-delete"] == processes * 8
    return {phase: run.team.per_second(phase) for phase in PHASES}


def test_data_on_mdt_makes_hard_files_faster_and_leaves_ior_as_it_is() -> None:
    plain, on_mdt = small("contended"), small("data_on_mdt")
    assert on_mdt["mdtest-hard-read"] > 1.1 * plain["mdtest-hard-read"]
    assert on_mdt["ior-easy-read"] == pytest.approx(plain["ior-easy-read"], rel=0.2)
    assert io500.score(on_mdt) is not None
