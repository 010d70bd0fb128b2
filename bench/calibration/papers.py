"""Published results against the model: the same comparison on a small machine, and the noisy-neighbour experiment.

The noisy-neighbour experiment runs on the described machine, and again with other values of unpublished parameters.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import mean

from bench.calibration import Row
from lustre.layout.model import Component, Layout
from simulator.clients.mount import ClientSettings, StataheadSettings
from simulator.clients.osc import OscSettings
from simulator.clients.readahead import ReadAheadSettings
from simulator.cluster import Cluster
from simulator.devices.flash import AcceleratorSettings, FlashSettings
from simulator.devices.hdd import HddSettings
from simulator.devices.raid import RaidSettings
from simulator.jobs import Job
from simulator.jobs.large_files import SharedFile, StreamingWriter
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
OLD_KERNEL = ClientSettings(parallel_lookups=False)
"""CentOS 7.5 on the clients: Linux 3.10 (given)."""
DOM = Layout((Component(0, 65536, pattern="mdt"), Component(65536, None, "hdd")))


def rows() -> list[Row]:
    """Return all comparisons."""
    return [*metadata(), *accelerator(), *shared_file(), *strides(), *statahead(), *rpcs()]


def machine(osts: int, clients: int, ost: OstSettings = DISKS, client: ClientSettings | None = None,
            mdts: int = 1) -> ClusterSettings:  # fmt: skip
    """A machine with these disks and clients, and with processors of that year in its metadata servers."""
    client = client or ClientSettings()
    mounts = tuple(replace(client, instance=f"ff{n:04d}", copy_seconds_per_mib=0.0005) for n in range(clients))
    mdt = MdtSettings(cores=16, work_factor=0.1, capacity=Capacity(1 << 40, 1 << 30))
    return ClusterSettings((ost,) * osts, {"hdd": tuple(range(osts))}, clients=mounts, mdts=(mdt,) * mdts)


def ran(settings: ClusterSettings, job: Job, seconds: float) -> Cluster:
    """Run a job alone on a machine."""
    cluster = Cluster(settings, (job,))
    cluster.advance(seconds)
    return cluster


def per_second(cluster: Cluster, what: str) -> float:
    """Operations per second of one kind."""
    return next(iter(cluster.runs.values())).team.per_second(what)


def metadata() -> list[Row]:
    """Compare DoM with a plain layout: empty files on four MDTs (seeds 001, Table 1)."""
    published = {
        False: (352809 / 167611, 1053564 / 753885, 787548 / 602834, 373597 / 346796),
        True: (174572 / 148974, 332047 / 428402, 823025 / 605334, 189968 / 187857),
    }  # fmt: skip
    few = replace(DISKS, precreate_ahead=200)  # a short run then resembles a long run
    found = []
    for shared, gains in published.items():
        job = Mdtest(nodes=32, threads=8, files_each=25, shared=shared)
        rates = [ran(machine(3, 32, few, OLD_KERNEL, mdts=2), replace(job, layout=layout), 30.0)
                 for layout in (None, DOM)]
        kind = "shared directory" if shared else "unique directories"
        found += [Row(f"DoM / none, {kind}: {what}", gain, per_second(rates[1], what) / per_second(rates[0], what))
                  for what, gain in zip(PHASES, gains, strict=True)]  # fmt: skip
    return found


def accelerator() -> list[Row]:
    """Compare disks with and without NXD: files written in random 4 KiB calls, the first part on flash (000, 001)."""
    sizes = [(size, first) for size in (MIB, 4 * MIB, 8 * MIB) for first in (MIB // 16, MIB // 2, MIB, 4 * MIB)
             if first < size]  # fmt: skip

    def gains(call: int, threads: int, pairs: list[tuple[int, int]]) -> float:
        return mean(_iops(*pair, call, threads, nxd=True) / _iops(*pair, call, threads, nxd=False) for pair in pairs)

    return [
        Row("NXD / none, 4 KiB, one process on each of 64 nodes", 4.0, gains(4096, 1, sizes), "published: 3.5 to 4.5"),
        Row("NXD / none, 4 KiB, four processes a node", 4.0, gains(4096, 4, sizes[1::3]), "number not published"),
        Row("NXD / none, 40 KiB (beyond the bypass size)", 1.0, gains(40960, 1, sizes[1::3])),
    ]


def _iops(size: int, first: int, call: int, threads: int, *, nxd: bool) -> float:
    """Write RPCs a second of 64 nodes, to 4 groups of 41 disks and 2 flash targets, journals on SSD (given)."""
    disks = replace(DISKS, device=RaidSettings(), accelerator=AcceleratorSettings() if nxd else None)
    flash = replace(DISKS, device=FlashSettings(2.2e9, 0.0001, 64, 1 << 40))
    settings = machine(4, 64, disks, ClientSettings(osc=OscSettings(max_rpcs_in_flight=64)))
    settings = replace(settings, osts=(*settings.osts, flash, flash), pools={"hdd": (0, 1, 2, 3), "flash": (4, 5)})
    layout = Layout((Component(0, first, "flash"), Component(first, None, "hdd")))
    cluster = Cluster(settings, (SmallFileWriter(
        nodes=64, client=0, threads=threads, files_per_second=float("inf"), sizes=(size,), call_bytes=call, fsync=False,
        keep=1 << 20, layout=layout,
    ),))  # fmt: skip
    cluster.advance(0.2)
    before = sum(ost.stats["write_bytes"].samples for ost in cluster.osts)
    cluster.advance(0.4)
    return (sum(ost.stats["write_bytes"].samples for ost in cluster.osts) - before) / 0.4


def striped(count: int, pattern: str = "raid0") -> Layout:
    """A layout with one component on the disks."""
    return Layout((Component(pool="hdd", stripe_count=count, stripe_size=MIB, pattern=pattern),), composite=False)


def shared_file() -> list[Row]:
    """Compare stripe counts and overstriping for one file, with one writer and with many (seeds 003, 004)."""
    job = SharedFile(nodes=32, piece_bytes=MIB, pieces_each=20)
    fast = OstSettings(FlashSettings(2e9, 0.0001, 64, 1 << 40), Capacity(1 << 40, 1 << 20), preparing_seconds=0.00005,
                       preparing_seconds_per_mib=0.00005)  # fmt: skip

    def rate(layout: Layout) -> float:
        return per_second(ran(machine(8, 32, fast), replace(job, layout=layout), 120.0), "piece")

    one, eight, over = rate(striped(1)), rate(striped(8)), rate(striped(64, "raid0,overstriped"))
    serial = StreamingWriter(fresh=True, file_bytes=1 << 40, call_bytes=32 * MIB, threads=1, think_seconds=0.0,
                             stop_seconds=8.0)

    def alone(count: int) -> float:
        return ran(machine(8, 1), replace(serial, layout=striped(count)), 8.0).log.mean(serial.job_id, 2, 8)

    return [
        Row("8 stripes / 1, one writer", 8.0, alone(8) / alone(1), "Stallo: 25 to almost 200 MB/s"),
        Row("8 stripes / 1, one file of 32 writers", float("nan"), eight / one,
            "published: an increase, without figures"),
        Row("64 objects on 8 OSTs / 8, one file of 32 writers", float("nan"), over / eight,
            "published: an increase, in unreadable bars"),
    ]  # fmt: skip


def strides() -> list[Row]:
    """Compare read-ahead hits of 47,008-byte strided reads (seeds 003)."""
    def share(by_bytes: bool) -> float:
        client = ClientSettings(read_ahead=ReadAheadSettings(strides_by_bytes=by_bytes))
        job = SharedFile(nodes=1, threads=16, pieces_each=100, write=False)
        stats = ran(machine(4, 1, client=client), job, 60.0).clients[0].read_ahead.stats
        return stats["hits"].samples / (stats["hits"].samples + stats["misses"].samples)

    return [Row("47,008-byte strides, hits before 2.14", 0.09, share(by_bytes=False)),
            Row("47,008-byte strides, hits from 2.14 on", 0.88, share(by_bytes=True))]  # fmt: skip


def statahead() -> list[Row]:
    """Compare the mean time of getattr in ``ls -l`` with and without batches (seeds 003)."""
    def seconds(batch: int) -> float:
        client = ClientSettings(statahead=StataheadSettings(128, batch))
        counter = ran(machine(4, 1, client=client), LsScan(names=5000), 60.0).clients[0].stats["getattr"]
        return counter.total / counter.samples

    return [Row("getattr time, batched / single statahead", 5410470 / 10099392, seconds(64) / seconds(0))]


def rpcs() -> list[Row]:
    """Compare RPC sizes and RPCs in flight (advice of seeds 002): a stream of 16 MiB calls to one flash target."""
    fast = OstSettings(FlashSettings(4e9, 0.0005, 64, 1 << 40), Capacity(1 << 40, 1 << 20), preparing_seconds=0.0001,
                       preparing_seconds_per_mib=0.0002)  # fmt: skip

    def rate(pages: int, in_flight: int) -> float:
        client = ClientSettings(osc=OscSettings(max_rpcs_in_flight=in_flight, max_pages_per_rpc=pages))
        job = StreamingWriter(layout=striped(1), call_bytes=16 * MIB, threads=2, think_seconds=0.0, stop_seconds=3.0)
        return ran(machine(1, 1, fast, client), job, 3.0).log.mean(job.job_id, 1, 3)

    base = rate(256, 1)
    remark = "published: an increase, without a pair of figures"
    return [Row("4 MiB RPCs / 1 MiB, one in flight", float("nan"), rate(1024, 1) / base, remark),
            Row("8 RPCs in flight / 1, 1 MiB", float("nan"), rate(256, 8) / base, remark)]  # fmt: skip


PAPER_STREAM, PAPER_NOISE = "ior.1002", "mdtest.1001"
PAPER_CASES = ("alone", "contended", "flash_covers", "flash_too_small", "contended_1m")


def noisy_neighbour_shares(
    seconds: float, chunk_bytes: int | None = None, noise_nodes: int | None = None, seed: int = 1
) -> dict[str, float]:  # fmt: skip
    """Return the MB/s of the stream alone, and the share that it keeps in the other cases."""
    variants = scenario.library("noisy-neighbour-paper").variants()
    rates = {
        name: _noisy_neighbour_rate(variants[name], seconds, chunk_bytes, noise_nodes, seed) for name in PAPER_CASES
    }
    alone = rates["alone"]
    return {name: rate if name == "alone" else rate / alone for name, rate in rates.items()}


def _noisy_neighbour_rate(
    variant: Scenario, seconds: float, chunk_bytes: int | None, noise_nodes: int | None, seed: int
) -> float:
    settings = variant.settings(seed)
    if chunk_bytes is not None:
        settings = replace(settings, osts=tuple(_with_chunk(ost, chunk_bytes) for ost in settings.osts))
    jobs = [
        replace(job, nodes=noise_nodes) if noise_nodes and job.job_id == PAPER_NOISE else job for job in variant.jobs
    ]
    cluster = Cluster(settings, jobs)
    cluster.advance(seconds)
    return cluster.log.mean(PAPER_STREAM, 1, seconds)


def _with_chunk(ost: OstSettings, chunk_bytes: int) -> OstSettings:
    if not isinstance(ost.device, RaidSettings):
        return ost
    return replace(ost, device=replace(ost.device, chunk_bytes=chunk_bytes))
