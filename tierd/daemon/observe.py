"""One observation: counters and changelog records read, and findings detected in them.

The observer marks sources that are stale or inconsistent. After a start it asks Prometheus once for the history of the
jobs at work, so that their usual throughput is known without waiting.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

from tierd.act.guard import JobCheck
from tierd.arrays import any_at_work
from tierd.clock import Clock
from tierd.daemon.log import FindingLog
from tierd.daemon.node import AskHistory, DaemonParts
from tierd.daemon.remediation import Remediation, RemediationStore
from tierd.detect.attribution import ACTIVE_SECONDS
from tierd.engine import CycleFindings, Engine
from tierd.loads import CLOSES, READS, Loads, NamespaceLoads
from tierd.model import Action, Finding, FindingKey, Window
from tierd.policies.registry import policies, policy_for
from tierd.policies.runner import faults_of
from tierd.refusal import Reason, Refusal
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.counters import CounterTable
from tierd.sense.facts import FactsCollector
from tierd.sense.metadata import MetadataMeter, UnlistedJobs
from tierd.sense.own_moves import OwnJobs
from tierd.sense.readings import IMPLAUSIBLE, UNKNOWN_RECOVERY, Reading, earlier_work, is_ost, window
from tierd.text import count_of, first_names, quoted

log = logging.getLogger("tierd.daemon")
MAX_TRIES = 5
RETRY_SECONDS = 60.0
LONG_CYCLES, LONG_SECONDS = 10.0, 60.0
"""A window longer than both (in cycles and in seconds) is a gap."""
FEW_COUNTERS, SAMPLED_COUNTERS = 4, 100
"""Counters of jobs: this few may all end at once; at most this many are compared."""


class Observer:
    """Compares each reading of the counters with the reading before, runs the engine, and holds its last findings.

    It keeps only the last reading: on a large file system one reading takes as much memory as the whole history.
    """

    def __init__(self, parts: DaemonParts, engine: Engine, table: ActivityTable, facts: FactsCollector, *,
                 finding_log: FindingLog, store: RemediationStore, metadata: MetadataMeter) -> None:
        self._source, self._media, self._metadata = parts.source, parts.media, metadata
        self._unnamed, self._clock, self._ask = parts.node.unnamed, parts.node.clock, parts.history
        self._engine, self._table, self._facts, self._store = engine, table, facts, store
        self._log, self._counters = finding_log, finding_log.counters
        self._cycle_seconds, self._history_seconds = parts.settings.sense.cycle_seconds, parts.settings.history_seconds
        self._asked_since, self._ask_at, self._tries = 0.0, 0.0, 0
        self._own_work = OwnJobs(parts.settings.own_jobs, parts.journal.moved_since)
        self._policies = tuple(configured.policy.name for configured in parts.settings.policies)
        self._unlisted = UnlistedJobs(table.operations_of)
        self._last: Reading | None = None
        self._lost: dict[str, float] = {}
        self.blind = False
        """Whether the last reading failed."""
        self.seen: float | None = None
        """Time of the last reading; None if there is no earlier one to compare it with."""
        self.windows: Sequence[Window] = engine.history.windows
        """The history as of the last reading, oldest window first."""
        self.findings: tuple[Finding, ...] = ()

    def read(self) -> Window | None:
        """Read the counters. None if there is no earlier reading to compare with, or nothing was read again since."""
        compared, self.seen = self.seen, None
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
        passed = reading.time - last.time
        self._log_clock_jump(passed)
        if not 0 < passed <= self._history_seconds:
            # Prometheus has not scraped again: queued acts continue. Or a clock was set, or the gap is too
            # long: the next reading is compared with this one
            self.seen = None if passed else compared
            return None
        self.seen = reading.time
        self._log.fault("jobs", "most job IDs changed since the last reading: tierd cannot compare the "
                            "readings" if few_jobs_left(last, reading) else "")
        seen = window(last, reading, self._lost)
        if not self.windows and last.targets == reading.targets:
            self._engine.use_earlier_work(earlier_work(last, seen))
        lying = sorted(t for t, condition in seen.conditions.items() if condition == IMPLAUSIBLE)
        self._log.fault("counters", f"{count_of(len(lying), 'target')} ({first_names(lying)}): "
                            "implausible counters; tierd finds nothing there" if lying else "")
        return seen

    def take_in_records(self) -> None:
        """Read the changelog records since the last call."""
        now = self._clock.now()
        missed = self._table.take_in(self._source.records(), now)
        self._counters.records += self._table.records_read
        self._counters.changelog_lag_seconds = max(0.0, now - self._table.oldest_time)
        self._log.fault("changelog", missed and f"{missed}; tierd reports findings and starts no new acts")

    def _log_missing_targets(self, reading: Reading) -> None:
        self._log.fault("names", "" if reading.jobs else self._unnamed())
        self._log.fault("metadata", "" if not all(map(is_ost, reading.targets)) else
                            "no metadata target is seen: the jobs that work on small files are not known. Add the "
                            "metadata servers to the sources")
        unseen = sorted(t for t, condition in reading.conditions.items() if condition == UNKNOWN_RECOVERY)
        self._log.fault("recovery", f"{count_of(len(unseen), 'target')} ({first_names(unseen)}): recovery status "
                            "not known; tierd finds nothing there" if unseen else "")
        unhealthy = {t: why for t, why in reading.conditions.items() if why != UNKNOWN_RECOVERY}
        self._log.fault("targets", f"{first_names(sorted(unhealthy))}: {', '.join(sorted(set(unhealthy.values())))}; "
                        "tierd finds nothing there" if unhealthy else "")

    def _log_clock_jump(self, passed: float) -> None:
        if passed < -self._cycle_seconds:
            what = f"the clock went back by {-passed:.0f} s"
        elif passed > max(LONG_CYCLES * self._cycle_seconds, LONG_SECONDS):
            what = f"{passed:.0f} s passed between two readings: a clock was set, or a cycle took long"
        else:
            return
        log.warning("%s. tierd may have to learn baselines again", what)

    def run_cycle(self, seen: Window) -> Window:
        """Detect findings in a window, and log those that began or ended. Returns the window with all loads."""
        if self._ask is not None and self._clock.now() >= self._ask_at:  # Prometheus may start later than tierd
            self._learn(self._ask, seen)
        seen = self._unlisted.completed(seen, self._table.oldest_time)
        self._table.note_shared(seen)
        own_jobs = self._own_work(seen)
        self._log.fault("mover", self._own_work.problem)
        with self._store.lock:
            self._engine.acted_for = {case.finding.victim for case in self._store.open()}
        result = self._engine.run_cycle(seen, self._table.of_job, lambda: self._facts(seen.end), own_jobs,
                                     self._table.counts_of_job)
        for what in ("room", "clients"):
            self._log.fault(what, self._facts.faults.get(what, ""))
        for name in dict.fromkeys((*policies(), *self._policies)):
            failed = faults_of(name)
            self._log.fault(f"policy {name}", failed and f"policy {name} failed: {failed}")
        self.windows = self._engine.history.windows
        self._store.device_time = self._engine.device_time
        with self._store.lock, self._log.at_once():
            self._log_changes(result, seen.end)
        self.findings = result.findings
        return seen

    def _learn(self, ask: AskHistory, seen: Window) -> None:
        """Ask Prometheus for the history, a few times. Without an answer, tierd learns from its own readings."""
        self._tries += 1
        self._asked_since = self._asked_since or seen.start
        self._ask_at = self._clock.now() + RETRY_SECONDS
        try:
            learned = ask(seen, self._asked_since)
        except OSError as error:
            log.warning("no history from Prometheus: %s; tierd learns baselines from its own readings", error)
            if self._tries >= MAX_TRIES:
                self._ask = None
            return
        self._ask = None
        self._engine.use_history(learned.windows, learned.jobs)
        log.info("learned from Prometheus' history: %s of %s", count_of(len(learned.windows), "window"),
                 count_of(len(learned.jobs), "job"))

    def _log_changes(self, result: CycleFindings, now: float) -> None:
        for finding in result.begun:
            case = self._store.get(finding.key)
            if case is None or case.closed:
                self._log.begun(finding)
            else:
                case.ended_at = None
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
        self._end_missed({finding.key for finding in result.findings}, now)

    def _end_missed(self, holding: Collection[FindingKey], now: float) -> None:
        """End findings of remediations whose end the engine does not report.

        They held before a restart and are not found again, or ended while a plan was made.
        """
        if self.windows[-1].end - self.windows[0].start < RELEARNT_SECONDS:  # it may still be found again
            return
        for case in self._store:
            if case.ended_at is None and case.finding.key not in holding:
                self._log.known.numbers[case.finding.key] = case.number  # its end is logged with its number
                self._log.ended(case.finding, now, acted_on=True)
                case.finding_ended(now)


def few_jobs_left(before: Reading, now: Reading) -> bool:
    """Whether less than a quarter of the earlier counters are left, because an exporter lost or renamed them."""
    some = range(0, len(before.jobs), max(1, len(before.jobs) // SAMPLED_COUNTERS))
    # a target that is gone says nothing
    sample = {key for key in CounterTable.of(before.jobs).rows(some).keys_by_row() if key[0] in now.targets}
    # no lookup in a table: its dictionary of all counters would stay until the next reading
    return len(sample) > FEW_COUNTERS and len(sample.intersection(now.jobs)) < len(sample) / 4


RELEARNT_SECONDS = 60.0
"""History after which a finding that held before a restart is found again, if it holds. A choice."""
DEPARTED_SECONDS = 4.0
"""A job has stopped after windows of this length without its work: with cycles of 5 s one window, so that its moves end
within 10 s. A choice: moves come back if it was wrong."""
IDLE_SECONDS = 10.0
"""A move waits if the job was last seen at work longer ago: by the time of its newest record, or by the start of the
newest window with its work, since it may have ended just after. A choice."""


def work_in(window: Window) -> Callable[[Finding, Sequence[str]], bool]:
    """Whether the aggressor of a finding, with some job ids, was at work in a window.

    A client writes the data of small files for half a minute after the job has ended, and closes files later. So only
    reads and other metadata operations count for a job of small files.
    """
    loads, names, jobs = Loads.of(window.loads), NamespaceLoads.of(window.namespace), window.jobs
    by_records = (set(loads.job[loads.numbers[:, READS] > 0].tolist()),
                  set(names.job[names.operations > names.numbers[:, CLOSES]].tolist()))

    def at_work(finding: Finding, some: Sequence[str]) -> bool:
        shown = by_records if finding.evidence.shown_by_records else (jobs, window.namespace)
        return any(any_at_work(finding.aggressor, some, each) for each in shown)

    return at_work


class JobWork(JobCheck):
    """Notes in remediations when their jobs stop, and checks the jobs of acts just before the acts.

    One thread notes; any thread may check.
    """

    def __init__(self, store: RemediationStore, table: ActivityTable, jobs_of: Callable[[Finding], Sequence[str]],
                 clock: Clock, cycle_seconds: float) -> None:
        """``jobs_of`` returns the job ids of the aggressor of a finding."""
        self._store = store
        self._table = table
        self._jobs_of = jobs_of
        self._clock = clock
        self._seen_seconds = max(IDLE_SECONDS, 2 * cycle_seconds)
        self._window_start = 0.0

    def note(self, window: Window) -> None:
        """Note which jobs of remediations were at work in the newest window, or have records since the last call."""
        at_work, now = work_in(window), self._clock.now()
        is_long = window.seconds > self._seen_seconds  # its work may have ended long ago
        self._window_start = window.start
        for case in self._store:
            if not policy_for(case.finding).needs_its_job:
                continue
            jobs = self._jobs_of(case.finding)
            recorded = self._table.last_record(jobs)
            is_new = recorded > max(case.last_record, now - self._seen_seconds)  # late records of old work do not count
            worked = at_work(case.finding, jobs)
            with self._store.lock:
                case.last_record = max(case.last_record, recorded)
                case.worked_at = window.start if worked else case.worked_at or 0.0
                if is_new or (worked and not is_long):
                    case.idle_seconds = 0.0
                elif not worked:
                    case.idle_seconds += window.seconds
                case.departed = case.idle_seconds >= DEPARTED_SECONDS

    def idle(self, action: Action) -> Refusal | None:
        case = self._case_of(action)
        if case is None:
            return None
        since = self._clock.now() - self._seen_seconds
        # opened since: it was at work in that window
        worked_at = self._window_start if case.worked_at is None else case.worked_at
        if not case.departed and (worked_at >= since or self._table.last_record(self._jobs_of(case.finding)) >= since):
            return None
        return Refusal(Reason.JOB_IDLE, f"{case.finding.aggressor} was not active in the last readings: its moves wait")

    def elsewhere(self, action: Action) -> Refusal | None:
        case = self._case_of(action)
        if case is None:
            return None
        place = action.path.rpartition("/")[0] or "/" if action.path else action.directory
        since = self._clock.now() - ACTIVE_SECONDS
        if self._table.works_in(self._jobs_of(case.finding), place, since,
                                counting_open=not case.finding.evidence.shown_by_records):
            return None
        return Refusal(Reason.JOB_ELSEWHERE, f"{case.finding.aggressor} has done nothing in {quoted(place)} for "
                       f"{ACTIVE_SECONDS:.0f} s")

    def _case_of(self, action: Action) -> Remediation | None:
        case = self._store.get(action.finding)
        return case if case is not None and policy_for(case.finding).needs_its_job else None
