"""The recorded test bed with tierd at work on it, in virtual time, for tests."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lustre.changelog.record import Record
from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.jobs import Job
from simulator.jobs.large_files import StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.settings import ClusterSettings, recorded_test_bed
from tests.tierd.logged import logged
from tierd.config.settings import Settings
from tierd.sense.changelogs.tallies import Tally
from tierd.sense.readings import Reading
from tierd.sense.sources import LiveSource
from tierd.simulation import world as simulation

MIB = 1 << 20
STREAM = StreamingWriter(job_id="ior_stream.1002", path="/proj/flow/stream.dat")
NOISE = SmallFileWriter(start_seconds=30.0)
HDD = Layout((Component(pool="hdd"),), composite=False)
COVERING = Layout((Component(0, 2 * MIB, "flash"), Component(2 * MIB, None, "hdd")))


def without_user_xattr() -> ClusterSettings:
    """The recorded test bed, mounted as clients of 2.17 are by default."""
    bed = recorded_test_bed()
    return replace(bed, clients=tuple(replace(mount, user_xattr=False) for mount in bed.clients))


class Faulty(LiveSource):
    """A source that fails while ``fault`` is set."""

    def __init__(self, near: LiveSource) -> None:
        self._near = near
        self.fault: OSError | None = None

    def reading(self) -> Reading:
        if self.fault is not None:
            raise self.fault
        return self._near.reading()

    def records(self) -> Iterable[Sequence[Record] | Tally]:
        return self._near.records()


@dataclass
class World(simulation.World):
    """With its log."""

    said: list[str] = field(default_factory=logged)

    def run_until_said(self, words: str, before: float) -> str:
        """The first sentence that has these words, which must be before that time."""
        while not (found := [sentence for sentence in self.said if words in sentence]):
            self.run(self.cluster.now + 5)
            assert self.cluster.now < before, self.said
        return found[0]


def world(tmp_path: Path, jobs: Sequence[Job] = (STREAM, NOISE), settings: Settings | None = None,
          dry_run: bool = False, hook: simulation.SourceHook | None = None,
          model: type[Cluster] = FluidCluster, bed: ClusterSettings | None = None) -> World:
    """The recorded test bed, with these jobs. Flows take a third of the time of single requests (``model=Cluster``)."""
    said = logged()
    cluster = model(bed or recorded_test_bed(), jobs)
    at = simulation.wire(cluster, settings or Settings(), tmp_path, dry_run, hook)
    return World(at.cluster, at.filesystem, at.source, at.gate, at.undo, at.journal, at.daemon, said)
