"""tierd's own metrics: ordinary prometheus_client objects, made from the daemon's state when somebody scrapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from lustre import __version__
from tierd.act.claim import Hold, NoClaim
from tierd.act.gate import Gate
from tierd.act.undo import Undo
from tierd.config import Settings
from tierd.cycle.loop import Daemon
from tierd.policies import JUDGED
from tierd.reasons import Reason
from tierd.sense.ages import SourceState
from tierd.verify import throughput

Sources = Callable[[], Sequence[SourceState]]


PATIENCE_SECONDS = 1.0
"""So long a scrape waits for the cycle under way."""


@dataclass(frozen=True)
class Beside:
    """What metrics tell of things that stand beside the daemon."""

    fs: str = ""
    """Name of the file system, a label of all families; empty for none."""
    claim: Hold = field(default_factory=NoClaim)
    journal_bytes: Callable[[], int] = int
    positions: Callable[[], Mapping[str, int]] = dict
    """MDT to the last changelog record that was read."""


class DaemonCollector(Collector):
    """Reads the daemon between two cycles."""

    def __init__(self, daemon: Daemon, gate: Gate, undo: Undo, settings: Settings, lock: RLock,
                 sources: Sources = tuple, beside: Beside = Beside()) -> None:
        self._beside = beside
        self._kept: list[Metric] = []
        self._daemon = daemon
        self._gate = gate
        self._undo = undo
        self._settings = settings
        self._lock = lock
        self._sources = sources

    def collect(self) -> Iterator[Metric]:
        """All families; those of before while a cycle takes long, so that no scrape waits for a move."""
        if self._lock.acquire(timeout=PATIENCE_SECONDS):
            try:
                self._kept = [self._labelled(family) for family in (
                    *self._state(), *self._held(), *self._found(), *self._streams(), *self._done(), self._happened())]
            finally:
                self._lock.release()
        yield from self._kept

    def _labelled(self, family: Metric) -> Metric:
        """The family with the file system it is of."""
        if self._beside.fs:
            family.samples = [s._replace(labels={**s.labels, "fs": self._beside.fs}) for s in family.samples]
        return family

    def _held(self) -> Iterator[Metric]:
        """What holds acts back, and how much may be done."""
        yield GaugeMetricFamily("tierd_draining", "1 while nothing new is begun and the queue is finished.",
                                float(bool(self._gate.draining)))
        yield GaugeMetricFamily("tierd_claim_generation", "Generation of the claim on the file system; 0 while it is "
                                "not held, as in a dry run.", self._beside.claim.generation)
        yield GaugeMetricFamily("tierd_claim_refused", "1 while another tierd holds the claim: this one may not act.",
                                float("claim" in self._daemon.faults))
        yield GaugeMetricFamily("tierd_other_mover", "1 while somebody else moves files under a job id of ours: "
                                "nothing is moved and no act begun.", float("mover" in self._daemon.faults))
        files, size_bytes = self._gate.budget_left
        yield GaugeMetricFamily("tierd_budget_files", "Files that may be moved at once; refilled by the limits.", files)
        yield GaugeMetricFamily("tierd_budget_bytes", "Bytes that may be moved at once; below 0 after a large file.",
                                size_bytes)
        yield GaugeMetricFamily("tierd_waiting_moves_bytes", "Bytes of the files in the queue.",
                                self._gate.waiting_bytes)
        yield GaugeMetricFamily("tierd_journal_bytes", "Size of the journal.", self._beside.journal_bytes())
        yield GaugeMetricFamily("tierd_changelog_lag_seconds", "Age of the oldest changelog record of the last cycle, "
                                "when it was taken in.", self._daemon.tally.changelog_lag_seconds)
        position = GaugeMetricFamily("tierd_changelog_position", "Index of the last record taken in.", labels=("mdt",))
        for mdt, index in self._beside.positions().items():
            position.add_metric((mdt,), index)
        yield position

    def _state(self) -> Iterator[Metric]:
        tally = self._daemon.tally
        info = InfoMetricFamily("tierd_build", "Release of tierd.")
        info.add_metric((), {"version": __version__})
        yield info
        act = self._settings.act
        yield GaugeMetricFamily("tierd_dry_run", "1 while tierd changes nothing.", float(act.dry_run))
        yield GaugeMetricFamily("tierd_paused", "1 while acts are paused, by hand, by the pause file or by the "
                                "circuit breaker.",
                                float(bool(self._gate.paused or self._gate.stopped)))
        yield GaugeMetricFamily("tierd_held", "1 while nothing new is done: paused, or outside of the maintenance "
                                "windows.", float(bool(self._gate.held)))
        yield GaugeMetricFamily("tierd_breaker_open", "1 while the circuit breaker keeps acts from being done.",
                                float(bool(self._gate.paused) and self._gate.tripped))
        yield GaugeMetricFamily("tierd_last_cycle_timestamp_seconds", "When the last cycle ended.", tally.last_cycle_at)
        yield GaugeMetricFamily("tierd_cycle_duration_seconds", "How long the last cycle took.", tally.cycle_seconds)
        yield CounterMetricFamily("tierd_cycles", "Cycles since the start.", tally.cycles)
        yield CounterMetricFamily("tierd_changelog_records", "Changelog records taken in.", tally.records)
        blind = GaugeMetricFamily("tierd_source_blind", "1 while a source cannot be read; nothing is then done.",
                                  labels=("source",))
        for source in ("blind", "changelog"):
            blind.add_metric((("counters" if source == "blind" else source),), float(source in self._daemon.faults))
        yield blind
        age = GaugeMetricFamily("tierd_source_age_seconds", "How old what a source last told is, by its own account "
                                "where it gives one; +Inf before it told anything.", labels=("source",))
        limit = GaugeMetricFamily("tierd_source_age_limit_seconds", "How old it may be: beyond it nothing is done.",
                                  labels=("source",))
        stale = GaugeMetricFamily("tierd_source_stale", "1 while a source is too old or in trouble.",
                                  labels=("source",))
        for state in self._sources():
            age.add_metric((state.name,), state.age_seconds)
            limit.add_metric((state.name,), state.limit_seconds)
            stale.add_metric((state.name,), float(state.stale))
        yield from (age, limit, stale)

    def _found(self) -> Iterator[Metric]:
        tally = self._daemon.tally
        found = CounterMetricFamily("tierd_findings", "Findings that began.", labels=("kind",))
        for kind in self._kinds():
            found.add_metric((kind,), tally.found[kind])
        yield found
        active = GaugeMetricFamily("tierd_active_findings", "Findings that hold now.", labels=("kind",))
        slowdown = GaugeMetricFamily("tierd_interference_slowdown_ratio", "How many times slower a stream is than "
                                     "before its neighbour came, by target.", labels=("target", "aggressor", "victim"))
        for kind in self._kinds():
            active.add_metric((kind,), sum(f.kind == kind for f in self._daemon.findings))
        for finding in self._daemon.findings:
            for target in finding.targets:
                if finding.kind in JUDGED:
                    slowdown.add_metric((target, finding.aggressor, finding.victim), finding.evidence["slowdown"])
        yield active
        yield slowdown

    def _kinds(self) -> tuple[str, ...]:
        """All kinds of findings there may be, so that none is missing before its first."""
        return ("noisy-neighbour", "shared-bandwidth", *(c.detector.name for c in self._settings.detect))

    def _streams(self) -> Iterator[Metric]:
        """Of streams in findings and in cases: what they had, and what they have."""
        pairs = {(f.victim, f.aggressor): f for f in (*(c.finding for c in self._daemon.cases),
                                                     *self._daemon.findings) if f.kind in JUDGED}
        usual = GaugeMetricFamily("tierd_victim_usual_bytes_per_second", "Throughput of a stream before its neighbour "
                                  "came: what acts are expected to give back.", labels=("victim", "aggressor"))
        now = GaugeMetricFamily("tierd_victim_bytes_per_second", "Throughput of the stream in the latest window.",
                                labels=("victim", "aggressor"))
        windows = self._daemon.windows
        for (victim, aggressor), finding in pairs.items():
            usual.add_metric((victim, aggressor), finding.evidence["victim_usual_bytes_per_second"])
            if windows:
                now.add_metric((victim, aggressor), throughput(windows[-1], victim))
        yield usual
        yield now

    def _happened(self) -> Metric:
        """Zero from the start, so that the first time is a change."""
        when = GaugeMetricFamily("tierd_last_event_timestamp_seconds", "When something of this kind last happened; "
                                 "0 if it has not.", labels=("event",))
        tally, last = self._daemon.tally, self._gate.last
        for event, at in (
            ("finding", max(tally.found_at.values(), default=0.0)),
            ("default-layout", last.get(("set-default-layout", "done"), 0.0)),
            ("move", last.get(("migrate", "done"), 0.0)),
            ("dry-run", max(last.get((kind, "dry-run"), 0.0) for kind in ("set-default-layout", "migrate"))),
            ("failure", max(last.get((kind, "failed"), 0.0) for kind in ("set-default-layout", "migrate"))),
            ("undo", self._undo.undone_at),
        ):
            when.add_metric((event,), at)
        return when

    def _done(self) -> Iterator[Metric]:
        tally = self._daemon.tally
        moves = CounterMetricFamily("tierd_moves", "Files whose turn came, by how it went.", labels=("outcome",))
        defaults = CounterMetricFamily("tierd_default_layouts", "Default layouts of directories, by how it went.",
                                       labels=("outcome",))
        for (kind, result), count in sorted(self._gate.outcomes.items()):
            (moves if kind == "migrate" else defaults).add_metric((result,), count)
        yield moves
        yield defaults
        yield CounterMetricFamily("tierd_moved_bytes", "Bytes of the files moved.", self._gate.moved_bytes)
        yield GaugeMetricFamily("tierd_waiting_moves", "Moves in the queue.", self._gate.waiting)
        verdicts = CounterMetricFamily("tierd_judgements", "Acts judged by the throughput of the victim.",
                                       labels=("verdict",))
        for verdict in ("helped", "did-not-help", "harmed-others", "cannot-tell"):
            verdicts.add_metric((verdict,), tally.verdicts[verdict])
        yield verdicts
        refusals = CounterMetricFamily("tierd_refusals", "Plans or parts of them that were refused.",
                                       labels=("reason",))
        for reason in Reason:
            refusals.add_metric((reason,), tally.refusals[reason])
        yield refusals
        yield CounterMetricFamily("tierd_undone", "Acts taken back.", self._undo.undone)
        gained = GaugeMetricFamily("tierd_won_back_ratio", "Part of a stream's loss that the last judged act won back.",
                                   labels=("victim",))
        for victim, part in sorted(tally.gained.items()):
            gained.add_metric((victim,), part)
        yield gained
        expected = GaugeMetricFamily("tierd_expected_gain_bytes_per_second", "What the last judged act could give back "
                                     "to a stream: what it lost.", labels=("victim",))
        measured = GaugeMetricFamily("tierd_measured_gain_bytes_per_second", "What the last judged act gave back to a "
                                     "stream.", labels=("victim",))
        for victim, (could, did) in sorted(tally.gains.items()):
            expected.add_metric((victim,), could)
            measured.add_metric((victim,), did)
        yield from (expected, measured)


def registry(daemon: Daemon, gate: Gate, undo: Undo, settings: Settings, lock: RLock,
             sources: Sources = tuple, beside: Beside = Beside()) -> CollectorRegistry:
    """A registry with the daemon's metrics and those of the process."""
    made = CollectorRegistry()
    made.register(DaemonCollector(daemon, gate, undo, settings, lock, sources, beside))
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=made)
    return made
