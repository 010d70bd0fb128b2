"""An object storage target: a disk, a journal, objects, and the service threads that answer RPCs.

A write goes to the disk at once; when the client wants it safe (direct I/O) the answer waits for the journal as well.
What a job waits for is therefore nothing but the queue of the device, its own I/Os and everybody else's.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from lustre.fid import Fid
from simulator import shapes
from simulator.brw import BrwStats
from simulator.devices import DeviceSettings, FlashSettings, Io, build
from simulator.devices.accelerator import AcceleratorSettings, accelerated
from simulator.engine import Completion, Engine, Steps
from simulator.health import Health
from simulator.jobstats import JobStats
from simulator.journal import Journal, JournalSettings
from simulator.objects import Capacity, ObjectStore, StoredObject
from simulator.precreate import Precreated
from simulator.rpc import Rpc
from simulator.servercache import ServerCache
from simulator.tally import Stats, microseconds

Reply: TypeAlias = Callable[[OSError | None], None]
BITMAP_BYTES = 128 << 20
INODES_PER_BLOCK = 16


@dataclass(frozen=True, slots=True)
class OstSettings:
    """One OST. ``preparing`` seconds are spent on an RPC before its I/O is given to the disk."""

    device: DeviceSettings
    capacity: Capacity
    journal: JournalSettings = field(default_factory=JournalSettings)
    preparing_seconds: float = 0.0002
    preparing_seconds_per_mib: float = 0.0012
    precreate_batch: int = 32
    precreate_seconds: float = 0.00003
    """What making one object costs the target; they are made ahead, and creates wait for one when none is left."""
    precreate_ahead: int = 20_000
    """The most objects that are there before anybody wants them (``max_create_count``)."""
    journal_device: DeviceSettings | None = None
    """A journal on a device of its own, as ClusterStor has on SSDs; None: on the target's disks."""
    accelerator: AcceleratorSettings | None = None
    read_cache_bytes: int = 0
    """Pages of objects the server keeps (``read_cache_enable``); ldiskfs on disks has it on, the test bed was small."""
    write_back_bytes_max: int = 0
    """Writes up to this size are answered from memory (``writeback_max_io_kb``); 0: none."""


class Ost:
    """One OST and its counters."""

    def __init__(self, engine: Engine, name: str, index: int, settings: OstSettings, rng: Random) -> None:
        self.name = name
        self.index = index
        self.settings = settings
        self.device = accelerated(engine, build(engine, settings.device), settings.accelerator)
        self.store = ObjectStore(index, settings.capacity)
        log = build(engine, settings.journal_device) if settings.journal_device else self.device
        self.journal = Journal(engine, log, settings.journal, settings.capacity.size_bytes // 2, self.device)
        self.stats = Stats(shapes.OST, engine.now)
        self.jobs = JobStats(shapes.OST)
        self.brw = BrwStats(engine.now)
        self.io_service = Stats(shapes.OST_IO, engine.now)
        self.degraded = False
        self.health = Health()
        self.precreated = Precreated(engine, settings.precreate_seconds, settings.precreate_ahead)
        self.rotational = not isinstance(settings.device, FlashSettings)
        self.cache = ServerCache(settings.read_cache_bytes, settings.write_back_bytes_max)
        self.active = 0
        self.read_bytes = 0
        self.written_bytes = 0
        self._engine = engine
        self._rng = rng
        self._precreated = 0
        self._in_flight = [0, 0]

    @property
    def away(self) -> bool:
        """Whether it answers nobody: gone, or in recovery."""
        return self.health.away

    @property
    def recovering(self) -> bool:
        """Whether it waits for its clients to replay."""
        return self.health.status == "RECOVERING"

    def serve(self, rpc: Rpc, reply: Reply) -> None:
        """An RPC has arrived; ``reply`` takes the error, or None."""
        self._engine.spawn(self._serve(rpc)).then(lambda served: reply(served.error))

    def _serve(self, rpc: Rpc) -> Steps[None]:
        while self.health.away:
            yield self.health.back
        arrived = self._engine.now
        self.active += 1
        self._count_service(self._jitter(0.0004))
        mib = rpc.size_bytes / (1 << 20)
        prepared = self._jitter(self.settings.preparing_seconds + self.settings.preparing_seconds_per_mib * mib)
        yield prepared
        try:
            if rpc.write:
                self._allocate(rpc)
            self._count(rpc, prepared)
            if not rpc.write and self.cache.holds(rpc.stored.fid, rpc.fragments):
                return
            stored = self._transfer(rpc)
            self.cache.passed(rpc.stored.fid, rpc.fragments)
            if rpc.write and rpc.sync:
                yield self.journal.commit()  # both are on their way at the same time
            elif rpc.write and self.cache.answers_early(rpc.size_bytes):
                return
            yield stored
        finally:
            self.active -= 1
            name = "ost_write" if rpc.write else "ost_read"
            self.io_service.tally(name, microseconds(self._engine.now - arrived))

    def _allocate(self, rpc: Rpc) -> None:
        if rpc.stored.fid not in self.store.objects:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        first, last = rpc.fragments[0], rpc.fragments[-1]
        blocks = [("inode", rpc.stored.fid.object_id // INODES_PER_BLOCK)]
        if self.store.grow(rpc.stored, first[0], last[0] + last[1]):
            blocks += [("extents", rpc.stored.fid.object_id), ("bitmap", rpc.stored.position_bytes // BITMAP_BYTES)]
        self.journal.change(*blocks)

    def _count(self, rpc: Rpc, prepared_seconds: float) -> None:
        operation, unit = ("write", "write_bytes") if rpc.write else ("read", "read_bytes")
        self.tally(rpc.job_id, unit, rpc.size_bytes)
        self.tally(rpc.job_id, operation, microseconds(prepared_seconds))
        if rpc.write:
            self.written_bytes += rpc.size_bytes
        else:
            self.read_bytes += rpc.size_bytes

    def _transfer(self, rpc: Rpc) -> Completion:
        """All of an RPC's I/O to the device."""
        done = Completion()
        began = self._engine.now
        runs = [run for offset, size in rpc.fragments for run in rpc.stored.runs(offset, size)]
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
            self.device.submit(Io(rpc.write, place, size, one_done))
        return done

    def sync(self, job_id: str) -> Steps[None]:
        """Make what was written safe: what fsync asks for."""
        while self.health.away:
            yield self.health.back
        began = self._engine.now
        yield self._jitter(self.settings.preparing_seconds)
        yield self.journal.commit()
        self.tally(job_id, "sync", microseconds(self._engine.now - began))

    def getattr(self, job_id: str) -> Steps[None]:
        """Say how large an object is."""
        while self.health.away:
            yield self.health.back
        seconds = self._jitter(self.settings.preparing_seconds / 4)
        yield seconds
        self.tally(job_id, "getattr", microseconds(seconds))

    def create_object(self) -> StoredObject:
        """An object for a new file; they are made ahead, a batch at a time, when an MDT asks."""
        if self._precreated == 0:
            self._precreated = self.settings.precreate_batch
            number = self.store.created
            self.journal.change(*(("inode", (number + i) // INODES_PER_BLOCK) for i in range(self._precreated)))
            self.stats.tally("create", microseconds(self._jitter(0.004)))
        self._precreated -= 1
        return self.store.create()

    def destroy_object(self, fid: Fid) -> None:
        """A file is gone: its object goes, and its room comes back when the transaction is written."""
        stored = self.store.objects[fid]
        self.cache.drop(fid)
        blocks = [("inode", fid.object_id // INODES_PER_BLOCK), ("bitmap", stored.position_bytes // BITMAP_BYTES)]
        self.journal.change(*blocks, ("extents", fid.object_id))
        self.store.destroy(fid)
        self.stats.tally("destroy", microseconds(self._jitter(0.002)))

    def statfs(self) -> None:
        """Somebody asked how much room there is."""
        self.stats.tally("statfs", microseconds(self._jitter(0.00001)))

    def tally(self, job_id: str, name: str, value: int) -> None:
        """Count an operation for the target and for the job."""
        self.stats.tally(name, value)
        self.jobs.tally(job_id, name, value, self._engine.now)

    def _count_service(self, waited_seconds: float) -> None:
        service = self.io_service
        service.tally("req_waittime", microseconds(waited_seconds))
        service.tally("req_qdepth", 0)
        service.tally("req_active", self.active)
        service.tally("req_timeout", 5)
        service.tally("reqbuf_avail", 64)

    def _jitter(self, seconds: float) -> float:
        return seconds * self._rng.lognormvariate(0.0, 0.5)
