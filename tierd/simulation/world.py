"""tierd over a simulated cluster in virtual time: the daemon's own parts, with a clock that is the cluster's."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lustre.parameters import Roots, Tree
from simulator.calls import Calls
from simulator.cluster import Cluster
from simulator.concurrently import Concurrently
from simulator.filesystem import SimulatedFilesystem
from tierd.act.breaker import Breaker
from tierd.act.budget import Budget
from tierd.act.consent import Consent
from tierd.act.gate import Gate
from tierd.act.guard import SiteGuard
from tierd.act.hold import Hold, NoClaim
from tierd.act.journal import Journal
from tierd.act.port import PortMover
from tierd.act.undo import Undo
from tierd.config import Settings
from tierd.cycle.learning import AskHistory
from tierd.cycle.looking import Source
from tierd.cycle.loop import ACT_SECONDS, FACTS_SECONDS, Daemon
from tierd.cycle.telling import Say
from tierd.sense import local
from tierd.sense.follow import Follower
from tierd.sense.live import LiveSource
from tierd.sense.readings import Reading
from tierd.sense.recording import Recording

IN_MEMORY = Path("/dev/shm")  # noqa: S108 -- a folder of its own below it, as tempfile makes it
"""Where the files of a run go if there is such a place: they are written and read hundreds of times."""


class VirtualClock:
    """The cluster's time; waiting advances it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def now(self) -> float:
        """Epoch seconds of the cluster."""
        return self._cluster.epoch

    def wait(self, seconds: float) -> bool:
        """Let the cluster live so long."""
        self._cluster.advance(seconds)
        return False


def parameter_files(cluster: Cluster, root: Path) -> Callable[[], Reading]:
    """Readings by way of the parameter files the cluster's servers write. Raises OSError while nobody reaches them.

    Each takes virtual time, as the cluster's costs say.
    """
    calls = Calls(cluster, cluster.settings.costs, cluster.wait_for)
    tree = Tree(Roots.of(root / "proc", root / "sys"))

    def read() -> Reading:
        if not cluster.exporter_reachable:
            raise ConnectionError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED), "exporter")
        calls.look()
        cluster.write_parameters(root, clients=False, shared=False)
        return local.reading(tree, cluster.epoch)

    return read


@dataclass
class World:
    """A cluster with tierd at work on it."""

    cluster: Cluster
    filesystem: SimulatedFilesystem
    source: Source
    gate: Gate
    undo: Undo
    journal: Journal
    daemon: Daemon

    def run(self, until: float, cycle_seconds: float = 5.0) -> None:
        """Cycle until a virtual time."""
        while self.cluster.now < until:
            self.cluster.advance(min(cycle_seconds, until - self.cluster.now))
            self.daemon.cycle(cycle_seconds / 2)

    def start(self, at_once: Concurrently, cycle_seconds: float = 5.0) -> None:
        """Let the activities of the daemon go on beside each other, as they do on a real node."""
        daemon = self.daemon
        daemon.gather_facts_beforehand()
        at_once.every("records", cycle_seconds, daemon.take_in_records)
        at_once.every("observe", cycle_seconds, daemon.observe)
        at_once.every("facts", FACTS_SECONDS, daemon.gather_facts)
        at_once.every("plan", cycle_seconds, daemon.plan)
        at_once.every("default-layouts", ACT_SECONDS, daemon.set_defaults)
        at_once.every("move", ACT_SECONDS, lambda: daemon.move(cycle_seconds / 2))
        at_once.every("judge", cycle_seconds, daemon.judge)

    def rate(self, job: str, since: float, until: float) -> float:
        """Mean MB/s of a job."""
        rates = self.cluster.throughput(job, since, until)
        return sum(rates) / len(rates) if rates else 0.0


Hook = Callable[[LiveSource, VirtualClock], Source]
"""Puts something between the cluster and tierd: an exporter, a fault."""


def wired(cluster: Cluster, settings: Settings, say: Say, folder: Path, dry_run: bool = False,
          hook: Hook | None = None, claim: Hold | None = None, history: AskHistory | None = None,
          executor: Executor | None = None) -> World:
    """Wire tierd to a cluster; parameter files and journal lie in ``folder``."""
    filesystem = SimulatedFilesystem(cluster)
    clock = VirtualClock(cluster)
    journal = Journal(folder / "journal.sqlite")
    mover = PortMover(filesystem)
    guard = SiteGuard(settings, Consent(filesystem, clock), claim or NoClaim(), clock)
    gate = Gate(filesystem, mover, Budget(settings.limits, clock.now()), Breaker(settings.breaker), journal, clock,
                dry_run, guard, executor=executor)
    undo = Undo(filesystem, mover, journal, clock, guard.hindrance)
    recording = Recording(filesystem.fsname, settings.sense.readers, clock)
    follower = Follower(filesystem.changelog, [mdt.short_name for mdt in cluster.mdts], recording=recording)
    near = LiveSource(parameter_files(cluster, folder / "node"), follower, recording)
    source = hook(near, clock) if hook else near
    daemon = Daemon(source, filesystem, gate, undo, journal, clock, settings, say, claim, history=history,
                    executor=executor)
    return World(cluster, filesystem, source, gate, undo, journal, daemon)


@contextmanager
def world(cluster: Cluster, settings: Settings, say: Say, dry_run: bool = False,
          executor: Executor | None = None) -> Iterator[World]:
    """The same in a temporary folder, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tierd-simulate-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        at = wired(cluster, settings, say, Path(folder), dry_run, executor=executor)
        try:
            yield at
        finally:
            at.journal.close()
