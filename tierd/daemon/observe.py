"""One observation: counters and changelog records read, and findings detected in them.

The observer marks sources that are stale or inconsistent. After a start it asks Prometheus once for the history of the
jobs at work, so that their usual throughput is known without waiting.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from tierd.clock import Clock
from tierd.daemon.log import FindingLog
from tierd.daemon.node import AskHistory, DaemonParts
from tierd.daemon.remediation import RemediationStore
from tierd.detect.gain import StreamTrack
from tierd.engine import CycleFindings, Engine
from tierd.model import Finding, Window
from tierd.sense.changelogs.ingest import ChangelogIngest
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.facts import FactsCollector
from tierd.sense.metadata import MetadataMeter, UnlistedJobs
from tierd.sense.own_moves import OwnJobs
from tierd.sense.readings import IMPLAUSIBLE, UNKNOWN_RECOVERY, Reading, is_ost, window
from tierd.text import count_of, first_names

log = logging.getLogger("tierd.daemon")
MAX_TRIES = 5
RETRY_SECONDS = 60.0


class HistoryLoader:
    """Asks Prometheus for the history, a few times. Without an answer, tierd learns baselines from its own readings."""

    def __init__(self, ask: AskHistory | None, engine: Engine, clock: Clock) -> None:
        self._ask = ask
        self._engine = engine
        self._clock = clock
        self._begun: float | None = None
        self._next_at = 0.0
        self._tries = 0

    def __call__(self, seen: Window) -> None:
        """Ask if a try is due. Call it before detection uses the window."""
        if self._ask is None or self._clock.now() < self._next_at:
            return
        self._begun = seen.start if self._begun is None else self._begun
        self._tries += 1
        self._next_at = self._clock.now() + RETRY_SECONDS
        try:
            learned = self._ask(seen, self._begun)
        except OSError as error:
            log.warning("no history from Prometheus: %s; tierd learns baselines from its own readings", error)
            if self._tries >= MAX_TRIES:
                self._ask = None
            return
        self._ask = None
        self._engine.use_history(learned.windows, learned.jobs)
        log.info("learned from Prometheus' history: %s of %s", count_of(len(learned.windows), "window"),
                 count_of(len(learned.jobs), "job"))


LONG_CYCLES, LONG_SECONDS = 10.0, 60.0
"""A window longer than both (in cycles and in seconds) is a gap."""
FEW_COUNTERS, SAMPLED_COUNTERS = 4, 100
"""Counters of jobs: this few may all end at once; at most this many are compared."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of one reading of the counters."""

    time: float
    window: Window | None
    """None if the counters were not read again since the last observation."""


class Observer:
    """Compares each reading of the counters with the reading before.

    It keeps only the last reading: on a large file system one reading takes as much memory as the whole history.
    """

    def __init__(self, parts: DaemonParts, ingest: ChangelogIngest, finding_log: FindingLog,
                 metadata: MetadataMeter) -> None:
        self._source, self._media, self._metadata = parts.source, parts.media, metadata
        self._unnamed, self._clock = parts.node.unnamed, parts.node.clock
        self._ingest, self._log, self._counters = ingest, finding_log, finding_log.counters
        self._cycle_seconds = parts.settings.sense.cycle_seconds
        self._last: Reading | None = None
        self.blind = False
        """Whether the last reading failed."""

    def read(self) -> Observation | None:
        """Read the counters. None if there is no earlier reading to compare with."""
        try:
            reading = self._source.reading()
        except OSError as error:
            self._metadata.forget()
            self._last, self.blind = None, True  # changes across a gap are not compared
            self._log.fault("blind", f"blind: {error}; tierd does nothing until it can read the counters again")
            return None
        self.blind = False
        self._log.fault("blind", "")
        self._media.learn_devices(reading.is_flash)
        self._metadata.learn(reading)
        self._log.fault("media", self._media.problem)
        self._log_missing_targets(reading)
        last, self._last = self._last, reading
        if last is None:
            return None
        self._log_clock_jump(reading.time - last.time)
        if reading.time < last.time:
            return None
        if reading.time == last.time:  # Prometheus has not scraped again; queued acts continue
            return Observation(reading.time, None)
        self._log.fault("jobs", "most job IDs changed since the last reading: tierd cannot compare the "
                            "readings" if few_jobs_left(last, reading) else "")
        seen = window(last, reading)
        lying = sorted(t for t, condition in seen.conditions.items() if condition == IMPLAUSIBLE)
        self._log.fault("counters", f"{count_of(len(lying), 'target')} ({first_names(lying)}): "
                            "implausible counters; tierd finds nothing there" if lying else "")
        return Observation(reading.time, seen)

    def take_in_records(self, until: float) -> None:
        """Read the changelog records since the last call. Catch up with missed ones until that time."""
        now = self._clock.now()
        missed = self._ingest.take_in(self._source.records(), until)
        self._counters.records += self._ingest.table.records_read
        self._counters.changelog_lag_seconds = max(0.0, now - self._ingest.table.oldest_time)
        self._log.fault("changelog", missed and f"{missed}; tierd reports findings and begins nothing new")
        if self._ingest.gap_begun:
            log.warning("%s", self._ingest.gap_begun)
        if self._ingest.gap_closed:
            log.info("%s", self._ingest.gap_closed)

    def _log_missing_targets(self, reading: Reading) -> None:
        """Log which targets are left out, and which counters no target reports."""
        self._log.fault("names", "" if reading.jobs else self._unnamed())
        self._log.fault("metadata", "" if not all(map(is_ost, reading.targets)) else
                            "no metadata target is seen: the jobs that work on small files are not known. Add the "
                            "metadata servers to the sources")
        unseen = sorted(t for t, condition in reading.conditions.items() if condition == UNKNOWN_RECOVERY)
        self._log.fault("recovery", f"{count_of(len(unseen), 'target')} ({first_names(unseen)}): recovery status "
                            "not known; tierd finds nothing there" if unseen else "")
        unhealthy = {t: why for t, why in reading.conditions.items() if why != UNKNOWN_RECOVERY}
        self._log.fault(
            "targets",
            f"{first_names(sorted(unhealthy))}: {', '.join(sorted(set(unhealthy.values())))}; tierd finds nothing there"
            if unhealthy
            else "",
        )

    def _log_clock_jump(self, passed: float) -> None:
        """Log a jump of the clock, after which detectors have little or no history to compare with."""
        if passed < -self._cycle_seconds:
            what = f"the clock went back by {-passed:.0f} s"
        elif passed > max(LONG_CYCLES * self._cycle_seconds, LONG_SECONDS):
            what = f"{passed:.0f} s passed between two readings: a clock was set, or a cycle took long"
        else:
            return
        log.warning("%s. tierd may have to learn baselines again", what)


def few_jobs_left(before: Reading, now: Reading) -> bool:
    """Whether less than a quarter of the earlier counters are left, because an exporter lost or renamed them."""
    sample = list(islice(before.jobs, 0, None, max(1, len(before.jobs) // SAMPLED_COUNTERS)))
    sample = [key for key in sample if key[0] in now.targets]
    return len(sample) > FEW_COUNTERS and sum(key in now.jobs for key in sample) < len(sample) / 4


class Detection:
    """Runs the engine, and holds its last findings."""

    def __init__(self, parts: DaemonParts, engine: Engine, table: ActivityTable, facts: FactsCollector, *,
                 finding_log: FindingLog, store: RemediationStore) -> None:
        self._engine, self._table, self._facts = engine, table, facts
        self._log, self._store = finding_log, store
        self._learn = HistoryLoader(parts.history, engine, parts.node.clock)
        self._own_work = OwnJobs(parts.settings.own_jobs, parts.journal.moved_since)
        self._policies = tuple(configured.policy.name for configured in parts.settings.policies)
        self._unlisted = UnlistedJobs(table.operations_of)
        self.windows: Sequence[Window] = engine.windows
        """The history as of the last reading, oldest window first."""
        self.tracks: Mapping[str, StreamTrack] = engine.tracks
        self.findings: tuple[Finding, ...] = ()
        self.fresh: tuple[Finding, ...] = ()
        """Findings of the last cycle; empty while tierd is blind."""
        self.newest: Window | None = None
        """The newest window, with all loads."""

    def run_cycle(self, seen: Window, now: float) -> None:
        """Detect findings in a window, and log those that began or ended."""
        self._learn(seen)
        self.newest = seen = self._unlisted.completed(seen, self._table.oldest_time)
        whose = self._own_work(seen)
        self._log.fault("mover", whose.problem)
        with self._store.lock:
            self._engine.acted_for = {case.finding.victim for case in self._store.open()}
        result = self._engine.run_cycle(seen, self._table.of_job, lambda: self._facts(now), whose.own_jobs,
                                     self._table.counts_of_job)
        for what in ("room", "clients"):
            self._log.fault(what, self._facts.faults.get(what, ""))
        for name in self._policies:
            failed = self._engine.policy_faults.get(name, "")
            self._log.fault(f"detector {name}",
                                failed and f"detector {name} failed and finds nothing: {failed}")
        self.windows, self.tracks = self._engine.windows, self._engine.tracks
        with self._store.lock, self._log.at_once():
            self._log_changes(result, now)
        self.findings = self.fresh = result.findings

    def _log_changes(self, result: CycleFindings, now: float) -> None:
        for finding in result.begun:
            case = self._store.get(finding.key)
            if case is None or case.closed:
                self._log.begun(finding)
            else:
                case.finding_began()
                self._log.began_again(case.number, case.finding)
        for finding in result.findings:
            case = self._store.get(finding.key)
            if case is None or case.closed:
                self._log.record_wider(finding)
        for finding in result.ended:
            case = self._store.get(finding.key)
            self._log.ended(finding, now, acted_on=case is not None)
            if case is not None:
                case.finding_ended(now)
