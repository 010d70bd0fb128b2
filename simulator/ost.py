"""An object storage target: a disk, a journal, objects, bulk I/O, and the small requests beside it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from lustre.fid import Fid
from simulator import shapes
from simulator.bulk import BITMAP_BYTES, INODES_PER_BLOCK, Bulk
from simulator.devices import FlashSettings, build
from simulator.devices.accelerator import accelerated
from simulator.devices.crowd import Crowded
from simulator.engine import Completion, Engine, Steps, gather
from simulator.health import Health
from simulator.jobstats import JobStats
from simulator.journal import Journal
from simulator.objects import ObjectStore, StoredObject
from simulator.ost_settings import OstSettings
from simulator.precreate import Precreated
from simulator.rpc import Rpc
from simulator.tally import Stats, microseconds


class Ost:
    """One OST and its counters."""

    def __init__(self, engine: Engine, name: str, index: int, settings: OstSettings, rng: Random,
                 crowd: Callable[[], float] | None = None) -> None:  # fmt: skip
        self.name = name
        self.index = index
        self.settings = settings
        self.device = accelerated(engine, build(engine, settings.device), settings.accelerator)
        if crowd is not None:
            self.device = Crowded(engine, self.device, crowd)
        self.store = ObjectStore(index, settings.capacity)
        log = build(engine, settings.journal_device) if settings.journal_device else self.device
        self.journal = Journal(engine, log, settings.journal, settings.capacity.size_bytes // 2, self.device)
        self.stats = Stats(shapes.OST, engine.now)
        self.jobs = JobStats(shapes.OST)
        self.degraded = False
        self.health = Health()
        self.precreated = Precreated(engine, settings.precreate_seconds, settings.precreate_ahead)
        self.rotational = not isinstance(settings.device, FlashSettings)
        self._engine = engine
        self._rng = rng
        self._precreated = 0
        self._lost: list[object] = []
        self.bulk = Bulk(engine, self)

    @property
    def away(self) -> bool:
        """Whether it answers nobody: gone, or in recovery."""
        return self.health.away

    @property
    def recovering(self) -> bool:
        """Whether it waits for its clients to replay."""
        return self.health.status == "RECOVERING"

    def fail(self) -> None:
        """Its server is down, and with it what was not in the journal yet."""
        self._lost = self.journal.uncommitted()
        self.health.leave(self._engine.now)

    def replay(self) -> Completion:
        """It is back: clients send again what had been answered and was not safe yet. Done when all of that is."""
        lost = [redo for redo in self._lost if isinstance(redo, Rpc)]
        self.health.replayed += len(lost)
        return gather(self.bulk.again(rpc) for rpc in lost if rpc.stored.fid in self.store.objects)

    def sync(self, job_id: str) -> Steps[None]:
        """Make what was written safe: what fsync asks for."""
        while self.health.away:
            yield self.health.back
        began = self._engine.now
        yield self.jitter(self.settings.preparing_seconds)
        yield self.journal.commit()
        self.tally(job_id, "sync", microseconds(self._engine.now - began))

    def getattr(self, job_id: str) -> Steps[None]:
        """Say how large an object is."""
        while self.health.away:
            yield self.health.back
        seconds = self.jitter(self.settings.preparing_seconds / 4)
        yield seconds
        self.tally(job_id, "getattr", microseconds(seconds))

    def create_object(self) -> StoredObject:
        """An object for a new file; they are made ahead, a batch at a time, when an MDT asks."""
        if self._precreated == 0:
            self._precreated = self.settings.precreate_batch
            number = self.store.created
            self.journal.change(*(("inode", (number + i) // INODES_PER_BLOCK) for i in range(self._precreated)))
            self.stats.tally("create", microseconds(self.jitter(0.004)))
        self._precreated -= 1
        return self.store.create()

    def destroy_object(self, fid: Fid) -> None:
        """A file is gone: its object goes, and its room comes back when the transaction is written."""
        stored = self.store.objects[fid]
        self.bulk.cache.drop(fid)
        blocks = [("inode", fid.object_id // INODES_PER_BLOCK), ("bitmap", stored.position_bytes // BITMAP_BYTES)]
        self.journal.change(*blocks, ("extents", fid.object_id))
        self.store.destroy(fid)
        self.stats.tally("destroy", microseconds(self.jitter(0.002)))

    def statfs(self) -> None:
        """Somebody asked how much room there is."""
        self.stats.tally("statfs", microseconds(self.jitter(0.00001)))

    def tally(self, job_id: str, name: str, value: int) -> None:
        """Count an operation for the target and for the job."""
        self.stats.tally(name, value)
        self.jobs.tally(job_id, name, value, self._engine.now)

    def jitter(self, seconds: float) -> float:
        """A time that is not the same twice."""
        return seconds * self._rng.lognormvariate(0.0, 0.5)
