"""A Lustre cluster in one process. Whoever holds it advances its time; nothing in it happens by itself.

One lock guards the model, so that one thread may drive the time (:mod:`simulator.realtime`) while others look and act.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import RLock
from typing import Any

from lustre.changelog import RecordType
from lustre.layout import Layout
from simulator import description
from simulator.changelog import Actor
from simulator.client import Client, Servers
from simulator.engine import Completion, Engine, gather
from simulator.jobs import Job, Run
from simulator.jobs.job import Team, user_of
from simulator.mdt import Mdt
from simulator.migration import Migration
from simulator.namespace import Inode, Namespace
from simulator.ost import Ost
from simulator.parameters.writer import ParameterWriter
from simulator.placement import Placement, extents
from simulator.settings import ClusterSettings
from simulator.throughput import Throughput

MOVER = SETSTRIPE = "lfs.0"
STATFS_SECONDS = 5.0


class Cluster:
    """Targets, clients, names and jobs, and the virtual time they share."""

    def __init__(self, settings: ClusterSettings, jobs: Iterable[Job] = ()) -> None:
        self.settings = settings
        self.engine = Engine()
        self.lock = RLock()
        self.log = Throughput()
        self.epoch_ns = settings.epoch_seconds * 10**9
        fsname = settings.fsname
        self.osts = tuple(
            Ost(self.engine, f"{fsname}-OST{index:04x}", index, ost, self._random(f"ost{index}"))
            for index, ost in enumerate(settings.osts)
        )
        self.mdts = tuple(
            Mdt(self.engine, f"{fsname}-MDT{index:04x}", index, mdt, self._random(f"mdt{index}"))
            for index, mdt in enumerate(settings.mdts)
        )
        self.namespace = Namespace(settings.epoch_seconds)
        self.placement = Placement(self.osts, settings.pools, settings.spills, self._random("placement"))
        servers = Servers(fsname, self.namespace, self.placement, self.mdts, self.osts, self.epoch_ns)
        self.clients = tuple(
            Client(self.engine, index, client, servers, self._random(f"client{index}"))
            for index, client in enumerate(settings.clients)
        )
        self.runs: dict[str, Run] = {}
        self._all_runs: dict[str, list[Run]] = {}
        self._writers: dict[Path, ParameterWriter] = {}
        self._jobs: dict[str, Job] = {}
        self.exporter_back_at = 0.0
        """Until then nobody reaches the exporter."""
        self.engine.after(STATFS_SECONDS, self._statfs)
        for job in jobs:
            self.add(job)

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
        with self.lock:
            self.engine.run_until(self.engine.now + seconds)

    # What is there, and who works

    def add(self, job: Job) -> None:
        """Make what the job needs, and have it start at its time (at once when that is past)."""
        with self.lock:
            for path, layout in job.directories():
                shards = tuple(range(len(self.mdts))) if job.striped_directories else ()
                self.make_directory(path, layout, uid=user_of(job.job_id), shards=shards)
            for path, size_bytes in job.files():
                self.make_file(path, size_bytes, uid=user_of(job.job_id))
            self.engine.after(job.start_seconds - self.engine.now, self._start, job)

    def make_directory(
        self, path: str, layout: Layout | None = None, *, uid: int = 0, mdt_index: int = 0, shards: tuple[int, ...] = ()
    ) -> Inode:  # fmt: skip
        """A directory with those above it, as if it had always been there; one that exists stays as it is."""
        inode = self.namespace.root
        for name in filter(None, path.split("/")):
            child = inode.children.get(name)
            if child is None:
                fid = self.namespace.new_fid(mdt_index, 0)
                child = self.namespace.add(inode, name, fid, mdt_index, self.epoch, directory=True)
                child.uid = child.gid = uid
                child.layout = layout if child.path == path else None
                child.shards = shards if child.path == path else ()
                self.mdts[mdt_index].inodes_used += 1
            inode = child
        return inode

    def make_file(self, path: str, size_bytes: int, *, uid: int = 0) -> Inode:
        """A file full of data, as if it had always been there. Raises OSError ENOSPC when there is no room."""
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
            self.placement.release(layout)
            raise
        fid = self.namespace.new_fid(directory.mdt_index, 0)
        inode = self.namespace.add(directory, name, fid, directory.mdt_index, self.epoch, directory=False)
        inode.layout, inode.uid, inode.gid = layout, uid, uid
        inode.wrote(size_bytes, self.epoch)
        self.mdts[directory.mdt_index].inodes_used += 1
        return inode

    def change(self, job_id: str, values: dict[str, Any]) -> None:
        """Have a job go on with other values of its fields, from now on."""
        with self.lock:
            wrong: list[str] = []
            job = description.changed(self._jobs[job_id], values, wrong, job_id)
            if wrong:
                raise ValueError("; ".join(wrong))
            stopped = self._jobs[job_id].stop_seconds
            self.stop(job_id)
            del self.runs[job_id], self._all_runs[job_id]
            self.add(replace(job, start_seconds=self.now, stop_seconds=stopped))

    def _start(self, job: Job) -> None:
        self._jobs[job.job_id] = job
        user = user_of(job.job_id)
        team = Team()
        for rank in range(job.nodes):
            client = self.clients[(job.client + rank) % len(self.clients)]
            actor = Actor(job.job_id, user, user, client.settings.nid)
            random = self._random(f"{job.job_id}/{rank}" if rank else job.job_id)
            run = Run(client, actor, random, self.log, job.stop_seconds, rank=rank, team=team)
            self.runs.setdefault(job.job_id, run)
            self._all_runs.setdefault(job.job_id, []).append(run)
            gather([self.engine.spawn(steps) for steps in job.processes(run)])

    def stop(self, job_id: str) -> None:
        """Have a job stop now; calls under way are finished."""
        with self.lock:
            for run in self._all_runs[job_id]:
                run.stop_seconds = self.engine.now

    def throughput(self, job_id: str, since: float, until: float) -> list[float]:
        """MB/s of a job in each whole virtual second of an interval."""
        with self.lock:
            return self.log.per_second(job_id, since, until)

    def write_parameters(self, root: Path) -> int:
        """Bring the parameter files below a root up to date; how many changed. None do while nobody reaches them."""
        if not self.exporter_reachable:
            return 0
        return self._writers.setdefault(root, ParameterWriter(root)).write(self)

    # What may be done to it

    def start_migration(self, path: str, layout: Layout) -> Migration:
        """Have the mover move a file; ``finished`` of what this returns is done in virtual time."""
        with self.lock:
            settings = self.settings
            client = self.clients[settings.mover_client]
            migration = Migration(path, layout)
            actor = Actor(MOVER, 0, 0, client.settings.nid)
            ended = self.engine.spawn(migration.steps(client, actor, settings.mover_start_seconds))
            ended.then(lambda done: _pass_on(done, migration.finished))
            return migration

    def set_default_layout(self, directory: str, layout: Layout | None) -> None:
        """What ``lfs setstripe`` on a directory does: new files get it, those that are there keep theirs."""
        with self.lock:
            inode = self.namespace.lookup(directory)
            if not inode.is_directory:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
            self.placement.check(layout)
            inode.layout = layout
            inode.ctime = self.epoch
            mdt = self.mdts[inode.mdt_index]
            actor = Actor(SETSTRIPE, 0, 0, self.clients[self.settings.mover_client].settings.nid)
            mdt.changelog.add(RecordType.SETXATTR, self.epoch, inode.fid, actor, xattr_name="lustre.lov")
            mdt.tally(SETSTRIPE, "setattr", 900)

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

    def _random(self, name: str) -> Random:
        return Random(f"{self.settings.seed}/{name}")  # noqa: S311 - a model, not a secret


def _pass_on(done: Completion, to: Completion) -> None:
    if done.error is None:
        to.succeed()
    else:
        to.fail(done.error)


