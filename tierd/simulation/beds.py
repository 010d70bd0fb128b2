"""Test beds of ``tierctl evaluate``: disk pools of other devices, sizes and stripes than the recorded test bed.

Each seed draws its own devices, so that nothing fits one kind of disk by chance. The figures of the devices are those
of data sheets: nearline disks of 7,200 revolutions a minute stream 100 to 280 MB/s and seek in 8 to 16 ms; SATA and
NVMe SSDs write 0.4 to 2 GB/s; volumes of clouds and of storage with a quality of service have limits of bytes and of
I/Os that are chosen freely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from lustre.layout.model import Component, Layout
from simulator.clients.osc import OscSettings
from simulator.devices import DeviceSettings
from simulator.devices.flash import AcceleratorSettings, FlashSettings
from simulator.devices.hdd import HddSettings
from simulator.devices.raid import RaidSettings
from simulator.devices.throttled import ThrottledSettings
from simulator.jobs import Job
from simulator.jobs.large_files import Streaming
from simulator.jobs.small_files import SmallFileWriter
from simulator.servers.objects import Capacity
from simulator.servers.ost import OstSettings
from simulator.settings import ClusterSettings, ExporterLoad, recorded_test_bed

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class BedKind(StrEnum):
    """What the targets of the disk pool are."""

    RECORDED = "recorded"
    """The recorded test bed: four volumes of 16 MiB/s and 40 I/Os a second."""
    THROTTLED = "throttled"
    """Volumes with limits of bytes and of I/Os."""
    DISK = "disk"
    """Single disks, whose heads move."""
    RAID = "raid"
    """RAID 6 of 8 + 2 disks: parts of a stripe are read, changed and written."""
    SSD = "ssd"
    CACHED = "cached"
    """RAID 6 behind a write cache, which takes small writes in."""
    MIXED = "mixed"
    """Each target of another kind."""


DRAWN = tuple(kind for kind in BedKind if kind is not BedKind.RECORDED)
"""Kinds that ``all`` stands for."""


@dataclass(frozen=True, slots=True)
class Bed:
    """A cluster, and how its jobs and its readings differ from those of the recorded test bed."""

    kind: BedKind
    cluster: ClusterSettings
    disks: tuple[int, ...]
    """Indexes of the OSTs of the disk pool."""
    stripes: int = 4
    """Stripes of streams."""
    small_files_factor: float = 1.0
    """Rate of small files as a multiple of that on the recorded test bed."""
    cycle_seconds: float = 5.0
    load: ExporterLoad | None = None
    """How late readings are, and how many are lost."""

    def placed(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs with the stripes and rates of this bed."""
        return [*jobs] if self.kind is BedKind.RECORDED else [self._placed(job) for job in jobs]

    def _placed(self, job: Job) -> Job:
        if isinstance(job, Streaming):
            layout = Layout((Component(pool="hdd", stripe_count=self.stripes, stripe_size=4 * MIB),), composite=False)
            threads = max(job.threads, -(-self.stripes * 8 * MIB // job.call_bytes))
            return replace(job, layout=layout, threads=threads, file_bytes=4 * GIB, think_seconds=0.001)
        if isinstance(job, SmallFileWriter):
            faster = job.files_per_second * self.small_files_factor
            return replace(job, files_per_second=faster, threads=max(job.threads, round(faster / 2)))
        return job


RECORDED = Bed(BedKind.RECORDED, recorded_test_bed(), (2, 3, 4, 5))


def draw_bed(kind: BedKind, seed: int) -> Bed:
    """The test bed of a seed. It is the same for each call."""
    bed = recorded_test_bed(seed)
    if kind is BedKind.RECORDED:
        return replace(RECORDED, cluster=bed)
    rng = rng_of(kind, seed, "bed")
    count = rng.choice(COUNTS[kind])
    one = draw_ost(kind, rng)
    osts = tuple(draw_ost(rng.choice(MIXABLE), rng) if kind is BedKind.MIXED else one for _ in range(count))
    disks = tuple(range(2, 2 + count))
    flash = draw_flash(rng_of(kind, seed, "flash"))
    fast = OscSettings(gather_seconds=0.0005)
    clients = tuple(replace(client, osc=fast, copy_seconds_per_mib=0.0001) for client in bed.clients)
    cluster = replace(bed, osts=(flash, flash, *osts), pools={"flash": (0, 1), "hdd": disks}, clients=clients)
    factor = sum(small_ios_per_second(ost) for ost in osts) / (4 * 40.0)
    return Bed(kind, cluster, disks, min(rng.choice((1, 2, 4, 8)), count), factor,
               cycle_seconds=rng.choice((2.0, 5.0, 5.0, 10.0, 15.0)),
               load=ExporterLoad(0.0, rng.choice((0.1, 0.3, 1.0)), rng.choice((0.0, 0.0, 0.05))))


COUNTS = {
    BedKind.THROTTLED: (1, 2, 4, 8, 16, 40),
    BedKind.DISK: (1, 2, 4, 8),
    BedKind.RAID: (1, 1, 2, 3),
    BedKind.SSD: (1, 2, 3),
    BedKind.CACHED: (1, 1, 2, 3),
    BedKind.MIXED: (2, 3, 4),
}
"""Numbers of targets. A simulated RPC costs 0.1 ms of processor time, so fast targets are few: a choice."""
MIXABLE = (BedKind.THROTTLED, BedKind.DISK, BedKind.RAID)


def rng_of(kind: BedKind, seed: int, what: str) -> Random:
    return Random(f"tierd-{what}-{kind}-{seed}")  # noqa: S311 -- a model, not a secret


def draw_flash(rng: Random) -> OstSettings:
    """A target of the flash pool: a pair of mirrored SSDs. That of the recorded test bed has 1 GiB, which one job of
    a drawn bed fills in seconds.
    """
    size = rng.choice((1920, 3840, 7680)) * 10**9
    device = FlashSettings(rng.uniform(1.0e9, 2.0e9), rng.uniform(80e-6, 250e-6), rng.choice((8, 16, 32)),
                           size_bytes=size)
    return OstSettings(device, Capacity(size, 1 << 22), preparing_seconds_per_mib=0.0001)


def draw_ost(kind: BedKind, rng: Random) -> OstSettings:
    device, accelerator = draw_device(kind, rng), None
    if kind is BedKind.CACHED:
        accelerator = AcceleratorSettings(bypass_bytes=rng.choice((32, 64, 256)) * KIB)
    return OstSettings(device, Capacity(device.size_bytes, 1 << 22), accelerator=accelerator,
                       preparing_seconds_per_mib=0.0001)


def draw_device(kind: BedKind, rng: Random) -> DeviceSettings:
    size = 1 << 40
    match kind:
        case BedKind.THROTTLED:
            moved = rng.choice((12, 25, 50, 100)) * MIB
            return ThrottledSettings(moved, max(30.0, moved / MIB * rng.uniform(1.5, 6.0)), size_bytes=size)
        case BedKind.SSD:
            return FlashSettings(rng.uniform(0.4e9, 1.0e9), rng.uniform(80e-6, 250e-6), rng.choice((8, 16, 32)),
                                 size_bytes=size)
        case BedKind.DISK:
            return HddSettings(rng.uniform(100e6, 250e6), rng.uniform(0.010, 0.016), size_bytes=size)
        case _:
            return RaidSettings(10, 8, 2, rng.choice((128, 256, 512)) * KIB, rng.uniform(60e6, 120e6),
                                seek_seconds=rng.uniform(0.010, 0.016), size_bytes=8 * size)


def small_ios_per_second(ost: OstSettings) -> float:
    """About how many small I/Os a second a target does, to draw a load that matters there.

    A disk turns by half and seeks for each. A RAID 6 reads and writes three chunks twice, on its ten disks. A cache
    gets the rate of the disks below, an SSD a hundredth of what it can: more would make a simulation slow.
    """
    device = ost.device
    if isinstance(device, ThrottledSettings):
        return device.ios_per_second
    if isinstance(device, FlashSettings):
        return 1000.0
    each = 1 / (0.5 * device.seek_seconds + 30.0 / device.revolutions_per_minute)
    return each if isinstance(device, HddSettings) else each * device.disks / 6
