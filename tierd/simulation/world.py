"""tierd over a simulated cluster in virtual time: the parts of the daemon, with the clock of the cluster."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from lustre.parameters import Roots, Tree
from simulator import releases
from simulator.cluster import Cluster
from simulator.filesystem import Calls, SimulatedFilesystem, SimulatedObjectCreation
from simulator.parameters import write_parameters
from simulator.scheduler import VirtualScheduler
from tierd.act.claim import FilesystemClaim
from tierd.act.gate import Gate
from tierd.act.journal.writer import Journal
from tierd.act.movers.inspection import PortMover
from tierd.act.undo import Undo
from tierd.config.settings import Settings
from tierd.daemon.loop import ACT_SECONDS, FACTS_SECONDS, Daemon
from tierd.daemon.node import AskHistory, DaemonParts, Node
from tierd.daemon.service import build_gate
from tierd.model import MetadataSpace, SiteFacts
from tierd.sense import parameters
from tierd.sense.changelogs.follow import Follower
from tierd.sense.changelogs.recording import RecordingCheck
from tierd.sense.exporters import Answer, ExporterReadings
from tierd.sense.http_client import SourceError
from tierd.sense.nodes import Counters, DiskPoller, PoolOfTarget, read_disks
from tierd.sense.readings import Reading
from tierd.sense.sources import LiveSource
from tierd.sense.space import PoolMedia

IN_MEMORY = Path("/dev/shm")  # noqa: S108 -- a folder of its own below it, as tempfile makes it
"""Directory in memory for the files of a run, if it exists. They are written and read hundreds of times."""


class VirtualClock:
    """A clock with the time of a cluster. Waiting advances it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def now(self) -> float:
        return self._cluster.epoch

    def wait(self, seconds: float) -> bool:
        self._cluster.advance(seconds)
        return False


def parameter_files(cluster: Cluster, root: Path) -> Callable[[], Reading]:
    """Make a reader of the servers' parameter files. It raises OSError while the exporter is unreachable.

    Each reading takes virtual time by the costs of the cluster.
    """
    calls = Calls(cluster, cluster.settings.costs)
    tree = Tree(Roots.of(root / "proc", root / "sys"))

    def counters() -> Reading:
        write_parameters(cluster, root, clients=False)
        return parameters.reading(tree, cluster.epoch, lambda: cluster.epoch)

    loaded = ExporterReadings(lambda: ("exporter",), LoadedExporter(cluster, counters), VirtualClock(cluster))

    def read() -> Reading:
        if not cluster.exporter_reachable:
            raise ConnectionError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED), "exporter")
        calls.read_counters()
        return replace(counters(), stamps={}) if cluster.exporter_load is None else loaded()

    return read


def disks_of_servers(cluster: Cluster, root: Path, _: PoolOfTarget) -> dict[str, Counters]:
    write_parameters(cluster, root, clients=False)
    return read_disks(Tree(Roots.of(root / "proc", root / "sys")))


WAIT_SECONDS = 4.0
"""Time that a cycle waits for an exporter: ``SenseSettings.wait_seconds`` by default."""


class LoadedExporter:
    """The exporter of all servers, which takes its time as ``ExporterLoad`` says. Its answers have honest times."""

    def __init__(self, cluster: Cluster, counters: Callable[[], Reading]) -> None:
        self._cluster = cluster
        self._counters = counters
        self._random = cluster.random("exporter")
        self._asked: float | None = None
        """When the request in progress was sent."""
        self._read: Reading | None = None
        """The last counters that were read."""
        self._answer: Answer | None = None
        """An answer that has come."""

    def __call__(self, urls: Sequence[str]) -> tuple[Mapping[str, Answer], Mapping[str, SourceError]]:
        """The answer, if it comes within ``WAIT_SECONDS``, or the one to the request before."""
        (url,) = urls
        late, self._answer = self._answer, None
        if self._asked is None:
            self._begin()
        until = self._cluster.now + WAIT_SECONDS
        while self._asked is not None and self._cluster.now < until:
            self._cluster.advance(min(0.1, until - self._cluster.now))
        answer, self._answer = self._answer or late, None
        return ({}, {url: SourceError(f"{url}: no answer")}) if answer is None else ({url: answer}, {})

    def _begin(self) -> None:
        load, engine = self._cluster.exporter_load, self._cluster.engine
        assert load is not None
        self._asked = self._cluster.epoch
        seconds = self._random.uniform(load.shortest_seconds, load.longest_seconds)
        if self._random.random() >= load.doubled_share or self._read is None:
            engine.after(seconds * self._random.random(), self._take)
        engine.after(seconds, self._end, self._random.random() >= load.lost_share)

    def _take(self) -> None:
        self._cluster.about_to_change()
        self._read = self._counters()

    def _end(self, arrives: bool) -> None:
        if arrives and self._asked is not None and self._read is not None:
            self._answer = Answer(self._read, self._asked, self._cluster.epoch)
        self._asked = None


@dataclass
class World:
    """A cluster on which tierd runs."""

    cluster: Cluster
    filesystem: SimulatedFilesystem
    source: LiveSource
    gate: Gate
    undo: Undo
    journal: Journal
    daemon: Daemon

    def run(self, until: float, cycle_seconds: float = 5.0) -> None:
        while self.cluster.now < until:
            self.cluster.advance(min(cycle_seconds, until - self.cluster.now))
            self.daemon.cycle(cycle_seconds / 2)

    def start(self, scheduler: VirtualScheduler, cycle_seconds: float = 5.0) -> None:
        """Start the activities of the daemon, which run concurrently as on a real node."""
        daemon = self.daemon
        planning = scheduler.spawn("plan", daemon.plan)

        def observe() -> None:
            nonlocal planning
            daemon.observe()
            if planning.finished.done:
                planning = scheduler.spawn("plan", daemon.plan)

        daemon.facts.in_background = True
        scheduler.every("records", cycle_seconds, daemon.take_in_records)
        scheduler.every("observe", cycle_seconds, observe)
        scheduler.every("facts", FACTS_SECONDS, lambda: daemon.facts.gather(daemon.parts.node.clock.now()),
                        after_end=True)
        scheduler.every("default-layouts", ACT_SECONDS, daemon.set_defaults)
        scheduler.every("move", ACT_SECONDS, lambda: daemon.move(cycle_seconds / 2))
        scheduler.every("judge", cycle_seconds, daemon.judge)

    def rate(self, job: str, since: float, until: float) -> float:
        rates = self.cluster.throughput(job, since, until)
        return sum(rates) / len(rates) if rates else 0.0


SourceHook = Callable[[LiveSource, VirtualClock], LiveSource]
"""Wraps the source of a cluster, with an exporter or a fault for instance."""


def wire(cluster: Cluster, settings: Settings, folder: Path, dry_run: bool = False,
          hook: SourceHook | None = None, claim: FilesystemClaim | None = None, history: AskHistory | None = None,
          executor: Executor | None = None) -> World:
    """Connect tierd to a cluster. Parameter files and journal are in ``folder``."""
    filesystem = SimulatedFilesystem(cluster)
    clock = VirtualClock(cluster)
    journal = Journal(folder / "journal.sqlite")
    recording = RecordingCheck(filesystem.fsname, settings.sense.readers)
    mdts = [mdt.short_name for mdt in cluster.mdts]
    follower = Follower(filesystem.changelog, mdts, clock, recording=recording)
    near = LiveSource(parameter_files(cluster, folder / "node"), follower, recording)
    node = Node(filesystem=filesystem, mover=PortMover(filesystem), read=near.reading, mdts=mdts, clock=clock,
                claim=claim or FilesystemClaim(), executor=executor, site_facts=partial(site_facts, cluster),
                creation=SimulatedObjectCreation(cluster),
                disks=DiskPoller({parameters.THIS_NODE: partial(disks_of_servers, cluster, folder / "node")}, clock))
    media = PoolMedia(settings.resolved_scopes.pool_pairs)
    act = replace(settings.act, dry_run=dry_run, pause_file="", windows=())  # virtual time has no weekdays
    gate, undo = build_gate(replace(settings, act=act), node, journal, media=media)
    source = hook(near, clock) if hook else near
    daemon = Daemon(DaemonParts(node=node, settings=settings, source=source, gate=gate, undo=undo, journal=journal,
                                media=media, history=history))
    return World(cluster, filesystem, source, gate, undo, journal=journal, daemon=daemon)


def site_facts(cluster: Cluster) -> SiteFacts:
    """What a mount shows: the room on the MDTs. Files of no bytes fill only inodes."""
    spaces = [MetadataSpace(mdt.settings.capacity.size_bytes, mdt.settings.capacity.size_bytes - stored,
                            mdt.settings.capacity.inodes, mdt.inodes_free)
              for mdt, stored in zip(cluster.mdts, cluster.data_on_mdts(), strict=True)]
    return SiteFacts(tuple(spaces), releases.number_of(cluster.settings.version))


@contextmanager
def world(cluster: Cluster, settings: Settings, executor: Executor) -> Iterator[World]:
    """Connect tierd to a cluster with a temporary folder, which is deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="tierd-simulate-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        at = wire(cluster, settings, Path(folder), executor=executor)
        try:
            yield at
        finally:
            at.journal.close()
