"""Jobs as flows: operations in a closed loop, each with stages of RPCs that go out at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lustre.layout.model import Component, Layout
from simulator.client import ClientSettings
from simulator.fluid.demand import Io
from simulator.jobs import (
    Job,
    LsScan,
    Mdtest,
    RandomWriter,
    SharedFile,
    SmallFileWriter,
    StreamingReader,
    StreamingWriter,
)
from simulator.mdt_settings import SERVICE_SECONDS

RPC_BYTES_MAX = 4 << 20
CHECKPOINT_IOS_PER_FILE = 0.5
"""Metadata that has to go home for one object made and destroyed: two blocks, four of which leave as one I/O."""
NETWORK_TURN_SECONDS = 0.0004


@dataclass(frozen=True, slots=True)
class Demand:
    """RPCs of one operation to the targets of a pool."""

    pool: str
    targets: int
    """On how many targets at the same time."""
    rpcs: float
    """On each of them."""
    io: Io
    sync: bool
    """Whether a journal commit is waited for."""
    objects: float = 0.0
    """New objects on each target."""


@dataclass(frozen=True, slots=True)
class Flow:
    """One job. ``concurrency`` operations are under way at most; each takes ``think_seconds`` beside its stages."""

    job: Job
    concurrency: float
    rate_max: float
    think_seconds: float
    size_bytes: float
    metadata_seconds: float
    """Processor time of an MDT per operation."""
    stages: tuple[tuple[Demand, ...], ...]
    single: bool = False
    """What is modelled one by one as well, and counted there: it is a flow only for the others to wait for."""


def flow(
    job: Job, client: ClientSettings, targets: Callable[[str], int], kept: Mapping[str, float] = MappingProxyType({})
) -> Flow:  # fmt: skip
    """A job as a flow; ``targets`` says how many a pool has, ``kept`` what share of its files lies in which."""
    if isinstance(job, (StreamingWriter, StreamingReader)):
        return _streaming(job, client)
    if isinstance(job, SmallFileWriter):
        return _small_files(job, client, targets, kept)
    if isinstance(job, RandomWriter):
        part = _parts(job.layout)[0]
        calls = ((True, 1 - job.read_share), (False, job.read_share))
        stages = tuple((Demand(part.pool, 1, share, Io(write, job.call_bytes, scattered=True), sync=write),)
                       for write, share in calls if share)  # fmt: skip
        return Flow(job, job.processes_count * job.nodes, float("inf"), NETWORK_TURN_SECONDS, job.call_bytes, 0.0,
                    stages)  # fmt: skip
    if isinstance(job, SharedFile):
        part = _parts(job.layout)[0]
        objects = max(part.stripe_count, 1)
        turns = min(objects, job.nodes) if job.write else job.nodes * job.threads
        io = Io(job.write, job.piece_bytes, scattered=True)
        return Flow(job, turns, float("inf"), 2 * NETWORK_TURN_SECONDS + job.think_seconds, job.piece_bytes, 0.0,
                    ((Demand(part.pool, 1, 1.0, io, sync=False),),))  # fmt: skip
    assert isinstance(job, (Mdtest, LsScan))
    names = ("mknod", "close", "getattr", "open", "close", "unlink") if isinstance(job, Mdtest) else ("getattr",)
    threads = job.threads if isinstance(job, Mdtest) else 1
    return Flow(job, threads * job.nodes, float("inf"), len(names) * NETWORK_TURN_SECONDS, 0.0,
                sum(SERVICE_SECONDS[name] for name in names), ())  # fmt: skip


def _streaming(job: StreamingWriter | StreamingReader, client: ClientSettings) -> Flow:
    part = _parts(job.layout)[-1]
    write = isinstance(job, StreamingWriter)
    stripes = max(part.stripe_count, 1)
    used = min(stripes, max(job.call_bytes // (part.stripe_size or RPC_BYTES_MAX), 1))
    each = job.call_bytes / used
    rpcs = -(-each // RPC_BYTES_MAX)
    demand = Demand(part.pool, used, rpcs, Io(write, int(each / rpcs)), sync=write and job.direct)
    calls = client.osc.max_rpcs_in_flight / rpcs
    think = job.think_seconds + NETWORK_TURN_SECONDS
    if job.direct:
        return Flow(job, min(job.threads, calls) * job.nodes, float("inf"), think, job.call_bytes, 0.0, ((demand,),))
    copying = client.copy_seconds_per_mib * job.call_bytes / (1 << 20)
    calls = min(calls, client.osc.max_dirty_bytes * used / job.call_bytes) if write else calls
    return Flow(job, calls * job.nodes, job.threads * job.nodes / (think + copying), NETWORK_TURN_SECONDS,
                job.call_bytes, 0.0, ((demand,),))  # fmt: skip


def _small_files(
    job: SmallFileWriter, client: ClientSettings, targets: Callable[[str], int], kept: Mapping[str, float]
) -> Flow:  # fmt: skip
    size = sum(job.sizes) / len(job.sizes)
    stages: list[tuple[Demand, ...]] = []
    names = ["mknod", "close", "unlink"]
    for part in _parts(job.layout):
        end = size if part.extent_end is None else min(size, part.extent_end)
        length = int(end - part.extent_start)
        if length <= 0 or part.on_mdt:
            continue
        if part.extent_start:
            names.append("layout")
        rpcs = -(-length // RPC_BYTES_MAX)
        io = Io(True, length // rpcs, part.extent_start % RPC_BYTES_MAX)
        stages.append((Demand(part.pool, 1, rpcs, io, sync=job.fsync, objects=1.0),))
        if job.rereads_per_second:
            again = rpcs * job.rereads_per_second / job.files_per_second
            read = Io(False, length // rpcs, scattered=True)
            stages += [(Demand(pool, 1, again * share, read, sync=False),)
                       for pool, share in (kept or {part.pool: 1.0}).items()]  # fmt: skip
    work = sum(SERVICE_SECONDS[name] for name in names)
    copying = client.copy_seconds_per_mib * size / (1 << 20)
    turns = copying + len(names) * NETWORK_TURN_SECONDS
    rate_max = job.files_per_second * job.nodes
    if job.fsync or not stages:
        return Flow(job, job.threads * job.nodes, rate_max, turns, size, work, tuple(stages))
    last = stages[-1][0]  # what is not waited for is limited by what a client may have on its way, and by the calls
    dirty = client.osc.max_dirty_bytes / (last.io.size_bytes * last.rpcs)
    on_the_way = min(client.osc.max_rpcs_in_flight / last.rpcs, dirty) * targets(last.pool) * job.nodes
    calls = job.threads * job.nodes / (turns + work)
    return Flow(job, on_the_way, min(rate_max, calls), NETWORK_TURN_SECONDS, size, work, tuple(stages))


def _parts(layout: Layout | None) -> tuple[Component, ...]:
    return layout.components if layout is not None else (Component(),)


def moving(pools: Mapping[str, tuple[float, float]]) -> list[Flow]:
    """What movers do, as a flow: bytes read and written per second, by pool."""
    stages = [(Demand(pool, 1, rate / _MOVED.size_bytes, _MOVED._replace(write=write), sync=False),)
              for pool, rates in pools.items() for write, rate in zip((False, True), rates, strict=True) if rate]
    mover = StreamingWriter("lfs.0", "/nowhere")
    return [Flow(mover, float("inf"), 1.0, 0.0, 0.0, 0.0, tuple(stages), single=True)] if stages else []


_MOVED = Io(False, 1 << 20, scattered=True)
