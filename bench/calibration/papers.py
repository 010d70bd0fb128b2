"""Published results against the model: the same comparisons on the described machines.

Parameters come from data sheets and from the papers. Each that was chosen by a row is named, and the row is marked.
What a paper does not give is drawn through a range, and the row has the range of its results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from statistics import mean

from bench.calibration import Row, change, share
from lustre.layout.model import Component, Layout
from simulator.clients.mount import ClientSettings, StataheadSettings
from simulator.clients.osc import OscSettings
from simulator.clients.readahead import ReadAheadSettings
from simulator.cluster import Cluster
from simulator.devices.flash import AcceleratorSettings, FlashSettings
from simulator.devices.hdd import HddSettings
from simulator.devices.raid import RaidSettings
from simulator.jobs import Job
from simulator.jobs.large_files import SharedFile, StreamingReader, StreamingWriter
from simulator.jobs.metadata import PHASES, LsScan, Mdtest
from simulator.jobs.small_files import SmallFileWriter
from simulator.scenarios import scenario
from simulator.scenarios.scenario import Scenario
from simulator.servers.mdt import MdtSettings
from simulator.servers.objects import Capacity
from simulator.servers.ost import OstSettings
from simulator.settings import ClusterSettings

MIB = 1 << 20
DISKS = OstSettings(HddSettings(spindles=8, bytes_per_second=1e9, size_bytes=1 << 40), Capacity(1 << 40, 1 << 24),
                    journal_device=FlashSettings(), preparing_seconds=0.00005,
                    preparing_seconds_per_mib=0.00005)  # fmt: skip
INFINIBAND_SECONDS = 0.00004
"""One-way latency of a request over InfiniBand or Omni-Path, with the threads of both ends."""
OLD_KERNEL = ClientSettings(parallel_lookups=False, network_seconds=INFINIBAND_SECONDS, name_seconds=0.00005)
"""CentOS 7.5 on the clients: Linux 3.10, with its protection against Spectre and Meltdown (given).

An operation on a name takes 50 microseconds of a processor."""
DOM = Layout((Component(0, 65536, pattern="mdt"), Component(65536, None, "hdd")))


def rows() -> list[Row]:
    return [*noisy_neighbour(), *metadata(), *powerflex(), *accelerator(), *shared_file(), *strides(), *statahead(),
            *rpcs()]


def machine(osts: int, clients: int, ost: OstSettings = DISKS, client: ClientSettings | None = None,
            mdts: int = 1) -> ClusterSettings:  # fmt: skip
    """A machine with these disks and clients, and with processors of that year in its metadata servers."""
    client = client or ClientSettings()
    mounts = tuple(replace(client, instance=f"ff{n:04d}", copy_seconds_per_mib=0.0005) for n in range(clients))
    mdt = MdtSettings(cores=16, work_factor=0.1, capacity=Capacity(1 << 40, 1 << 30))
    return ClusterSettings((ost,) * osts, {"hdd": tuple(range(osts))}, clients=mounts, mdts=(mdt,) * mdts)


def ran(settings: ClusterSettings, job: Job, seconds: float) -> Cluster:
    cluster = Cluster(settings, (job,))
    cluster.advance(seconds)
    return cluster


def per_second(cluster: Cluster, count: Callable[[Cluster], int], seconds: float) -> float:
    """What is counted from now on."""
    before = count(cluster)
    cluster.advance(seconds)
    return (count(cluster) - before) / seconds


def written(cluster: Cluster) -> int:
    return sum(ost.bulk.written_bytes for ost in cluster.osts)


def metadata_machine(mdts: int, cores: int, files: int) -> ClusterSettings:
    """The machine of table 1: 64 clients with Linux 3.10, 6 OSTs, up to 4 MDSs.

    The OSTs have created as large a part of the files ahead as in the published runs of a million files for each MDT:
    20,000 objects for each MDT, Lustre's limit.
    """
    ahead = max(1, 20_000 * files // (4 << 20))
    settings = machine(6, 64, replace(DISKS, precreate_ahead=ahead), OLD_KERNEL, mdts=mdts)
    return replace(settings, mdts=tuple(replace(mdt, cores=cores) for mdt in settings.mdts))


def phase_rates(settings: ClusterSettings, job: Mdtest) -> dict[str, float]:
    (run,) = ran(settings, job, 30.0).runs.values()
    return {phase: run.team.per_second(phase) for phase in PHASES}


PROCESSES, CORES = (2, 8), (16, 28)
"""Processes on each node, and cores of an MDS: the paper gives neither."""


def metadata() -> list[Row]:
    """DoM instead of a plain layout, and 4 MDTs instead of 1: mdtest with empty files (P0, P1 table 1)."""
    published = {
        False: (352809 / 167611, 1053564 / 753885, 787548 / 602834, 373597 / 346796),
        True: (174572 / 148974, 332047 / 428402, 823025 / 605334, 189968 / 187857),
    }  # fmt: skip
    scaling = 148974 / 76578, 428402 / 181320, 605334 / 152441, 187857 / 80390
    found: dict[tuple[str, str], list[float]] = {}

    def compare(what: str, rates: dict[str, float], base: dict[str, float]) -> None:
        for phase in PHASES:
            found.setdefault((what, phase), []).append(rates[phase] / base[phase])

    for threads, cores in product(PROCESSES, CORES):
        job = Mdtest(nodes=64, threads=threads, files_each=20)
        one, four = (metadata_machine(mdts, cores, 64 * threads * 20) for mdts in (1, 4))
        for shared in (False, True):
            plain = phase_rates(four, replace(job, shared=shared))
            kind = "shared directory" if shared else "unique directories"
            compare(f"DoM, {kind}", phase_rates(four, replace(job, shared=shared, layout=DOM)), plain)
        compare("4 MDTs, shared directory", plain, phase_rates(one, replace(job, shared=True)))
    stated = [*published[False], *published[True], *scaling]
    return [Row(f"{what}: {phase}", "P1 table 1" if what.startswith("DoM") else "P0, P1 table 1", change(ratio),
                change(*ratios)) for ((what, phase), ratios), ratio in zip(found.items(), stated, strict=True)]


POWERFLEX_IO_SECONDS = 0.00028
"""Time of one I/O of a PowerFlex volume apart from its bytes: chosen by the row of IOR reads, and by no other."""
POWERFLEX_CLIENT = ClientSettings(
    parallel_lookups=False, network_seconds=INFINIBAND_SECONDS, name_seconds=0.00005, network_bytes_per_second=12.3e9,
    osc=OscSettings(max_rpcs_in_flight=16, max_pages_per_rpc=4096),
)  # fmt: skip
"""A client of seed 002: Linux 3.10, Omni-Path at 100 Gb/s, its tunables (given)."""


def powerflex_ost() -> OstSettings:
    """A quarter of an OSS of seed 002: two NVMe SSDs below a mirrored volume, 3 of the 12 threads of an SDS (given).

    The bandwidth is the published maximum of reads. Each write is two I/Os, because volumes are mirrored (given).
    """
    device = FlashSettings(30.8e9 / 16, POWERFLEX_IO_SECONDS, 3, 1 << 40, copies=2)
    return OstSettings(device, Capacity(1 << 40, 1 << 24), journal_device=FlashSettings(), preparing_seconds=0.00005,
                       preparing_seconds_per_mib=0.00005)  # fmt: skip


def powerflex() -> list[Row]:
    """Compare transfer sizes, numbers of MDSs and files for each process on PowerFlex (seeds 002)."""
    kib = 1024
    writes = {call: _direct_rate(StreamingWriter, call) for call in (128 * kib, 8 * MIB)}
    reads = {call: _direct_rate(StreamingReader, call) for call in (128 * kib, 32 * MIB)}
    many = {mdts: created_per_second(mdts, 65536) for mdts in (1, 2)}
    return [
        Row("IOR read, calls of 128 KiB instead of 32 MiB", "P2 figure 3", change(18.3 / 30.8),
            change(reads[128 * kib] / reads[32 * MIB]), used=True),
        Row("IOR write, calls of 128 KiB instead of 8 MiB", "P2 figure 2", change(7.4 / 11.5),
            change(writes[128 * kib] / writes[8 * MIB])),
        Row("2 MDSs, 65,536 files of 4 KiB for each process: create", "P2 figure 8", "+37%", change(many[2] / many[1])),
        Row("65,536 files for each process instead of 4,096: create", "P2", change(98.3 / 218),
            change(many[2] / created_per_second(2, 4096))),
    ]  # fmt: skip


def _direct_rate(kind: type[StreamingWriter | StreamingReader], call_bytes: int) -> float:
    """Bytes per second of one OSS with 3 of the 12 clients, 72 processes each, and one file for each process."""
    layout = Layout((Component(pool="hdd", stripe_size=4 * MIB),), composite=False)
    job = kind(threads=1, call_bytes=call_bytes, file_bytes=8 << 30, think_seconds=0.0, direct=True, layout=layout)
    jobs = [replace(job, job_id=f"ior.{n}", path=f"/proj/ior/f{n}", client=n % 3) for n in range(3 * 72)]
    cluster = Cluster(machine(4, 3, powerflex_ost(), POWERFLEX_CLIENT), jobs)
    cluster.advance(0.2)
    return per_second(cluster, lambda of: written(of) + sum(ost.bulk.read_bytes for ost in of.osts),
                      0.2 if call_bytes < MIB else 0.6)


def created_per_second(mdts: int, files_each: int) -> float:
    """Rate of creates of 4 KiB files by 432 processes on 12 clients.

    The model creates 20 files in each process. What does not grow with the number of files is scaled down alike: the
    dirty bytes of a client for each OST (32 MiB), the precreated objects (20,000 for each OST) and the age of dirty
    pages at which the kernel writes them (30 s).
    """
    model_files = 20
    scale = files_each / model_files
    osc = replace(POWERFLEX_CLIENT.osc, max_dirty_bytes=int((32 << 20) / scale))
    client = replace(POWERFLEX_CLIENT, osc=osc, write_back_seconds=30 / scale)
    ost = replace(powerflex_ost(), precreate_ahead=max(int(20_000 / scale), 1))
    settings = machine(16, 12, ost, client, mdts=mdts)
    settings = replace(settings, mdts=tuple(replace(mdt, cores=24) for mdt in settings.mdts))  # 2 x 12 cores (given)
    job = Mdtest(nodes=12, threads=36, files_each=model_files, file_bytes=4096, phases=("create",),
                 layout=Layout((Component(pool="hdd"),), composite=False))  # fmt: skip
    return phase_rates(settings, job)["create"]


def accelerator() -> list[Row]:
    """Disks with and without NXD, and with DoM: files written in random 4 KiB calls, the first part on flash (P0, P1).

    Processes on each node are not given, nor whether a client gathers the calls of a file. Ratios are means over the
    sizes of files and of first parts.
    """
    sizes = [(size, first) for size in (MIB, 4 * MIB, 8 * MIB) for first in (MIB // 16, MIB // 2, MIB, 4 * MIB)
             if first < size]  # fmt: skip

    def gain(call: int, threads: int) -> float:
        return mean(_iops(*pair, call, threads, nxd=True) / _iops(*pair, call, threads, nxd=False) for pair in sizes)

    return [
        Row("NXD, 4 KiB calls", "P0", "3.5 to 4.5 times", change(*(gain(4096, threads) for threads in (1, 4)))),
        Row("NXD, 40 KiB calls, beyond its bypass size", "P1 §IV.1", "+0%", change(gain(40960, 1))),
        Row("DoM instead of disks, files of 64 KiB: write", "P1 §V", "+20% to +40%",
            change(*(dom_write_gain(call) for call in (0, 4096, 65536)))),
    ]


def dom_write_gain(call: int) -> float:
    """Files of 64 KiB that 64 processes write, on 4 MDTs and on 4 groups of 41 disks (P0, P1): ratio of the rates.

    ``call`` is the size of direct calls; 0 for a client that gathers the file.
    """
    def rate(layout: Layout) -> float:
        settings = metadata_machine(4, 24, 4 << 20)
        disks = replace(DISKS, device=RaidSettings())
        mdt = replace(settings.mdts[0], device=FlashSettings(2.2e9, 0.0001, 64, 1 << 40))
        cluster = ran(
            replace(settings, osts=(disks,) * 4, pools={"hdd": (0, 1, 2, 3)}, mdts=(mdt,) * 4),
            SmallFileWriter(nodes=64, client=0, threads=1, files_per_second=float("inf"), sizes=(65536,),
                            call_bytes=call, fsync=False, keep=1 << 20, layout=layout), 0.3)
        return per_second(cluster, lambda of: sum(mdt.stats["close"].samples for mdt in of.mdts), 0.5)

    return rate(DOM) / rate(Layout((Component(pool="hdd"),), composite=False))


def _iops(size: int, first: int, call: int, threads: int, *, nxd: bool) -> float:
    """Write RPCs a second of 64 nodes, to 4 groups of 41 disks and 2 flash targets, journals on SSD (given)."""
    disks = replace(DISKS, device=RaidSettings(), accelerator=AcceleratorSettings() if nxd else None)
    flash = replace(DISKS, device=FlashSettings(2.2e9, 0.0001, 64, 1 << 40))
    settings = machine(4, 64, disks, replace(OLD_KERNEL, osc=OscSettings(max_rpcs_in_flight=64)))
    settings = replace(settings, osts=(*settings.osts, flash, flash), pools={"hdd": (0, 1, 2, 3), "flash": (4, 5)})
    layout = Layout((Component(0, first, "flash"), Component(first, None, "hdd")))
    job = SmallFileWriter(nodes=64, client=0, threads=threads, files_per_second=float("inf"), sizes=(size,),
                          call_bytes=call, fsync=False, keep=1 << 20, layout=layout)
    return per_second(ran(settings, job, 0.1), lambda of: sum(ost.stats["write_bytes"].samples for ost in of.osts), 0.2)


def striped(count: int, pattern: str = "raid0") -> Layout:
    return Layout((Component(pool="hdd", stripe_count=count, stripe_size=MIB, pattern=pattern),), composite=False)


def shared_file() -> list[Row]:
    """Compare stripe counts and overstriping for one file, with one writer and with many (seeds 003, 004).

    Overstriping has the machine of DDN and its IOR: 8 OSTs of 20 disks, 512 processes on 32 nodes, calls of 1 MiB.
    """
    job = SharedFile(nodes=32, threads=16, piece_bytes=MIB, pieces_each=13000)
    group = replace(DISKS, device=RaidSettings(disks=20), capacity=Capacity(1 << 46, 1 << 20))

    def rate(layout: Layout) -> float:
        return per_second(ran(machine(8, 32, group), replace(job, layout=layout), 1.0), written, 1.0)

    one, eight, over = rate(striped(1)), rate(striped(8)), rate(striped(512, "raid0,overstriped"))
    serial = StreamingWriter(fresh=True, file_bytes=1 << 40, call_bytes=32 * MIB, threads=1, think_seconds=0.0,
                             stop_seconds=8.0)

    def alone(count: int) -> float:
        return ran(machine(8, 1), replace(serial, layout=striped(count)), 8.0).log.mean(serial.job_id, 2, 8)

    return [
        Row("one writer: 8 stripes instead of 1", "P4", "25 to almost 200 MB/s", change(alone(8) / alone(1))),
        Row("one file of 512 writers: 8 stripes instead of 1", "P4", "more", change(eight / one)),
        Row("one file of 512 writers on 8 OSTs: 512 objects instead of 8", "P3", "more", change(over / eight)),
    ]


def strides() -> list[Row]:
    """Read-ahead hits of 47,008-byte strided reads (P3)."""
    def hits(by_bytes: bool) -> str:
        client = ClientSettings(read_ahead=ReadAheadSettings(strides_by_bytes=by_bytes))
        job = SharedFile(nodes=1, threads=16, pieces_each=100, write=False)
        stats = ran(machine(4, 1, client=client), job, 60.0).clients[0].read_ahead.stats
        return share(stats["hits"].samples / (stats["hits"].samples + stats["misses"].samples))

    return [Row("47,008-byte strides, hits before 2.14", "P3", "9%", hits(by_bytes=False)),
            Row("47,008-byte strides, hits from 2.14 on", "P3", "88%", hits(by_bytes=True))]


def statahead() -> list[Row]:
    """Mean time of getattr in ``ls -l`` with and without batches (P3).

    The servers are virtual machines. Neither their latency nor the time of their processors for a name is given.
    """
    def seconds(batch: int, latency: float, work_factor: float) -> float:
        client = ClientSettings(statahead=StataheadSettings(128, batch), network_seconds=latency)
        settings = machine(4, 1, client=client)
        mdts = tuple(replace(mdt, work_factor=work_factor) for mdt in settings.mdts)
        cluster = ran(replace(settings, mdts=mdts), LsScan(names=5000), 60.0)
        counter = cluster.clients[0].stats["getattr"]
        return counter.total / counter.samples

    return [Row("getattr, batched instead of single statahead", "P3", change(5410470 / 10099392), change(
        *(seconds(64, *each) / seconds(0, *each) for each in product((0.00004, 0.0001), (0.05, 0.1)))))]


def rpcs() -> list[Row]:
    """RPC sizes and RPCs in flight: a stream of 16 MiB calls to one flash target."""
    fast = OstSettings(FlashSettings(4e9, 0.0005, 64, 1 << 40), Capacity(1 << 40, 1 << 20), preparing_seconds=0.0001,
                       preparing_seconds_per_mib=0.0002)  # fmt: skip

    def rate(pages: int, in_flight: int) -> float:
        client = ClientSettings(osc=OscSettings(max_rpcs_in_flight=in_flight, max_pages_per_rpc=pages))
        job = StreamingWriter(layout=striped(1), call_bytes=16 * MIB, threads=2, think_seconds=0.0, stop_seconds=3.0)
        return ran(machine(1, 1, fast, client), job, 3.0).log.mean(job.job_id, 1, 3)

    base = rate(256, 1)
    return [Row("RPCs of 4 MiB instead of 1 MiB, one in flight", "P2", "more", change(rate(1024, 1) / base)),
            Row("8 RPCs of 1 MiB in flight instead of 1", "P2", "more", change(rate(256, 8) / base))]


PAPER_STREAM, PAPER_NOISE = "ior.1002", "mdtest.1001"
NOISE_CASES = ((None, None), (128 << 10, None), (256 << 10, None), (None, 2), (None, 4))
"""Chunk of the RAID group and nodes with mdtest, where they are not those of the scenario: the paper gives neither."""


def noisy_neighbour() -> list[Row]:
    """Sequential writes with mdtest, on disks and with components on flash (P1, figure 3).

    The scenario has three nodes with mdtest because of the published loss.
    """
    found: dict[str, list[float]] = {}
    for name, variant in scenario.library("noisy-neighbour-paper").variants().items():
        found[name] = [_rate(variant, chunk, nodes) for chunk, nodes in NOISE_CASES]

    def relative(of: str, to: str = "alone") -> list[float]:
        return [rate / base for rate, base in zip(found[of], found[to], strict=True)]

    return [
        Row("stream with files of 4 MB", "P1 figure 3", "-20% to -30%", change(*relative("contended")), used=True),
        Row("stream with files of 1 MB", "P1 figure 3", "-20% to -30%", change(*relative("contended_1m"))),
        Row("the files of 4 MB on flash", "P1 §IV.3", "+0%", change(*relative("flash_covers"))),
        Row("1 MB of each on flash", "P1 §IV.3", "less", change(*relative("flash_too_small", "contended"))),
    ]


def _rate(variant: Scenario, chunk_bytes: int | None, noise_nodes: int | None) -> float:
    settings = variant.cluster(1)
    if chunk_bytes is not None:
        settings = replace(settings, osts=tuple(_with_chunk(ost, chunk_bytes) for ost in settings.osts))
    jobs = [
        replace(job, nodes=noise_nodes) if noise_nodes and job.job_id == PAPER_NOISE else job for job in variant.jobs
    ]
    cluster = Cluster(settings, jobs)
    cluster.advance(4.0)
    return cluster.log.mean(PAPER_STREAM, 1, 4)


def _with_chunk(ost: OstSettings, chunk_bytes: int) -> OstSettings:
    if not isinstance(ost.device, RaidSettings):
        return ost
    return replace(ost, device=replace(ost.device, chunk_bytes=chunk_bytes))
