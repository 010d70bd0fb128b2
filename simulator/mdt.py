"""A metadata target: names, opens, closes; a few cores, a journal on flash, and the changelog."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from lustre.fid import Fid
from simulator import shapes
from simulator.brw import BrwStats
from simulator.changelog import Changelog
from simulator.costs import CALLER
from simulator.devices import Io, build
from simulator.engine import Completion, Engine, Steps
from simulator.health import Health
from simulator.jobstats import JobStats
from simulator.journal import Journal, JournalSettings
from simulator.mdt_settings import (
    DATA_SECONDS,
    DIRECTORIES_MAX,
    DIRECTORY_SECONDS,
    REQUEST_SECONDS,
    SERVICE_SECONDS,
    MdtSettings,
)  # fmt: skip
from simulator.namespace import Inode
from simulator.tally import Stats, microseconds


class Mdt:
    """One MDT and its counters."""

    def __init__(self, engine: Engine, name: str, index: int, settings: MdtSettings, rng: Random,
                 crowd: Callable[[], float] | None = None) -> None:  # fmt: skip
        self.name = name
        self.index = index
        self.settings = settings
        self.device = build(engine, settings.device)
        self.journal = Journal(engine, self.device, JournalSettings(), settings.capacity.size_bytes // 2)
        self.stats = Stats(shapes.MDT, engine.now)
        self.jobs = JobStats(shapes.MDT)
        self.brw = BrwStats(engine.now)
        self.changelog = Changelog()
        self.inodes_used = 0
        self.health = Health()
        self.data_bytes = 0
        self._engine = engine
        self._rng = rng
        self._caller_rng = Random(f"{CALLER} at {name}")  # noqa: S311 - a model, not a secret
        """Chance of its own: that somebody looks changes the jobs by the time it takes, not by chance."""
        self._crowd = crowd
        """What a request waits behind those that are not modelled one by one."""
        self._lost: list[object] = []
        self._directory_free_at: dict[Fid, float] = {}
        self._core_free_at = [0.0] * settings.cores

    @property
    def short_name(self) -> str:
        """``MDT0000``."""
        return self.name[-7:]

    @property
    def inodes_free(self) -> int:
        """Files that could still be created."""
        return max(self.settings.capacity.inodes - 260 - self.inodes_used, 0)

    @property
    def recovering(self) -> bool:
        """Whether it waits for its clients to replay."""
        return self.health.status == "RECOVERING"

    def data(self, write: bool, size_bytes: int, job_id: str) -> Steps[None]:
        """Read or write data that lies here (DoM)."""
        while self.health.away:
            yield self.health.back
        began = self._engine.now
        yield self._core(DATA_SECONDS * self.settings.work_factor, self._rng)
        stored = Completion()
        place = self._rng.randrange(1 << 20) * 4096
        self.brw.begin(write, size_bytes, 1, 1)
        self.device.submit(Io(write, place, size_bytes, stored.succeed))
        yield stored
        self.brw.end(write, self._engine.now - began)
        self.data_bytes += size_bytes * write
        name = "write" if write else "read"
        self.tally(job_id, f"{name}_bytes", size_bytes)
        self.tally(job_id, name, microseconds(self._engine.now - began))

    def work(self, operation: str, job_id: str, directory: Inode | None = None, names: int = 1,
             inode: Inode | None = None) -> Steps[None]:  # fmt: skip
        """One operation: wait for a core, use it, count it. Names of one directory change one after the other."""
        while self.health.away:
            yield self.health.back
        began = self._engine.now
        seconds = SERVICE_SECONDS[operation] * names - REQUEST_SECONDS * (names - 1)
        if inode is not None and inode.layout is not None and inode.layout.components[0].on_mdt:
            seconds += SERVICE_SECONDS["glimpse"]  # a lock to look at, an object to ask for its size
        if self._crowd is not None:
            yield self._crowd()
        yield self._core(seconds * self.settings.work_factor, self._caller_rng if job_id == CALLER else self._rng)
        if directory is not None and (wait := self._directory_lock(directory)):
            yield wait
        if operation in _CHANGING:
            self.journal.change((operation, self._rng.randrange(64)), redo=operation)
        if operation == "sync":
            yield self.journal.commit()
        if operation not in _UNCOUNTED:
            for _ in range(names):
                self.tally(job_id, operation, microseconds(self._engine.now - began))

    def fail(self) -> None:
        """Its server is down, and with it what was not in the journal yet."""
        self._lost = self.journal.uncommitted()
        self.health.leave(self._engine.now)

    def replay(self) -> Completion:
        """It is back: clients send again what had been answered and was not safe yet. Done when all of that is."""
        lost = [redo for redo in self._lost if isinstance(redo, str)]
        self.health.replayed += len(lost)
        return self._engine.spawn(self._again(lost))

    def _again(self, operations: list[str]) -> Steps[None]:
        for operation in operations:
            yield self._core(SERVICE_SECONDS[operation] * self.settings.work_factor, self._rng)
        yield self.journal.commit()

    def tally(self, job_id: str, name: str, value: int) -> None:
        """Count an operation for the target and for the job."""
        self.stats.tally(name, value)
        self.jobs.tally(job_id, name, value, self._engine.now)

    def _directory_lock(self, directory: Inode) -> float:
        """Time until the part of an operation that needs the directory (of this MDT) alone is over."""
        seconds = DIRECTORY_SECONDS * self.settings.work_factor
        free_at = self._directory_free_at.get(directory.fid, 0.0)
        now = self._engine.now
        if len(self._directory_free_at) > DIRECTORIES_MAX:
            self._directory_free_at = {fid: time for fid, time in self._directory_free_at.items() if time > now}
        self._directory_free_at[directory.fid] = max(now, free_at) + seconds
        return max(free_at - now, 0.0)

    def _core(self, seconds: float, rng: Random) -> float:
        """Time until a core has done that much work."""
        now = self._engine.now
        free_at = min(self._core_free_at)
        done_at = max(now, free_at) + seconds * rng.lognormvariate(0.0, 0.5)
        self._core_free_at[self._core_free_at.index(free_at)] = done_at
        return done_at - now


_UNCOUNTED = frozenset(("layout", "glimpse"))
_CHANGING = frozenset(("mknod", "unlink", "mkdir", "setattr", "setxattr", "layout", "rename"))

