"""A metadata target: names, opens, closes; a few cores, a journal on flash, and the changelog.

``SERVICE_SECONDS`` and the next constants give the processor time of each request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from lustre.fid import Fid
from simulator import counters
from simulator.costs import CALLER
from simulator.counters import BrwStats, JobStats, Stats, microseconds
from simulator.devices import DeviceSettings, build
from simulator.devices.device import Io
from simulator.devices.flash import FlashSettings
from simulator.engine import Completion, Engine, Steps
from simulator.servers.changelog import Changelog
from simulator.servers.health import Health
from simulator.servers.journal import Journal
from simulator.servers.namespace import Inode, Namespace
from simulator.servers.objects import Capacity

SERVICE_SECONDS: dict[str, float] = {
    "open": 0.0006,
    "mknod": 0.0016,
    "close": 0.0005,
    "unlink": 0.0009,
    "mkdir": 0.0025,
    "getattr": 0.0002,
    "setattr": 0.0009,
    "getxattr": 0.0002,
    "setxattr": 0.0006,
    "statfs": 0.00004,
    "sync": 0.0002,
    "layout": 0.0012,
    "rename": 0.0020,
    "readpage": 0.0010,
    "glimpse": 0.0001,
}
"""Processor time of each operation. ``layout`` instantiates a component, and ``glimpse`` gets the size of a file with
data on this MDT; the kernel counts neither."""
REQUEST_SECONDS = 0.0001
"""Part of the time for receiving a request and sending the reply; a batch needs it once."""
DIRECTORY_SECONDS = 0.0001
"""Part of a create or unlink that locks the directory on its MDT, one operation after the other."""
LOOKUP_SECONDS = 0.00005
"""The same for an operation that only looks up a name. All requests for one directory use one lock resource."""
DATA_SECONDS = 0.0004
"""Processor time of one read or write of data on the MDT."""


@dataclass(frozen=True, slots=True)
class MdtSettings:
    """One MDT."""

    device: DeviceSettings = field(default_factory=FlashSettings)
    capacity: Capacity = field(default_factory=lambda: Capacity(1 << 30, 81920))
    cores: int = 2
    work_factor: float = 1.0
    """Factor of all processor times, for slower processors."""
    lists_jobs_again: bool = True
    """Whether ``job_stats`` lists a job again after its entry was cleaned up."""


class Mdt:
    """One MDT and its counters."""

    def __init__(self, engine: Engine, name: str, index: int, settings: MdtSettings, rng: Random,
                 queue_wait_seconds: Callable[[], float] | None, namespace: Namespace) -> None:
        self.name = name
        self.index = index
        self.settings = settings
        self.disks = build(engine, settings.device)
        self.journal = Journal(engine, self.disks, settings.capacity.size_bytes // 2)
        self.stats = Stats(counters.MDT_STATS, engine.now)
        self.jobs = JobStats(counters.MDT_STATS, settings.lists_jobs_again)
        self.brw = BrwStats(engine.now)
        self.changelog = Changelog()
        self.health = Health()
        self._engine = engine
        self._rng = rng
        self._namespace = namespace
        self._caller_rng = Random(f"{CALLER} at {name}")  # noqa: S311 - a model, not a secret
        """Separate random numbers, so that calls of an observer do not change the random numbers of jobs."""
        self._queue_wait = queue_wait_seconds
        """Wait of a request behind flows."""
        self._directory_free_at: dict[Fid, float] = {}
        self._core_free_at = [0.0] * settings.cores
        self.service = Stats(counters.OST_IO_STATS, engine.now)
        """Counters of the service for metadata requests. The model has one service thread for each core."""
        self._waited, self._active, self._queued = (
            self.service[name] for name in ("req_waittime", "req_active", "req_qdepth"))

    @property
    def short_name(self) -> str:
        return self.name[-7:]

    @property
    def inodes_free(self) -> int:
        return max(self.settings.capacity.inodes - 260 - self._namespace.inodes[self.index], 0)

    def data(self, write: bool, size_bytes: int, job_id: str) -> Steps[None]:
        """Read or write data on the MDT (DoM)."""
        while self.health.away:
            yield self.health.back
        began = self._engine.now
        yield self._core(DATA_SECONDS * self.settings.work_factor, self._rng)
        stored = Completion()
        place = self._rng.randrange(1 << 20) * 4096
        self.brw.begin(write, size_bytes, 1, 1)
        self.disks.submit(Io(write, place, size_bytes, stored.succeed))
        yield stored
        self.brw.end(write, self._engine.now - began)
        name = "write" if write else "read"
        self.tally(job_id, f"{name}_bytes", size_bytes)
        self.tally(job_id, name, microseconds(self._engine.now - began))

    def work(self, operation: str, job_id: str, directory: Inode | None = None, names: int = 1,
             inode: Inode | None = None) -> Steps[None]:  # fmt: skip
        """Do one operation: wait for a core, use it and count it. Names of one directory wait for each other."""
        while self.health.away:
            yield self.health.back
        began = self._engine.now
        # the names of a batch share one request
        seconds = SERVICE_SECONDS[operation] * names - REQUEST_SECONDS * (names - 1)
        if inode is not None and inode.layout is not None and inode.layout.components[0].on_mdt:
            seconds += SERVICE_SECONDS["glimpse"]  # check a lock and get the size of an object
        if self._queue_wait is not None:
            yield self._queue_wait()
        # an observer must not change the random numbers of jobs
        yield self._core(seconds * self.settings.work_factor, self._caller_rng if job_id == CALLER else self._rng)
        if directory is not None and (wait := self._directory_lock(directory, operation in _CHANGING)):
            yield wait
        if operation in _CHANGING:
            self.journal.change((operation, self._rng.randrange(64)))
        if operation == "sync":
            yield self.journal.commit()
        if operation not in _UNCOUNTED:
            took = microseconds(self._engine.now - began)
            for _ in range(names):
                self.tally(job_id, operation, took)

    def tally(self, job_id: str, name: str, value: int) -> None:
        self.stats[name].tally(value)
        self.jobs.bulk(job_id, name, 1, value, self._engine.now)

    def _directory_lock(self, directory: Inode, changes: bool) -> float:
        """Wait for the part of an operation that locks the directory on this MDT."""
        seconds = (DIRECTORY_SECONDS if changes else LOOKUP_SECONDS) * self.settings.work_factor
        free_at = self._directory_free_at.get(directory.fid, 0.0)
        now = self._engine.now
        self._directory_free_at[directory.fid] = max(now, free_at) + seconds
        return max(free_at - now, 0.0)

    def _core(self, seconds: float, rng: Random) -> float:
        now = self._engine.now
        free_at = min(self._core_free_at)
        self._waited.tally(microseconds(max(free_at - now, 0.0)))
        self._active.tally(sum([time > now for time in self._core_free_at]))
        self._queued.tally(0)
        done_at = max(now, free_at) + seconds * rng.lognormvariate(0.0, 0.5)
        self._core_free_at[self._core_free_at.index(free_at)] = done_at
        return done_at - now


_UNCOUNTED = frozenset(("layout", "glimpse"))
_CHANGING = frozenset(("mknod", "unlink", "mkdir", "setattr", "setxattr", "layout", "rename"))
