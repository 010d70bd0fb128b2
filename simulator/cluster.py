"""A Lustre cluster in one process: targets, clients, names and jobs. The owner advances its virtual time.

One lock guards the model, so that one thread may advance the time (:mod:`simulator.realtime`) while others read and
act. The cluster also performs the ``lfs`` operations of an administrator or of tierd: migrate, mirror resync, and
setstripe on a directory. It makes the directories and files that exist before the first job starts.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import RLock
from typing import Any, Protocol, TypeVar

from lustre.changelog.record import RecordType
from lustre.layout.model import Layout
from simulator import releases
from simulator.clients.client import Client
from simulator.clients.mount import Servers
from simulator.costs import CallCosts
from simulator.engine import Completion, Engine, Steps, gather
from simulator.jobs import Job
from simulator.jobs.job import Run, Team, Throughput, user_of
from simulator.migration import Copy
from simulator.servers.changelog import Actor
from simulator.servers.mdt import Mdt
from simulator.servers.namespace import Inode, Namespace
from simulator.servers.ost import Ost
from simulator.servers.placement import Placement, bytes_on_mdt, extents
from simulator.servers.tbf import Tbf
from simulator.settings import ClusterSettings, ExporterLoad

STATFS_SECONDS = 5.0
"""Interval at which each MDT asks each OST for its free space."""
LFS_JOB_ID = "lfs.0"
AnyCopy = TypeVar("AnyCopy", bound=Copy)


class Timekeeper(Protocol):
    """Advances the time of a cluster for which several threads wait."""

    def sleep(self, seconds: float) -> None:
        """Block the caller for a span of virtual time."""

    def wait_for(self, completion: Completion) -> None:
        """Block the caller until a completion."""


class Cluster:
    """Targets, clients, names and jobs, and the virtual time they share."""

    timekeeper: Timekeeper | None = None
    """Object that advances the time; None if the caller of :meth:`advance` does."""
    exporter_back_at = 0.0
    """Virtual time until which the exporter is unreachable."""
    exporter_load: ExporterLoad | None = None
    """How exporters answer; None: at once."""

    def __init__(self, settings: ClusterSettings, jobs: Iterable[Job] = ()) -> None:
        self.settings = settings
        self.engine = Engine()
        self.lock = RLock()
        self.log = Throughput()
        self.epoch_ns = settings.epoch_seconds * 10**9
        fsname = settings.fsname
        self.tbf = Tbf(self.engine, settings.partitions)  # one node serves all OSTs
        self.osts = tuple(
            Ost(self.engine, f"{fsname}-OST{index:04x}", index, ost, self.random(f"ost{index}"),
                queue_wait_seconds=self._queue_wait(index), tbf=self.tbf)
            for index, ost in enumerate(settings.osts)
        )
        self.namespace = Namespace(settings.epoch_seconds, len(settings.mdts))
        self.mdts = tuple(
            Mdt(self.engine, f"{fsname}-MDT{index:04x}", index, mdt, self.random(f"mdt{index}"),
                queue_wait_seconds=self._queue_wait(None), namespace=self.namespace)
            for index, mdt in enumerate(settings.mdts)
        )
        self.placement = Placement(self.osts, settings.pools, self.random("placement"))
        servers = Servers(self.namespace, self.placement, self.mdts, self.osts, epoch_ns=self.epoch_ns,
                          osts_for_mirrors=self.osts if releases.number_of(settings.version) >= (2, 15) else ())
        self.clients = tuple(
            Client(self.engine, index, client, servers, self.random(f"client{index}"))
            for index, client in enumerate(settings.clients)
        )
        self.processors = Processors(self)
        self.mounts = len(self.clients)
        """Number of clients."""
        self._jobs: dict[str, Job] = {}
        """Jobs that have started, by job id."""
        self._runs: dict[str, list[Run]] = {}
        """Runs of a job on its nodes, by job id. The flow model has none."""
        self.written: dict[Path, dict[str, bytes]] = {}
        """By root, the parameter files that were written, with their content by path."""
        self.engine.after(STATFS_SECONDS, self._statfs)
        for job in jobs:
            self.add(job)

    @property
    def runs(self) -> Mapping[str, Run]:
        """The run on each job's first node, by job id."""
        return {job_id: runs[0] for job_id, runs in self._runs.items()}

    def processes_on(self, nid: str) -> int:
        """Processes of running jobs on a node."""
        runs = (run for runs in self._runs.values() for run in runs)
        return sum(run.processes for run in runs if run.active and run.actor.nid == nid)

    @property
    def targets(self) -> tuple[Mdt | Ost, ...]:
        return (*self.mdts, *self.osts)

    def target(self, name: str) -> Mdt | Ost:
        """Find a target by ``OST0003`` or by its full name. Raises LookupError."""
        for target in self.targets:
            if target.name.lower() == name.lower() or target.name.lower().endswith(f"-{name.lower()}"):
                return target
        raise LookupError(f"there is no target {name}")

    # Time

    @property
    def now(self) -> float:
        return self.engine.now

    @property
    def exporter_reachable(self) -> bool:
        return self.now >= self.exporter_back_at

    @property
    def epoch(self) -> float:
        return self.epoch_ns / 1e9 + self.engine.now

    def advance(self, seconds: float) -> None:
        if self.timekeeper is None:
            self.live(self.now + seconds)
        else:
            self.timekeeper.sleep(seconds)

    def wait_for(self, completion: Completion) -> None:
        if self.timekeeper is None:
            awaited: list[object] = []
            completion.then(awaited.append)
            self.live(float("inf"), awaited)
        else:
            self.timekeeper.wait_for(completion)

    def live(self, until: float, awaited: Collection[object] | None = None) -> None:
        """Process all events up to a time, or until an event fills ``awaited``. For the timekeeper only."""
        with self.lock:
            self.engine.run_until(until, () if awaited is None else awaited)

    def settle(self) -> None:
        """Called before its counters are read. The flow model counts its flows up to now."""

    def about_to_change(self) -> None:
        """Called before the cluster changes from outside. The flow model settles its flows here."""

    def data_on_mdts(self) -> list[int]:
        """Bytes of files that are stored on each MDT."""
        stored = [0] * len(self.mdts)
        with self.lock:
            for inode in self.namespace.files():
                if inode.layout is not None:
                    stored[inode.mdt_index] += bytes_on_mdt(inode.layout, 0, inode.size_bytes)
        return stored

    # Files and jobs

    def add(self, job: Job) -> None:
        """Make the directories and files of a job, and start it at its start time or at once."""
        with self.lock:
            for path, layout in job.directories():
                shards = tuple(range(len(self.mdts))) if job.striped_directories else ()
                self.make_directory(path, layout, uid=user_of(job.job_id), shards=shards)
            for path, size_bytes in job.files():
                self.make_file(path, size_bytes, uid=user_of(job.job_id))
            self.engine.after(job.start_seconds - self.now, self._start, job)

    def make_directory(self, path: str, layout: Layout | None = None, *, uid: int = 0,
                       shards: tuple[int, ...] = ()) -> Inode:
        """Make a directory and its parents on the first MDT, before the first job starts. A directory that exists stays
        as it is.
        """
        inode = self.namespace.root
        for name in filter(None, path.split("/")):
            child = inode.children.get(name)
            if child is None:
                child = self.namespace.add(inode, name, 0, self.epoch, uid=uid, directory=True)
                child.layout = layout if child.path == path else None
                child.shards = shards if child.path == path else ()
            inode = child
        return inode

    def make_file(self, path: str, size_bytes: int, *, uid: int = 0) -> Inode:
        """Make a file full of data, before the first job starts. Raises OSError ENOSPC when the OSTs are full."""
        parent, _, name = path.rpartition("/")
        directory = self.make_directory(parent)
        if name in directory.children:
            return directory.children[name]
        layout = self.placement.create(directory.layout or self.namespace.root.layout)
        try:
            layout = self.placement.reach(layout, size_bytes)
            for piece in extents(layout, 0, size_bytes):
                store = self.osts[piece.ost_index].store
                store.grow(store.objects[piece.fid], piece.offset, piece.offset + piece.size_bytes)
        except OSError:
            self.placement.release(layout)  # a file that does not fit leaves no objects
            raise
        inode = self.namespace.add(directory, name, directory.mdt_index, self.epoch, uid=uid)
        inode.layout = layout
        inode.wrote(size_bytes, self.epoch)
        return inode

    def change(self, job_id: str, **values: Any) -> None:
        """Stop a job and start its successor: the same job with other values. Raises LookupError if it does not run."""
        with self.lock:
            job = self._jobs[job_id]
            self.stop(job_id)
            self._runs.pop(job_id, None)  # the successor has runs of its own
            self.add(replace(job, start_seconds=self.now, **values))

    def stop(self, job_id: str) -> None:
        """Stop a job, which finishes its calls in progress. Raises LookupError if it does not run."""
        with self.lock:
            for run in self._runs[job_id]:
                run.stop_seconds = self.now

    def _start(self, job: Job) -> None:
        self._jobs[job.job_id] = job
        user = user_of(job.job_id)
        team = Team()
        for rank in range(job.nodes):
            client = self.clients[(job.client + rank) % len(self.clients)]
            actor = Actor(job.job_id, user, client.settings.nid)
            random = self.random(f"{job.job_id}/{rank}" if rank else job.job_id)
            run = Run(client, actor, random, self.log, job.stop_seconds, rank=rank, team=team)
            self._runs.setdefault(job.job_id, []).append(run)
            steps = list(job.processes(run))
            run.processes = len(steps)
            gather([self.engine.spawn(each) for each in steps])

    def throughput(self, job_id: str, since: float, until: float) -> list[float]:
        with self.lock:
            self.settle()
            return self.log.per_second(job_id, since, until)

    # What an administrator or tierd does with lfs

    def set_default_layout(self, directory: str, layout: Layout | None) -> None:
        """Set the default layout of a directory, as ``lfs setstripe`` does. Files that exist keep their layouts. Raises
        OSError ENOTDIR for a file, and EINVAL for an unknown pool.
        """
        with self.lock:
            inode = self.namespace.lookup(directory)
            if not inode.is_directory:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
            self.placement.check(layout)
            self.about_to_change()
            inode.layout = layout
            mdt = self.mdts[inode.mdt_index]
            actor = Actor(LFS_JOB_ID, 0, self.clients[0].settings.nid)
            mdt.changelog.add(RecordType.SETXATTR, self.epoch, inode.fid, actor, xattr_name="lustre.lov")
            mdt.tally(LFS_JOB_ID, "setattr", 900)

    def start_lfs(self, work: AnyCopy) -> AnyCopy:
        """Start ``lfs migrate`` or ``lfs mirror resync`` on the mover's client. ``finished`` completes in virtual time.
        It computes first, then copies; real ``lfs`` does both at once.
        """
        client = self.clients[0]
        actor = Actor(LFS_JOB_ID, 0, client.settings.nid)
        costs = self.settings.costs

        def steps() -> Steps[None]:
            yield from self.processors.work(costs, costs.move_processor_seconds)
            yield from work.steps(client, actor, costs.move_start_seconds)

        with self.lock:
            work.finished = self.engine.spawn(steps())
        return work

    def set_service_parameter(self, name: str, value: str) -> None:
        """``lctl set_param ost.OSS.ost_io.NAME=VALUE`` for ``nrs_policies`` and ``nrs_tbf_rule``. Raises OSError."""
        with self.lock:
            self.about_to_change()
            self.tbf.set_parameter(name, value)

    def slow_down(self, ost_index: int, factor: float) -> None:
        with self.lock:
            self.osts[ost_index].disks.slowdown = factor

    def _statfs(self) -> None:
        for ost in self.osts:
            for _mdt in self.mdts:  # each MDT asks each OST for its space
                ost.statfs()
        self.engine.after(STATFS_SECONDS, self._statfs)

    def _queue_wait(self, ost_index: int | None) -> Callable[[], float] | None:
        """Return the wait of a request behind flows, at an OST or at the MDTs; None without flows."""

    def random(self, name: str) -> Random:
        """Return a random generator for one purpose, so that a new purpose does not change the numbers of others."""
        return Random(f"{self.settings.seed}/{name}")  # noqa: S311 - a model, not a secret


class Processors:
    """The processors of the mover's node. Processes of jobs and calls get equal shares."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rng = cluster.random("calls")
        self._at_work = 0
        self._nid = cluster.clients[0].settings.nid

    def work(self, costs: CallCosts, seconds: float) -> Steps[None]:
        """Spend processor time, longer on a busy node."""
        if not seconds:
            return
        self._at_work += 1
        crowd = 1.0
        if costs.processors:
            crowd = max(1.0, (self._cluster.processes_on(self._nid) + self._at_work) / costs.processors)
        yield seconds * crowd * self._rng.lognormvariate(-0.02, 0.2)  # the factor has a mean of 1
        self._at_work -= 1
