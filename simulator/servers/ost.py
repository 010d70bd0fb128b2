"""An object storage target: bulk reads and writes, precreated objects, and the small requests.

A write is submitted to the disk at once. If the client requires it to be safe (direct I/O), the reply also waits for
the journal. A job therefore waits only for the queue of the device, with the I/Os of all jobs.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from lustre.fid import Fid
from simulator import counters
from simulator.counters import BrwStats, JobStats, Stats, microseconds
from simulator.devices import DeviceSettings, build
from simulator.devices.device import DelayedDevice, Device, Io
from simulator.devices.flash import Accelerator, AcceleratorSettings, FlashSettings
from simulator.engine import Completion, Engine, Steps
from simulator.network import Rpc
from simulator.servers.health import Health
from simulator.servers.journal import Journal
from simulator.servers.objects import Capacity, ObjectStore, StoredObject
from simulator.servers.tbf import Tbf


@dataclass(frozen=True, slots=True)
class OstSettings:
    """One OST. ``preparing`` seconds are spent on an RPC before its I/O is given to the disk."""

    device: DeviceSettings
    capacity: Capacity
    preparing_seconds: float = 0.0002
    preparing_seconds_per_mib: float = 0.0012
    precreate_batch: int = 32
    precreate_seconds: float = 0.00003
    """Time to precreate one object. Creates wait when no precreated object is left."""
    precreate_ahead: int = 20_000
    """Maximum number of precreated objects (``max_create_count``)."""
    journal_device: DeviceSettings | None = None
    """External journal device, such as the SSDs of ClusterStor; None: on the target's disks."""
    accelerator: AcceleratorSettings | None = None


class Precreated:
    """Precreated objects of one OST. Creates wait when they need objects faster than the OST makes them."""

    def __init__(self, engine: Engine, seconds_each: float, ahead: int) -> None:
        self._engine = engine
        self._seconds_each = seconds_each
        self._ahead = ahead
        self._spent_until = -ahead * seconds_each

    def seconds(self) -> float:
        """Take an object; returns the seconds until it exists.

        >>> store = Precreated(Engine(), 0.001, 20_000)
        >>> [store.seconds() for _ in range(20_002)][-2:]
        [0.0, 0.001]
        """
        full = self._engine.now - self._ahead * self._seconds_each
        self._spent_until = max(self._spent_until, full) + self._seconds_each
        return max(round(self._spent_until - self._engine.now, 9) - self._seconds_each, 0.0)


Reply: TypeAlias = Callable[[Completion], None]
BITMAP_BYTES = 128 << 20
INODES_PER_BLOCK = 16


class BulkService:
    """Bulk RPCs of one OST, and their counters."""

    def __init__(self, engine: Engine, ost: Ost) -> None:
        self.brw = BrwStats(engine.now)
        self.service = Stats(counters.OST_IO_STATS, engine.now)
        """Part of this OST in the node's ``ost_io`` service statistics."""
        self.active = 0
        self.read_bytes = 0
        self.written_bytes = 0
        self._engine = engine
        self._ost = ost
        self._in_flight = [0, 0]

    def serve(self, rpc: Rpc, reply: Reply) -> None:
        """Serve an RPC that has arrived. ``reply`` takes the end of it, with the error if there is one."""
        self._engine.spawn(self._serve(rpc)).then(reply)

    def _serve(self, rpc: Rpc) -> Steps[None]:
        ost = self._ost
        while ost.health.away:
            yield ost.health.back
        arrived = self._engine.now
        if (turn := ost.tbf.turn(rpc.job_id, rpc.sender)) is not None:
            yield turn
        self.active += 1
        self._count_service(ost.jitter(0.0004))
        mib = rpc.size_bytes / (1 << 20)
        prepared = ost.jitter(ost.settings.preparing_seconds + ost.settings.preparing_seconds_per_mib * mib)
        yield prepared
        try:
            if rpc.write:
                self._allocate(rpc)
            self._count(rpc, prepared)
            stored = self._transfer(rpc)
            if rpc.write and rpc.sync:
                yield ost.journal.commit()  # data and journal are written at the same time
            yield stored
            while ost.health.gone:  # a server that is down sends no reply; the client repeats the request
                yield ost.health.back
        finally:
            self.active -= 1
            name = "ost_write" if rpc.write else "ost_read"
            self.service.tally(name, microseconds(self._engine.now - arrived))

    def _allocate(self, rpc: Rpc) -> None:
        store = self._ost.store
        if rpc.stored.fid not in store.objects:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))  # destroyed while the request was under way
        first, last = rpc.fragments[0], rpc.fragments[-1]
        number = rpc.stored.fid.object_id
        blocks: tuple[tuple[str, int], ...] = (("inode", number // INODES_PER_BLOCK),)
        if store.grow(rpc.stored, first[0], last[0] + last[1]):
            blocks += ("extents", number), ("bitmap", rpc.stored.blocks.first // BITMAP_BYTES)
        self._ost.journal.change(*blocks)

    def _count(self, rpc: Rpc, prepared_seconds: float) -> None:
        operation, unit = ("write", "write_bytes") if rpc.write else ("read", "read_bytes")
        self._ost.tally(rpc.job_id, unit, rpc.size_bytes)
        self._ost.tally(rpc.job_id, operation, microseconds(prepared_seconds))
        if rpc.write:
            self.written_bytes += rpc.size_bytes
        else:
            self.read_bytes += rpc.size_bytes

    def _transfer(self, rpc: Rpc) -> Completion:
        done = Completion()
        began = self._engine.now
        runs = [run for offset, size in rpc.fragments for run in rpc.stored.blocks.runs(offset, size)]
        left = len(runs)
        in_flight = self._in_flight
        self.brw.begin(rpc.write, rpc.size_bytes, left, in_flight[rpc.write] + 1)
        in_flight[rpc.write] += left

        def one_done() -> None:
            nonlocal left
            left -= 1
            in_flight[rpc.write] -= 1
            if left == 0:
                self.brw.end(rpc.write, self._engine.now - began)
                done.succeed()

        for place, size in runs:
            self._ost.device.submit(Io(rpc.write, place, size, one_done))
        return done

    def _count_service(self, waited_seconds: float) -> None:
        values = {"req_waittime": microseconds(waited_seconds), "req_active": self.active, "req_qdepth": 0,
                  "req_timeout": 5, "reqbuf_avail": 64}
        for name, value in values.items():
            self.service.tally(name, value)


class Ost:
    """One OST and its counters."""

    def __init__(self, engine: Engine, name: str, index: int, settings: OstSettings, rng: Random,
                 queue_wait_seconds: Callable[[], float] | None, tbf: Tbf) -> None:
        self.name = name
        self.tbf = tbf
        """The filter of the OSS that serves it."""
        self.index = index
        self.settings = settings
        self.disks = build(engine, settings.device)
        self.device: Device = self.disks
        """What takes the I/Os: the disks, or what is in front of them."""
        if settings.accelerator is not None:
            self.device = Accelerator(engine, self.disks, settings.accelerator)
        if queue_wait_seconds is not None:
            self.device = DelayedDevice(engine, self.device, queue_wait_seconds)
        self.store = ObjectStore(index, settings.capacity)
        log = build(engine, settings.journal_device) if settings.journal_device else self.device
        self.journal = Journal(engine, log, settings.capacity.size_bytes // 2, self.device)
        self.stats = Stats(counters.OST_STATS, engine.now)
        self.jobs = JobStats(counters.OST_STATS)
        self.degraded = False
        self.max_create_count = settings.precreate_ahead
        """``osp.*.max_create_count`` on all MDTs."""
        self.health = Health()
        self.precreated = Precreated(engine, settings.precreate_seconds, settings.precreate_ahead)
        self.rotational = not isinstance(settings.device, FlashSettings)
        self._engine = engine
        self._rng = rng
        self._precreated = 0
        self.bulk = BulkService(engine, self)

    def sync(self, job_id: str, sender: str) -> Steps[None]:
        while self.health.away:
            yield self.health.back
        if (turn := self.tbf.turn(job_id, sender)) is not None:
            yield turn
        began = self._engine.now
        yield self.jitter(self.settings.preparing_seconds)
        yield self.journal.commit()
        self.tally(job_id, "sync", microseconds(self._engine.now - began))

    def getattr(self, job_id: str) -> Steps[None]:
        while self.health.away:
            yield self.health.back
        seconds = self.jitter(self.settings.preparing_seconds / 4)
        yield seconds
        self.tally(job_id, "getattr", microseconds(seconds))

    def create_object(self) -> StoredObject:
        """Take a precreated object for a new file. MDTs request them in batches."""
        if self._precreated == 0:
            self._precreated = self.settings.precreate_batch
            number = self.store.created
            self.journal.change(*(("inode", (number + i) // INODES_PER_BLOCK) for i in range(self._precreated)))
            self.stats.tally("create", microseconds(self.jitter(0.004)))
        self._precreated -= 1
        return self.store.create()

    def destroy_object(self, fid: Fid) -> None:
        """Destroy an object, and free its space."""
        stored = self.store.objects[fid]
        blocks = [("inode", fid.object_id // INODES_PER_BLOCK), ("bitmap", stored.blocks.first // BITMAP_BYTES)]
        self.journal.change(*blocks, ("extents", fid.object_id))
        self.store.destroy(fid)
        self.stats.tally("destroy", microseconds(self.jitter(0.002)))

    def statfs(self) -> None:
        self.stats.tally("statfs", microseconds(self.jitter(0.00001)))

    def tally(self, job_id: str, name: str, value: int) -> None:
        self.stats[name].tally(value)
        self.jobs.bulk(job_id, name, 1, value, self._engine.now)

    def jitter(self, seconds: float) -> float:
        return seconds * self._rng.lognormvariate(0.0, 0.5)
