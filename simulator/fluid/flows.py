"""Jobs as flows: operations in a closed loop, each with stages of RPCs that are sent at the same time.

An RPC costs a device a share of each limit that the device has per second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

from lustre.layout.model import Component, Layout
from simulator.clients.mount import ClientSettings
from simulator.devices import DeviceSettings
from simulator.devices.flash import FlashSettings
from simulator.devices.hdd import HddSettings
from simulator.devices.raid import Raid, RaidSettings
from simulator.devices.throttled import ThrottledSettings
from simulator.engine import Engine
from simulator.jobs import Job
from simulator.jobs.large_files import RandomWriter, SharedFile, StreamingReader, StreamingWriter
from simulator.jobs.metadata import LsScan, Mdtest
from simulator.jobs.small_files import SmallFileWriter
from simulator.servers.mdt import DATA_SECONDS, SERVICE_SECONDS


class IoKind(NamedTuple):
    """A kind of I/O."""

    write: bool
    size_bytes: int
    offset: int = 0
    """Offset of the I/O in a stripe of the RAID group."""
    scattered: bool = False
    """Whether the I/O needs a seek."""


class Cost(NamedTuple):
    """What one I/O costs a device."""

    busy_seconds: tuple[float, ...]
    """Seconds of each limit of the device. A throttled device has two limits, others one."""
    latency_seconds: float
    """Seconds from its start to its end on an idle device."""


@lru_cache(maxsize=4096)
def cost_of(device: DeviceSettings, io: IoKind) -> Cost:
    """Cost of one I/O.

    >>> cost_of(ThrottledSettings(16e6, 40.0), IoKind(True, 1_600_000)).busy_seconds
    (0.1, 0.025)
    """
    if isinstance(device, ThrottledSettings):
        limits = io.size_bytes / device.bytes_per_second, 1 / device.ios_per_second
        return Cost(limits, device.latency_seconds)
    if isinstance(device, FlashSettings):
        moved = io.size_bytes / device.bytes_per_second
        return Cost((max(moved, device.latency_seconds / device.channels),), device.latency_seconds + moved)
    positioning = _positioning(device) * io.scattered
    if isinstance(device, HddSettings):
        moved = io.size_bytes / device.bytes_per_second
        return Cost((positioning / device.spindles + moved,), positioning + moved)
    busy, span = Raid(Engine(), device).cost(io.write, io.offset, io.size_bytes, positioning)
    return Cost((max(busy / device.disks, io.size_bytes / device.link_bytes_per_second),), span)


def _positioning(device: HddSettings | RaidSettings) -> float:
    """Seconds for a seek over a tenth of the disk, typical below an elevator, and half a revolution."""
    return max(device.seek_seconds * sqrt(0.1), device.settle_seconds) + 30.0 / device.revolutions_per_minute


ON_MDT = "on the MDT"
"""Stands for the pool of files whose first byte is on an MDT. No pool has such a name."""
RPC_BYTES_MAX = 4 << 20
CHECKPOINT_IOS_PER_FILE = 0.5
"""Checkpoint I/Os per object created and destroyed: two blocks, of which four leave as one I/O."""
NETWORK_TURN_SECONDS = 0.0004


@dataclass(frozen=True, slots=True)
class Demand:
    """RPCs of one operation to the targets of a pool."""

    pool: str
    targets: int
    """Number of targets at the same time."""
    rpcs: float
    """RPCs to each target."""
    io: IoKind
    sync: bool
    """Whether the operation waits for a journal commit."""
    objects: float = 0.0
    """New objects on each target."""


@dataclass(frozen=True, slots=True)
class Flow:
    """One job with at most ``concurrency`` concurrent operations. Each takes its stages plus ``think_seconds``."""

    job: Job
    concurrency: float
    rate_max: float
    think_seconds: float
    size_bytes: float
    metadata_seconds: float = 0.0
    """Processor time on an MDT per operation."""
    stages: tuple[tuple[Demand, ...], ...] = ()
    single: bool = False
    """Whether single events model and count the operations. Such a flow only delays the other flows."""


def flow_of(
    job: Job, client: ClientSettings, targets: Callable[[str], int], pool_shares: Mapping[str, float]
) -> Flow:  # fmt: skip
    """Describe a job as a flow. ``targets`` returns the number of targets of a pool. ``pool_shares`` has the share of
    files in each pool.
    """
    if isinstance(job, (StreamingWriter, StreamingReader)):
        return _streaming(job, client)
    if isinstance(job, SmallFileWriter):
        return _small_files(job, client, targets, pool_shares)
    if isinstance(job, RandomWriter):
        part = _components(job.layout)[0]
        calls = ((True, 1 - job.read_share), (False, job.read_share))
        stages = tuple((Demand(part.pool, 1, share, IoKind(write, job.call_bytes, scattered=True), sync=write),)
                       for write, share in calls if share)  # fmt: skip
        return Flow(job, job.processes_count * job.nodes, float("inf"), NETWORK_TURN_SECONDS, job.call_bytes,
                    stages=stages)  # fmt: skip
    if isinstance(job, SharedFile):
        part = _components(job.layout)[0]
        objects = max(part.stripe_count, 1)
        turns = min(objects, job.nodes) if job.write else job.nodes * job.threads
        io = IoKind(job.write, job.piece_bytes, scattered=True)
        return Flow(job, turns, float("inf"), 2 * NETWORK_TURN_SECONDS + job.think_seconds, job.piece_bytes,
                    stages=((Demand(part.pool, 1, 1.0, io, sync=False),),))  # fmt: skip
    assert isinstance(job, (Mdtest, LsScan))
    names = ("mknod", "close", "getattr", "open", "close", "unlink") if isinstance(job, Mdtest) else ("getattr",)
    threads = job.threads if isinstance(job, Mdtest) else 1
    return Flow(job, threads * job.nodes, float("inf"), len(names) * NETWORK_TURN_SECONDS, 0.0,
                metadata_seconds=sum(SERVICE_SECONDS[name] for name in names))  # fmt: skip


def _streaming(job: StreamingWriter | StreamingReader, client: ClientSettings) -> Flow:
    part = _components(job.layout)[-1]
    write = isinstance(job, StreamingWriter)
    stripes = max(part.stripe_count, 1)
    used = min(stripes, max(job.call_bytes // (part.stripe_size or RPC_BYTES_MAX), 1))
    each = job.call_bytes / used
    rpcs = -(-each // RPC_BYTES_MAX)
    demand = Demand(part.pool, used, rpcs, IoKind(write, int(each / rpcs)), sync=write and job.direct)
    calls = client.osc.max_rpcs_in_flight / rpcs
    think = job.think_seconds + NETWORK_TURN_SECONDS
    if job.direct:
        return Flow(job, min(job.threads, calls) * job.nodes, float("inf"), think, job.call_bytes,
                    stages=((demand,),))
    copying = client.copy_seconds_per_mib * job.call_bytes / (1 << 20)
    calls = min(calls, client.osc.max_dirty_bytes * used / job.call_bytes) if write else calls
    return Flow(job, calls * job.nodes, job.threads * job.nodes / (think + copying), NETWORK_TURN_SECONDS,
                job.call_bytes, stages=((demand,),))  # fmt: skip


def _small_files(
    job: SmallFileWriter, client: ClientSettings, targets: Callable[[str], int], pool_shares: Mapping[str, float]
) -> Flow:  # fmt: skip
    size = sum(job.sizes) / len(job.sizes)
    stages: list[tuple[Demand, ...]] = []
    names = ["mknod", "close", "unlink"]
    data_seconds = 0.0
    for part in _components(job.layout):
        end = size if part.extent_end is None else min(size, part.extent_end)
        length = int(end - part.extent_start)
        if length > 0 and part.on_mdt:
            data_seconds += DATA_SECONDS
        if length <= 0 or part.on_mdt:
            continue
        if part.extent_start:
            names.append("layout")
        rpcs = -(-length // RPC_BYTES_MAX)
        io = IoKind(True, length // rpcs, part.extent_start % RPC_BYTES_MAX)
        stages.append((Demand(part.pool, 1, rpcs, io, sync=job.fsync, objects=1.0),))
        if job.rereads_per_second:
            again = rpcs * job.rereads_per_second / job.files_per_second
            read = IoKind(False, length // rpcs, scattered=True)
            stages += [(Demand(pool, 1, again * share, read, sync=False),)
                       for pool, share in (pool_shares or {part.pool: 1.0}).items() if pool != ON_MDT]  # fmt: skip
    rereads = job.rereads_per_second / job.files_per_second
    data_seconds += rereads * pool_shares.get(ON_MDT, 0.0) * DATA_SECONDS
    work = sum(SERVICE_SECONDS[name] for name in names) + data_seconds
    copying = client.copy_seconds_per_mib * size / (1 << 20)
    turns = copying + len(names) * NETWORK_TURN_SECONDS
    rate_max = job.files_per_second * job.nodes
    if job.fsync or not stages:
        return Flow(job, job.threads * job.nodes, rate_max, turns, size, metadata_seconds=work, stages=tuple(stages))
    last = stages[-1][0]  # asynchronous I/O is limited by the RPCs in flight of a client, and by the calls
    dirty = client.osc.max_dirty_bytes / (last.io.size_bytes * last.rpcs)
    on_the_way = min(client.osc.max_rpcs_in_flight / last.rpcs, dirty) * targets(last.pool) * job.nodes
    calls = job.threads * job.nodes / (turns + work)
    return Flow(job, on_the_way, min(rate_max, calls), NETWORK_TURN_SECONDS, size, metadata_seconds=work,
                stages=tuple(stages))


def _components(layout: Layout | None) -> tuple[Component, ...]:
    return layout.components if layout is not None else (Component(),)


def mover_flows(pools: Mapping[str, tuple[float, float]]) -> list[Flow]:
    """Describe the work of movers as flows: by pool, bytes read and written per second."""
    stages = [(Demand(pool, 1, rate / _MOVE_IO.size_bytes, _MOVE_IO._replace(write=write), sync=False),)
              for pool, rates in pools.items() for write, rate in zip((False, True), rates, strict=True) if rate]
    mover = StreamingWriter("lfs.0", path="/nowhere")
    return [Flow(mover, float("inf"), 1.0, 0.0, 0.0, stages=tuple(stages), single=True)] if stages else []


_MOVE_IO = IoKind(False, 1 << 20, scattered=True)
