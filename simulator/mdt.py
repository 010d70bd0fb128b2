"""A metadata target: names, opens, closes; a few cores, a journal on flash, and the changelog."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from simulator import shapes
from simulator.brw import BrwStats
from simulator.changelog import Changelog
from simulator.devices import DeviceSettings, FlashSettings, build
from simulator.engine import Engine, Steps
from simulator.jobstats import JobStats
from simulator.journal import Journal, JournalSettings
from simulator.objects import Capacity
from simulator.tally import Stats, microseconds

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
}
"""Processor time of one operation; ``layout`` instantiates a component and is not counted by the kernel."""


@dataclass(frozen=True, slots=True)
class MdtSettings:
    """One MDT."""

    device: DeviceSettings = field(default_factory=FlashSettings)
    capacity: Capacity = field(default_factory=lambda: Capacity(1 << 30, 81920))
    cores: int = 2
    work_factor: float = 1.0
    """Slower processors take more of the same times."""


class Mdt:
    """One MDT and its counters."""

    def __init__(self, engine: Engine, name: str, index: int, settings: MdtSettings, rng: Random) -> None:
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
        self.recovering = False
        self._engine = engine
        self._rng = rng
        self._core_free_at = [0.0] * settings.cores

    @property
    def short_name(self) -> str:
        """``MDT0000``."""
        return self.name[-7:]

    @property
    def inodes_free(self) -> int:
        """Files that could still be created."""
        return max(self.settings.capacity.inodes - 260 - self.inodes_used, 0)

    def work(self, operation: str, job_id: str) -> Steps[None]:
        """One operation: wait for a core, use it, count it."""
        began = self._engine.now
        yield self._core(SERVICE_SECONDS[operation] * self.settings.work_factor)
        if operation in _CHANGING:
            self.journal.change((operation, self._rng.randrange(64)))
        if operation == "sync":
            yield self.journal.commit()
        if operation != "layout":
            self.tally(job_id, operation, microseconds(self._engine.now - began))

    def tally(self, job_id: str, name: str, value: int) -> None:
        """Count an operation for the target and for the job."""
        self.stats.tally(name, value)
        self.jobs.tally(job_id, name, value, self._engine.now)

    def _core(self, seconds: float) -> float:
        """Time until a core has done that much work."""
        now = self._engine.now
        free_at = min(self._core_free_at)
        done_at = max(now, free_at) + seconds * self._rng.lognormvariate(0.0, 0.5)
        self._core_free_at[self._core_free_at.index(free_at)] = done_at
        return done_at - now


_CHANGING = frozenset(("mknod", "unlink", "mkdir", "setattr", "setxattr", "layout", "rename"))

