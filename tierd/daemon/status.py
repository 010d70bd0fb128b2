"""The status of the daemon: a snapshot, published after each step of an activity, and the answers made of it.

Readers of the snapshot wait for no activity. ``tierctl status``, ``findings``, ``advise`` and ``top`` show these
answers; the sentence about each cycle goes to the log and to ``systemctl status``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest

from lustre.layout.model import explain
from lustre.layout.setstripe import setstripe_arguments
from tierd.act.gate import Gate
from tierd.act.journal.entry import Entry
from tierd.acts import Verdict
from tierd.clock import Clock
from tierd.config.settings import Settings
from tierd.daemon.activities import ActivityState
from tierd.daemon.answers import (
    ActAnswer,
    ActionAnswer,
    ActivityAnswer,
    AdviceAnswer,
    ComponentAnswer,
    FindingAnswer,
    FindingsAnswer,
    JobRow,
    JobTimeRow,
    OperatingStateAnswer,
    RefusalAnswer,
    RemediationAnswer,
    ScopeAnswer,
    SourceAnswer,
    StateAnswer,
    StatusAnswer,
    TargetRow,
    TargetTimeRow,
    TopAnswer,
    extend,
)
from tierd.daemon.loop import Daemon, is_learning
from tierd.daemon.states import State
from tierd.detect.device_time import TargetTime
from tierd.model import Action, Finding, SlowdownEvidence, Window
from tierd.refusal import REMEDIES, Refusal, sentence_of
from tierd.sense.freshness import SourceState
from tierd.text import count_of


@dataclass(frozen=True, slots=True)
class RemediationSnapshot:
    """A remediation as status shows it."""

    number: int
    aggressor: str
    victim: str
    directories: tuple[str, ...]
    begun_at: float
    state: State
    judged: bool
    verdict: Verdict
    """Empty before the verdict."""
    waiting_defaults: int = 0
    """Number of queued default layouts."""
    waiting_moves: int = 0
    moves_held: bool = False
    """Whether its moves wait, so that the effect is measured without them."""
    undo_reason: str = ""
    """Why its default layouts are being undone."""


@dataclass(frozen=True, slots=True)
class StatusSnapshot:
    """State of the daemon at the end of the last step of any activity."""

    window: Window | None = None
    windows: int = 0
    findings: tuple[Finding, ...] = ()
    numbers: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """Numbers of findings in the journal."""
    cases: tuple[RemediationSnapshot, ...] = ()
    why_not: Mapping[tuple[str, str, str], tuple[Refusal, ...]] = field(default_factory=dict)
    """Refusals of the last plan for each finding."""
    faults: Mapping[str, str] = field(default_factory=dict)
    waiting: int = 0
    """Moves in the queue."""
    cycles: int = 0
    cycle_seconds: float = 0.0
    looking_since: float = 0.0
    """Beginning of the history that tierd observed itself; 0 if the history came from Prometheus."""
    device_time: Mapping[str, TargetTime] = field(default_factory=dict)
    """Device time of the targets whose service costs are known."""


class StatusPublisher:
    """Holds the latest snapshot. Activities publish it, and any thread reads it."""

    def __init__(self) -> None:
        self.view = StatusSnapshot()

    def publish(self, daemon: Daemon, gate: Gate) -> None:
        """Publish a snapshot of the present state."""
        windows, counters, findings = daemon.windows, daemon.counters, daemon.findings
        waiting = gate.waiting_by_finding()
        with daemon.lock:
            cases = tuple(
                RemediationSnapshot(
                    c.number,
                    c.finding.aggressor,
                    c.finding.victim,
                    c.finding.directories,
                    c.begun_at,
                    c.state,
                    c.judged,
                    c.verdict,
                    gate.defaults_waiting_for(c.finding.key),
                    waiting[c.finding.key],
                    c.moves_held,
                    c.undo_reason,
                )
                for c in daemon.cases
            )
        self.view = StatusSnapshot(
            windows[-1] if windows else None, len(windows), findings, {f.key: daemon.number(f) for f in findings},
            cases, {f.key: daemon.why_not(f) for f in findings},
            daemon.faults, waiting.total(), counters.cycles, counters.cycle_seconds,
            looking_since=windows[0].start if windows and not windows[0].learned else 0.0,
            device_time=daemon.device_time)


STALLED_SECONDS = 60.0
"""If moves are queued and none ends for so long, status reports them as stalled, with the reason."""


def refusal_answer(refusal: Refusal) -> RefusalAnswer:
    """Why something is not done, and what would change that."""
    return RefusalAnswer(refusal.reason, refusal.sentence, REMEDIES.get(refusal.reason, ""))


def finding_answer(finding: Finding, number: int | None = None) -> FindingAnswer:
    """A finding, and its number in the journal if it has one."""
    return FindingAnswer(
        id=number, kind=finding.kind, time=finding.time, aggressor=finding.aggressor, victim=finding.victim,
        targets=tuple(finding.targets), directories=tuple(finding.directories), advice_only=finding.advice_only,
        subject=finding.subject, advice=advice_answers(finding),
        evidence={"sentence": finding.sentence,
                  **{name: round(value, 6) for name, value in finding.evidence.numbers().items()}})


def advice_answers(finding: Finding) -> tuple[AdviceAnswer, ...]:
    """What an administrator may change because of a finding."""
    return tuple(AdviceAnswer(each.command, each.where, each.effect) for each in finding.advice)


def action_answer(action: Action) -> ActionAnswer:
    """A planned act."""
    components = tuple(ComponentAnswer(c.extent_start, c.extent_end, c.pool, c.stripe_count)
                       for c in action.layout.components)
    return ActionAnswer(action=action.kind, path=action.path, directory=action.directory,
                        layout=" ".join(setstripe_arguments(action.layout)), components=components,
                        reason=action.reason, size_bytes=action.size_bytes)


def act_answer(entry: Entry) -> ActAnswer:
    """An act in the journal."""
    return ActAnswer(
        entry.id, entry.intended_at, entry.kind, entry.place, entry.size_bytes, entry.outcome, entry.detail,
        explain(entry.layout_before) if entry.layout_before else None,
        explain(entry.layout_after) if entry.layout_after else None, entry.reason)


def source_answer(state: SourceState) -> SourceAnswer:
    """A source. JSON has no infinity, so the age of a source without data is None."""
    age = state.age_seconds if state.age_seconds < float("inf") else None
    return SourceAnswer(state.name, age, state.limit_seconds, state.stale, state.text)


def activity_answer(state: ActivityState, now: float) -> ActivityAnswer:
    """An activity of the daemon."""
    under_way = max(0.0, now - state.begun_at) if state.begun_at else 0.0
    return ActivityAnswer(state.name, state.doing, state.last_seconds, state.waits_for, under_way)


def remediation_answer(case: RemediationSnapshot) -> RemediationAnswer:
    """A remediation."""
    return RemediationAnswer(
        finding=case.number, aggressor=case.aggressor, victim=case.victim, since=case.begun_at, state=case.state,
        judged=case.judged, verdict=case.verdict, directories=case.directories, waiting_defaults=case.waiting_defaults,
        waiting_moves=case.waiting_moves, moves_held=case.moves_held, undo_reason=case.undo_reason)


class StatusView:
    """Builds answers about the present state. Safe in any thread; it waits for no activity."""

    def __init__(self, publisher: StatusPublisher, daemon: Daemon, gate: Gate, settings: Settings, clock: Clock,
                 waiting_orders: Callable[[], int], sources: Callable[[], Sequence[SourceState]],
                 activities: Callable[[], Sequence[ActivityState]]) -> None:
        self._publisher = publisher
        self._daemon = daemon
        self._gate = gate
        self._settings = settings
        self._clock = clock
        self._waiting_orders = waiting_orders
        self._sources = sources
        self._activities = activities

    @property
    def snapshot(self) -> StatusSnapshot:
        """What the daemon published last."""
        return self._publisher.view

    def status(self) -> StatusAnswer:
        """``tierctl status``."""
        sentences = tuple(f.sentence for f in self.snapshot.findings if not f.advice_only)
        return extend(StatusAnswer, self._state(), findings=sentences)

    def top(self, max_rows: int) -> TopAnswer:
        """``tierctl top``, with at most ``max_rows`` targets and as many jobs."""
        view = self.snapshot
        window = view.window or Window(0.0, 0.0, {}, {})
        role = {f.victim: "slowed" for f in view.findings if f.victim and not f.advice_only}
        role |= {job: "noise" for f in view.findings if f.aggressor and not f.advice_only for job in f.aggressors}
        return extend(
            TopAnswer, self._state(), findings=self.findings().findings if view.window else (), seconds=window.seconds,
            targets=tuple(target_rows(window, view.findings)[:max_rows]),
            all_targets=len({target for target, _ in window.loads}),
            jobs=tuple(job_rows(window, role)[:max_rows]), all_jobs=len(window.jobs | set(window.namespace)))

    def findings(self, *, advice: bool | None = None) -> FindingsAnswer:
        """Findings that hold: advice alone, all but advice, or both (None)."""
        view = self.snapshot
        return FindingsAnswer(tuple(finding_answer(f, view.numbers.get(f.key)) for f in view.findings
                                    if advice is None or f.advice_only is advice), view.window is not None)

    def operating_state(self) -> OperatingStateAnswer:
        """What holds acts back, and the queue."""
        gate = self._gate
        state = gate.operating_state
        return OperatingStateAnswer(paused=state.paused, held=sentence_of(state.held), draining=state.draining,
                                    waiting_moves=gate.waiting, waiting_bytes=gate.waiting_bytes)

    def _state(self) -> StateAnswer:
        view, gate, settings, now = self.snapshot, self._gate, self._settings, self._clock.now()
        acted_on = [f for f in view.findings if not f.advice_only]
        activities = self._activities()
        min_windows = settings.noisy_neighbour.min_windows
        return extend(
            StateAnswer,
            self.operating_state(),
            time=now,
            mode=settings.act.mode,
            scopes=tuple(ScopeAnswer(s.path, s.mode) for s in settings.scopes),
            dry_run=settings.act.dry_run,
            faults=dict(view.faults),
            finding_ids=tuple(view.numbers.get(f.key) for f in acted_on),
            why_not=tuple(tuple(map(refusal_answer, view.why_not.get(f.key, ()))) for f in acted_on),
            advice=sum(f.advice_only for f in view.findings),
            last_cycle=view.window.end if view.window else None,
            windows=view.windows,
            least_windows=min_windows,
            looking_since=view.looking_since or None,
            history_seconds=settings.history_seconds,
            least_seconds=min_windows * settings.sense.cycle_seconds,
            learning=is_learning(view.windows, view.device_time, settings),
            device_time=device_time_rows(view.device_time),
            cycles=view.cycles,
            cycle_seconds=view.cycle_seconds,
            waiting_orders=self._waiting_orders(),
            under_way_moves=gate.under_way,
            waiting_defaults=gate.waiting_defaults,
            waits_for=gate.waits_for,
            moves_to_requeue=gate.to_requeue,
            moves_not_persisted=gate.not_persisted,
            not_requeued=dict(gate.not_requeued),
            moved_bytes=gate.completed_acts.moved_bytes,
            outcomes={" ".join(key): count for key, count in tuple(gate.completed_acts.counts.items())},
            remediations=tuple(map(remediation_answer, view.cases)),
            activities=tuple(activity_answer(state, now) for state in activities),
            stalled=tuple(stalled_sentences(self._daemon, gate, activities, now)),
            sources=tuple(map(source_answer, self._sources())))


TARGETS_SHOWN, JOBS_SHOWN = 8, 4
"""Limits on the targets whose device time is shown, and on the jobs of each."""


def device_time_rows(times: Mapping[str, TargetTime]) -> tuple[TargetTimeRow, ...]:
    """The busiest targets, and the jobs that take most of their service time."""
    busiest = nlargest(TARGETS_SHOWN, times.values(), key=lambda time: time.utilisation)
    return tuple(TargetTimeRow(
        time.target, round(time.utilisation, 4), round(time.utilisation_error, 4),
        tuple(JobTimeRow(job, round(share, 4), round(time.share_error([job]), 4))
              for job, share in time.top(JOBS_SHOWN))) for time in busiest)


def stalled_sentences(daemon: Daemon, gate: Gate, activities: Sequence[ActivityState], now: float) -> list[str]:
    """A sentence for each activity that is stalled or late, with the reason."""
    found = []
    if daemon.stale_for:
        found.append(f"the last reading of the counters is {daemon.stale_for:.0f} s old: no acts start before the next")
    moving = next((state for state in activities if state.name == "move"), None)
    idle = now - max(gate.last_move_at, gate.waiting_since)
    if gate.waiting and idle > STALLED_SECONDS:
        why = sentence_of(gate.operating_state.held) or next(iter(daemon.blocking_faults), "") or gate.waits_for
        if not why and moving is not None and moving.begun_at:
            why = moving.waits_for or f"{moving.doing} has taken {now - moving.begun_at:.0f} s so far"
        why = why or "the reason is not known"
        found.append(f"no move has ended for {idle:.0f} s while {gate.waiting} are queued: {why}")
    return found


NO_LOAD = 0.0, 0.0, 0.0


def target_rows(window: Window, found: tuple[Finding, ...]) -> list[TargetRow]:
    """Load of each target, and the slowdown of its streams: slowed targets first, then the busiest."""
    slowdown: dict[str, float] = {}
    for finding in found:
        for target in finding.targets:
            if isinstance(finding.evidence, SlowdownEvidence) and not finding.advice_only:
                slowdown[target] = max(slowdown.get(target, 0.0), finding.evidence.slowdown)
    rates, counts = rates_by(window, 0)
    rows = []
    for target in dict.fromkeys((*rates, *window.conditions)):
        read_bytes, write_bytes, operations = rates.get(target, NO_LOAD)
        rows.append(TargetRow(
            target=target, read_bytes=read_bytes, write_bytes=write_bytes, operations=operations,
            jobs=counts.get(target, 0), slowdown=slowdown.get(target), condition=window.conditions.get(target, "")))
    return sorted(rows, key=lambda row: (-(row.slowdown or 0), not row.condition, -row.operations, row.target))


def job_rows(window: Window, role: Mapping[str, str]) -> list[JobRow]:
    """Load of each job: jobs of findings first, then the busiest."""
    rates, counts = rates_by(window, 1)
    rows = []
    for job in dict.fromkeys((*rates, *window.namespace)):
        read_bytes, write_bytes, operations = rates.get(job, NO_LOAD)
        creates = window.namespace[job].creates / window.seconds if job in window.namespace else 0.0
        rows.append(JobRow(job=job, read_bytes=read_bytes, write_bytes=write_bytes, operations=operations,
                           creates=creates, targets=counts.get(job, 0), role=role.get(job, "")))
    return sorted(rows, key=lambda row: (not row.role, -row.operations, row.job))


def rates_by(window: Window, place: int) -> tuple[dict[str, tuple[float, float, float]], dict[str, int]]:
    """Bytes read, bytes written and operations per second by target (``place`` 0) or job (1); number of loads."""
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    counts: defaultdict[str, int] = defaultdict(int)
    for key, load in window.loads.items():
        row = sums[key[place]]
        row[0] += load.read_bytes
        row[1] += load.write_bytes
        row[2] += load.operations
        counts[key[place]] += 1
    seconds = window.seconds
    return {name: (row[0] / seconds, row[1] / seconds, row[2] / seconds) for name, row in sums.items()}, counts


def cycle_sentence(view: StatusSnapshot, gate: Gate) -> str:
    """Summary of one cycle: load, findings, queue and what holds acts back."""
    if view.window is None:
        seen = "first reading; findings need a second one"
    else:
        targets, jobs = len({target for target, _ in view.window.loads}), len(view.window.jobs)
        advice = sum(f.advice_only for f in view.findings)
        seen = f"{count_of(jobs, 'job')} on {count_of(targets, 'target')}, "
        seen += count_of(len(view.findings) - advice, "finding") + (f", {advice} advice" if advice else "")
    open_cases = sum(not case.judged for case in view.cases)
    parts = [seen, f"{view.cycle_seconds:.1f} s"] if view.window else [seen]
    if open_cases:
        parts.append(f"{count_of(open_cases, 'remediation')} without a verdict")
    if view.waiting:
        parts.append(f"{count_of(view.waiting, 'move')} queued")
    if gate.operating_state.held:
        parts.append(f"no acts: {sentence_of(gate.operating_state.held)}")
    elif gate.operating_state.draining:
        parts.append(f"no new acts: {gate.operating_state.draining}")
    return "; ".join([*parts, *view.faults.values()])
