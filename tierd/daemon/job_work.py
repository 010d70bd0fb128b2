"""Whether the jobs that acts are for are still at work, by counters and changelog records.

Moves of a job that has stopped would only load the disks. They are dropped after the first windows without any work of
the job, and put back if it returns while its remediation goes on: a job that pauses between two phases loses the moves
of the pause, in which nobody reads its files. Each act is checked again just before it begins, because a cycle may take
long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tierd.act.guard import JobCheck
from tierd.arrays import any_at_work
from tierd.clock import Clock
from tierd.daemon.remediation import Remediation, RemediationStore
from tierd.detect.attribution import ACTIVE_SECONDS
from tierd.loads import Loads
from tierd.model import Action, Finding, Window
from tierd.policies.registry import policy_for
from tierd.refusal import Reason, Refusal
from tierd.sense.changelogs.table import ActivityTable
from tierd.text import quoted

DEPARTED_SECONDS = 4.0
"""A job has stopped after windows of this length without its work: with cycles of 5 s one window, so that its moves end
within 10 s. A choice: moves come back if it was wrong."""
IDLE_SECONDS = 10.0
"""A move waits if the job was last seen at work longer ago: by the time of its newest record, or by the start of the
newest window with its work, since it may have ended just after. A choice."""


class WindowWork:
    """The jobs at work in one window."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._jobs = window.jobs
        self._reading = set(Loads.of(window.loads).reading_jobs)
        self._naming = {job for job, load in window.namespace.items() if load.operations > load.closes}

    def has(self, finding: Finding, jobs: Sequence[str]) -> bool:
        """Whether the aggressor of a finding was at work.

        A client writes the data of small files for half a minute after the job has ended, and closes files later. So
        only reads and other metadata operations count for a job of small files.
        """
        if finding.evidence.shown_by_records:
            return any(any_at_work(finding.aggressor, jobs, at_work) for at_work in (self._reading, self._naming))
        return any(any_at_work(finding.aggressor, jobs, at_work) for at_work in (self._jobs, self._window.namespace))


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
        work, now = WindowWork(window), self._clock.now()
        is_long = window.seconds > self._seen_seconds  # its work may have ended long ago
        self._window_start = window.start
        for case in self._cases():
            jobs = self._jobs_of(case.finding)
            recorded = self._table.last_record(jobs)
            is_new = recorded > max(case.last_record, now - self._seen_seconds)
            worked = work.has(case.finding, jobs)
            with self._store.lock:
                case.last_record = max(case.last_record, recorded)
                case.worked_at = window.start if worked else case.worked_at or 0.0
                if is_new or (worked and not is_long):
                    case.idle_seconds = 0.0
                elif not worked:
                    case.idle_seconds += window.seconds
                case.departed = case.idle_seconds >= DEPARTED_SECONDS

    def _cases(self) -> Iterator[Remediation]:
        return (case for case in self._store if policy_for(case.finding).needs_its_job)

    def idle(self, action: Action) -> Refusal | None:
        case = self._case_of(action)
        if case is None:
            return None
        since = self._clock.now() - self._seen_seconds
        worked_at = self._window_start if case.worked_at is None else case.worked_at
        if not case.departed and (worked_at >= since or self._table.last_record(self._jobs_of(case.finding)) >= since):
            return None
        return Refusal(Reason.JOB_IDLE, f"{case.finding.aggressor} was not seen at work just now: its moves wait")

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
