"""tierd's own metrics: prometheus_client objects, made from the daemon's state at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tierd.act.gate import Gate
from tierd.act.undo import Undo
from tierd.config import Settings
from tierd.cycle.loop import Daemon
from tierd.metrics.done import done, happened, judged
from tierd.metrics.found import found, streams
from tierd.metrics.sources import heard
from tierd.metrics.state import Beside, held, state
from tierd.sense.ages import SourceState

Sources = Callable[[], Sequence[SourceState]]


class DaemonCollector(Collector):
    """Reads the state of the running daemon."""

    def __init__(self, daemon: Daemon, gate: Gate, undo: Undo, settings: Settings,
                 sources: Sources = tuple, beside: Beside | None = None) -> None:
        self._beside = beside or Beside()
        self._daemon = daemon
        self._gate = gate
        self._undo = undo
        self._settings = settings
        self._sources = sources

    def collect(self) -> Iterator[Metric]:
        """All families, read without waiting for any activity."""
        for family in self._families():
            yield self._labelled(family)

    def _families(self) -> Iterator[Metric]:
        daemon, gate, undo, settings = self._daemon, self._gate, self._undo, self._settings
        yield from state(daemon, gate, settings)
        yield from heard(daemon, self._sources())
        yield from held(daemon, gate, self._beside)
        yield from found(daemon, settings)
        yield from streams(daemon)
        yield from done(gate)
        yield from judged(daemon.tally, undo)
        yield happened(daemon, gate, undo)

    def _labelled(self, family: Metric) -> Metric:
        """The family with the label of the file system."""
        if self._beside.fs:
            family.samples = [s._replace(labels={**s.labels, "fs": self._beside.fs}) for s in family.samples]
        return family


def registry(daemon: Daemon, gate: Gate, undo: Undo, settings: Settings, sources: Sources = tuple,
             beside: Beside | None = None) -> CollectorRegistry:
    """A registry with the daemon's metrics and those of the process."""
    made = CollectorRegistry()
    made.register(DaemonCollector(daemon, gate, undo, settings, sources, beside))
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=made)
    return made
