"""tierd over the simulator in virtual time: the same wiring as the demonstration, with a clock that only tests move."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lustre import changelog
from lustre.changelog import Record
from lustre.layout import Component, Layout
from lustre.tree import Roots, Tree
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.jobs import Job, SmallFileWriter, StreamingWriter
from simulator.settings import recorded_test_bed
from tierd.act.budget import Budget
from tierd.act.gate import Gate
from tierd.act.journal import Journal
from tierd.config import Settings
from tierd.loop import Daemon, Source
from tierd.sense import local
from tierd.sense.readings import Reading

MIB = 1 << 20
STREAM = StreamingWriter(job_id="ior_stream.1002", path="/proj/flow/stream.dat")
NOISE = SmallFileWriter(start_seconds=30.0)
HDD = Layout((Component(pool="hdd"),), composite=False)
COVERING = Layout((Component(0, 2 * MIB, "flash"), Component(2 * MIB, None, "hdd")))


class VirtualClock:
    """The cluster's time."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def now(self) -> float:
        return self._cluster.epoch

    def wait(self, seconds: float) -> bool:
        self._cluster.advance(seconds)
        return False


class LocalSource:
    """Reads the parameter files the cluster writes, and its changelogs."""

    def __init__(self, cluster: Cluster, filesystem: SimulatedFilesystem, root: Path) -> None:
        self._cluster = cluster
        self.filesystem = filesystem
        self._root = root
        self._heard = {mdt.short_name: 0 for mdt in cluster.mdts}
        self.fault: OSError | None = None

    def reading(self) -> Reading:
        if self.fault is not None:
            raise self.fault
        self._cluster.write_parameters(self._root)
        return local.reading(Tree(Roots.of(self._root / "proc", self._root / "sys")), self._cluster.epoch)

    def records(self) -> Iterator[Record]:
        for mdt, heard in self._heard.items():
            records, _ = changelog.decode(self.filesystem.changelog(mdt, heard))
            if records:
                self._heard[mdt] = records[-1].index
            yield from records


@dataclass
class World:
    """A cluster with tierd at work on it."""

    cluster: Cluster
    filesystem: SimulatedFilesystem
    near: LocalSource
    source: Source
    gate: Gate
    journal: Journal
    daemon: Daemon
    said: list[str] = field(default_factory=list)

    def run(self, until: float, cycle_seconds: float = 5.0) -> None:
        """Cycle until a virtual time."""
        while self.cluster.now < until:
            self.cluster.advance(cycle_seconds)
            self.daemon.cycle(self.cluster.epoch + cycle_seconds / 2)

    def rate(self, job: str, since: float, until: float) -> float:
        """Mean MB/s of a job."""
        rates = self.cluster.throughput(job, since, until)
        return sum(rates) / len(rates)


def world(tmp_path: Path, jobs: Sequence[Job] = (STREAM, NOISE), settings: Settings | None = None,
          dry_run: bool = False, source: Callable[[LocalSource, VirtualClock], Source] | None = None) -> World:
    """The recorded test bed, with these jobs."""
    settings = settings or Settings()
    cluster = Cluster(replace(recorded_test_bed(), epoch_seconds=1_795_000_000), jobs)
    filesystem = SimulatedFilesystem(cluster)
    clock = VirtualClock(cluster)
    journal = Journal(tmp_path / "journal.sqlite")
    gate = Gate(filesystem, Budget(settings.limits, clock.now()), journal, clock, dry_run)
    near = LocalSource(cluster, filesystem, tmp_path / "node")
    chosen = source(near, clock) if source else near
    said: list[str] = []
    daemon = Daemon(chosen, filesystem, gate, journal, clock, settings, said.append)
    return World(cluster, filesystem, near, chosen, gate, journal, daemon, said)
