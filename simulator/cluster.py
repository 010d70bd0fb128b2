"""A Lustre cluster in one process. Whoever holds it advances its time; nothing in it happens by itself.

One lock guards the model, so that one thread may drive the time (:mod:`simulator.realtime`) while others look and act.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol

from lustre.layout.model import Layout
from simulator import lfs, releases
from simulator.calls import Processors
from simulator.client import Client, Servers
from simulator.engine import Completion, Engine
from simulator.jobs import Job, Run
from simulator.jobs.job import user_of
from simulator.mdt import Mdt
from simulator.migration import Migration
from simulator.namespace import Inode, Namespace
from simulator.ost import Ost
from simulator.parameters.writer import ParameterWriter
from simulator.placement import Placement
from simulator.population import Population
from simulator.resync import Resync
from simulator.settings import ClusterSettings
from simulator.staff import Staff
from simulator.throughput import Throughput

if TYPE_CHECKING:
    from simulator.fluid.staff import FluidStaff

STATFS_SECONDS = 5.0


class Timekeeper(Protocol):
    """Who moves the time of a cluster on, where several wait for it."""

    def sleep(self, seconds: float) -> None:
        """Hold the caller up for so much virtual time."""

    def wait_for(self, completion: Completion) -> None:
        """Hold the caller up until something is done."""


class Cluster:
    """Targets, clients, names and jobs, and the virtual time they share."""

    def __init__(self, settings: ClusterSettings, jobs: Iterable[Job] = ()) -> None:
        self.settings = settings
        self.engine = Engine()
        self.lock = RLock()
        self.timekeeper: Timekeeper | None = None
        """None: whoever calls moves the time on."""
        self.log = Throughput()
        self.epoch_ns = settings.epoch_seconds * 10**9
        fsname = settings.fsname
        self.osts = tuple(
            Ost(self.engine, f"{fsname}-OST{index:04x}", index, ost, self.random(f"ost{index}"), self._crowd(index))
            for index, ost in enumerate(settings.osts)
        )
        self.mdts = tuple(
            Mdt(self.engine, f"{fsname}-MDT{index:04x}", index, mdt, self.random(f"mdt{index}"), self._metadata_crowd())
            for index, mdt in enumerate(settings.mdts)
        )
        self.namespace = Namespace(settings.epoch_seconds)
        self.placement = Placement(self.osts, settings.pools, settings.spills, self.random("placement"))
        servers = Servers(fsname, self.namespace, self.placement, self.mdts, self.osts, self.epoch_ns,
                          releases.of(settings.version).number >= (2, 15))
        self.clients = tuple(
            Client(self.engine, index, client, servers, self.random(f"client{index}"))
            for index, client in enumerate(settings.clients)
        )
        self.processors = Processors(self)
        self._population = Population(self.namespace, self.placement, self.mdts, self.osts)
        self.mounts = len(self.clients)
        """How many clients there are."""
        self._staff: Staff | FluidStaff = Staff(self.engine, self.clients, self.log, self.random)
        self._writers: dict[tuple[Path, bool], ParameterWriter] = {}
        self.exporter_back_at = 0.0
        """Until then nobody reaches the exporter."""
        self.engine.after(STATFS_SECONDS, self._statfs)
        for job in jobs:
            self.add(job)

    @property
    def runs(self) -> Mapping[str, Run]:
        """By job id, what it does on its first node."""
        return self._staff.runs

    def processes_on(self, nid: str) -> int:
        """Processes of jobs at work on a node."""
        return self._staff.processes_on(nid)

    @property
    def targets(self) -> tuple[Mdt | Ost, ...]:
        """All MDTs, then all OSTs."""
        return (*self.mdts, *self.osts)

    def target(self, name: str) -> Mdt | Ost:
        """A target by ``OST0003`` or its full name. Raises LookupError."""
        for target in self.targets:
            if target.name.lower() == name.lower() or target.name.lower().endswith(f"-{name.lower()}"):
                return target
        raise LookupError(f"no target {name}")

    # Time

    @property
    def now(self) -> float:
        """Virtual seconds since the beginning."""
        return self.engine.now

    @property
    def exporter_reachable(self) -> bool:
        """Whether one who asks the exporter of this cluster gets an answer."""
        return self.now >= self.exporter_back_at

    @property
    def epoch(self) -> float:
        """Seconds of the epoch, as clients and servers see them."""
        return self.epoch_ns / 1e9 + self.engine.now

    def advance(self, seconds: float) -> None:
        """Let so much time pass."""
        if self.timekeeper is None:
            self.live(self.now + seconds)
        else:
            self.timekeeper.sleep(seconds)

    def wait_for(self, completion: Completion) -> None:
        """Let time pass until something is done."""
        if self.timekeeper is None:
            self.live(float("inf"), lambda: completion.done)
        else:
            self.timekeeper.wait_for(completion)

    def live(self, until: float, enough: Callable[[], bool] | None = None) -> None:
        """Let everything happen that is due by then, or until there is enough. For whoever keeps the time."""
        with self.lock:
            if enough is None:
                self.engine.run_until(until)
            else:
                self.engine.run_while(until, enough)

    def about_to_change(self) -> None:
        """Called before anything happens to the cluster from outside; a cluster of flows has to know."""

    # What is there, and who works

    def add(self, job: Job) -> None:
        """Make what the job needs, and have it start at its time (at once when that is past)."""
        with self.lock:
            for path, layout in job.directories():
                shards = tuple(range(len(self.mdts))) if job.striped_directories else ()
                self.make_directory(path, layout, uid=user_of(job.job_id), shards=shards)
            for path, size_bytes in job.files():
                self.make_file(path, size_bytes, uid=user_of(job.job_id))
            self._staff.expect(job)

    def make_directory(
        self, path: str, layout: Layout | None = None, *, uid: int = 0, mdt_index: int = 0, shards: tuple[int, ...] = ()
    ) -> Inode:  # fmt: skip
        """A directory with those above it, as if it had always been there; one that exists stays as it is."""
        return self._population.directory(path, layout, self.epoch, uid=uid, mdt_index=mdt_index, shards=shards)

    def make_file(self, path: str, size_bytes: int, *, uid: int = 0) -> Inode:
        """A file full of data, as if it had always been there. Raises OSError ENOSPC when there is no room."""
        return self._population.file(path, size_bytes, self.epoch, uid=uid)

    def change(self, job_id: str, values: dict[str, Any]) -> None:
        """Have a job go on with other values of its fields, from now on."""
        with self.lock:
            self.add(self._staff.changed(job_id, values))

    def stop(self, job_id: str) -> None:
        """Have a job stop now; calls under way are finished."""
        with self.lock:
            self._staff.stop(job_id)

    def throughput(self, job_id: str, since: float, until: float) -> list[float]:
        """MB/s of a job in each whole virtual second of an interval."""
        with self.lock:
            return self.log.per_second(job_id, since, until)

    def write_parameters(self, root: Path, *, clients: bool = True, shared: bool = True) -> int:
        """Bring the parameter files below a root up to date; how many changed. None do while nobody reaches them.

        Without ``clients`` only those of a server: what mounts show is the larger part. Not ``shared``: nobody reads
        them meanwhile.
        """
        if not self.exporter_reachable:
            return 0
        writer = ParameterWriter(root, clients=clients, shared=shared)
        return self._writers.setdefault((root, clients), writer).write(self)

    # What may be done to it

    def start_migration(self, path: str, layout: Layout) -> Migration:
        """Have the mover move a file; ``finished`` of what this returns is done in virtual time."""
        with self.lock:
            return lfs.migrate(self, path, layout)

    def start_resync(self, path: str) -> Resync:
        """Have the stale copies of a mirrored file brought up to date, in virtual time."""
        with self.lock:
            return lfs.resync(self, path)

    def set_default_layout(self, directory: str, layout: Layout | None) -> None:
        """What ``lfs setstripe`` on a directory does: new files get it, those that are there keep theirs."""
        with self.lock:
            lfs.set_default_layout(self, directory, layout)

    def slow_down(self, ost_index: int, factor: float) -> None:
        """From now on a target's device takes so many times as long; 1 heals it."""
        with self.lock:
            self.osts[ost_index].device.slowdown = factor

    def _statfs(self) -> None:
        """Each MDT asks each OST for its room, all the time, to know where new objects may go."""
        for ost in self.osts:
            for _mdt in self.mdts:
                ost.statfs()
        self.engine.after(STATFS_SECONDS, self._statfs)

    def _crowd(self, index: int) -> Callable[[], float] | None:
        """How long an I/O waits at an OST behind those that are not modelled one by one; None: all are."""

    def _metadata_crowd(self) -> Callable[[], float] | None:
        """The same of a request at an MDT."""

    def random(self, name: str) -> Random:
        """Chance of its own for each who needs some, so that one more changes nothing for the others."""
        return Random(f"{self.settings.seed}/{name}")  # noqa: S311 - a model, not a secret
