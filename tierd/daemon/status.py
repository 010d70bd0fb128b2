"""The status of the daemon: a snapshot, published after each step of an activity, and the answers made of it.

Readers of the snapshot wait for no activity. ``tierctl status``, ``findings``, ``advise`` and ``top`` show these
answers; the sentence about each cycle goes to the log and to ``systemctl status``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest

from lustre import __version__
from lustre.layout.directory import DefaultStriping, setdirstripe_arguments
from lustre.layout.model import explain
from lustre.layout.setstripe import setstripe_arguments
from tierd.act.drain import ACTIVE
from tierd.act.gate import Gate
from tierd.act.journal.entry import Default, Entry
from tierd.act.journal.reader import JournalReader
from tierd.act.outcomes import CompletedActs
from tierd.daemon import answers
from tierd.daemon.activities import Activity
from tierd.daemon.cases import CaseFigures, all_cases, found_case, refusal_answer, updated_figures
from tierd.daemon.loop import LEARNING_WINDOWS, Daemon, is_learning
from tierd.daemon.states import OPEN
from tierd.daemon.users import UserNames
from tierd.detect.device_time import TargetTime
from tierd.model import Action, Facts, Finding, Window
from tierd.policies.registry import has_victim
from tierd.refusal import Reason, Refusal, sentence_of
from tierd.sense.freshness import SourceState
from tierd.text import count_of, shell_word


@dataclass(frozen=True, slots=True)
class StatusSnapshot:
    """State of the daemon at the end of the last step of any activity."""

    window: Window | None = None
    windows: int = 0
    findings: tuple[Finding, ...] = ()
    numbers: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """Numbers of findings in the journal."""
    cases: tuple[answers.Case, ...] = ()
    """Those whose finding holds first; without the reasons why not more is done."""
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
    figures: CaseFigures = field(default_factory=CaseFigures)
    facts: Facts = field(default_factory=Facts)
    """Pools, and the space on their targets."""


class StatusPublisher:
    """Holds the latest snapshot. Activities publish it, and any thread reads it."""

    def __init__(self, journal: JournalReader | None = None) -> None:
        """``journal`` has the curves of cases of before a restart."""
        self._journal = journal
        self.view = StatusSnapshot()

    def publish(self, daemon: Daemon) -> None:
        windows, counters, gate = daemon.windows, daemon.counters, daemon.parts.gate
        holding = daemon.findings
        numbers = {f.key: number for f in holding if (number := daemon.log.known_number(f))}
        findings = tuple(daemon.log.recorded(f) for f in holding if f.key in numbers)
        waiting, device_time = gate.waiting_by_finding(), daemon.engine.device_time
        with daemon.store.lock:  # for a moment: the rest is made of copies
            done = [replace(case, defaults=[*case.defaults]) for case in daemon.cases]
        figures = updated_figures(self.view.figures, findings, numbers, done, windows, times=device_time,
                                  journal=self._journal)
        cases = tuple(all_cases(findings, numbers, done, figures,
                                lambda key: (gate.default_layouts.of(key), waiting[key])))
        self.view = StatusSnapshot(
            windows[-1] if windows else None, len(windows), findings=findings, numbers=numbers, cases=cases,
            why_not={f.key: daemon.remediations.refusals(f.key) for f in findings}, faults=daemon.faults,
            waiting=waiting.total(), cycles=counters.cycles, cycle_seconds=counters.cycle_seconds,
            looking_since=windows[0].start if windows else 0.0,
            device_time=device_time, figures=figures, facts=daemon.facts.known)


STALLED_SECONDS = 60.0
"""If moves are queued and none ends for so long, status reports them as stalled, with the reason."""


def finding_answer(finding: Finding, number: int | None = None, why_not: Sequence[Refusal] = (),
                   sentence: str = "") -> answers.FindingAnswer:
    """A finding, its number in the journal if it has one, why not more is done, and the sentence of its case."""
    return answers.FindingAnswer.of(
        finding, id=number, advice=advice_answers(finding), why_not=tuple(map(refusal_answer, why_not)),
        evidence={"sentence": sentence or finding.sentence,
                  **{name: round(value, 6) for name, value in finding.evidence.numbers().items()}})


def advice_answers(finding: Finding) -> tuple[answers.AdviceAnswer, ...]:
    return tuple(map(answers.AdviceAnswer.of, finding.advice))


def action_answer(action: Action) -> answers.ActionAnswer:
    layout, striping = action.layout, action.striping
    words = setdirstripe_arguments(striping) if striping is not None else setstripe_arguments(layout)
    components = layout.components if striping is None else ()
    return answers.ActionAnswer.of(action, action=action.kind, layout=" ".join(words),
                                   components=tuple(map(answers.ComponentAnswer.of, components)))


def act_answer(entry: Entry) -> answers.ActAnswer:
    return answers.ActAnswer(
        entry.id, entry.intended_at, kind=entry.kind, place=entry.place, size_bytes=entry.size_bytes,
        outcome=entry.outcome, detail=entry.detail,
        before=layout_words(entry.before), after=layout_words(entry.after), reason=entry.reason)


def layout_words(default: Default) -> str | None:
    """A layout, or a default striping of directories, in words; None if there is neither."""
    if isinstance(default, DefaultStriping):
        return f"lfs setdirstripe {' '.join(setdirstripe_arguments(default))}"
    return explain(default) if default else None


def source_answer(state: SourceState) -> answers.SourceAnswer:
    """A source. JSON has no infinity, so the age of a source without data is None."""
    age = state.age_seconds if state.age_seconds < float("inf") else None
    return answers.SourceAnswer(state.name, age, state.limit_seconds, state.stale, state.text)


class StatusView:
    """Builds answers about the present state. Safe in any thread; it waits for no activity."""

    def __init__(self, publisher: StatusPublisher, daemon: Daemon, users: UserNames, *,
                 waiting_orders: Callable[[], int], sources: Callable[[], Sequence[SourceState]],
                 activities: Callable[[], Sequence[Activity]]) -> None:
        self._publisher, self._daemon, self._users = publisher, daemon, users
        self._gate, self._settings, self._clock = daemon.parts.gate, daemon.parts.settings, daemon.parts.node.clock
        self._waiting_orders, self._sources, self._activities = waiting_orders, sources, activities
        self._made: tuple[StatusSnapshot, list[answers.TargetRow], list[answers.JobRow]] | None = None

    @property
    def snapshot(self) -> StatusSnapshot:
        return self._publisher.view

    def status(self) -> answers.StatusAnswer:
        return self._status([case.replaced(curve=(), time_before=None, time_now=None) for case in self.cases()])

    def users(self, jobs: Iterable[str]) -> Mapping[str, str]:
        """Users of jobs, as far as their job ids name them."""
        return self._users.names(jobs)

    def top(self, max_rows: int) -> answers.TopAnswer:
        view = self.snapshot
        window = view.window or Window(0.0, 0.0, {}, {})
        targets, jobs = self.tables(view)
        state = self._status()
        users = {**state.users, **self.users(row.job for row in jobs[:max_rows])}
        return answers.TopAnswer.of(
            state, users=users, findings=self.findings().findings if view.window else (),
            seconds=window.seconds, targets=tuple(targets[:max_rows]), all_targets=len(targets),
            jobs=tuple(jobs[:max_rows]), all_jobs=len(jobs))

    def tables(self, view: StatusSnapshot) -> tuple[list[answers.TargetRow], list[answers.JobRow]]:
        """All targets and jobs of a snapshot. Requests about the same snapshot share them."""
        made = self._made
        if made is None or made[0] is not view:
            window = view.window or Window(0.0, 0.0, {}, {})
            made = view, target_rows(window, view.findings, view.facts), job_rows(window, roles(view.findings))
            self._made = made
        return made[1:]

    def overview(self, max_rows: int, max_cases: int) -> answers.OverviewAnswer:
        """The page, with at most so many targets, jobs and cases. It waits for nothing and asks nobody."""
        view, gate = self.snapshot, self._gate
        window = view.window or Window(0.0, 0.0, {}, {})
        every_case = self.cases()
        cases = every_case[:max_cases]
        advice = self.findings(advice=True).findings
        every_target, every_job = self.tables(view)
        times = view.device_time
        every_target = sorted(every_target, key=lambda row: (
            -(row.slowdown or 0), not row.condition, -times[row.target].utilisation if row.target in times else 0.0))
        targets, jobs = every_target[:max_rows], every_job[:max_rows]
        reasons = [answers.ReasonRow(outcome, reason, count)
                   for (outcome, reason), count in gate.completed_acts.reasons.most_common()]
        named = {row.job for row in jobs} | {job for case in cases for job in (case.aggressor, case.victim)}
        return answers.OverviewAnswer(
            fsname=self._daemon.parts.node.filesystem.fsname, mount=self._settings.filesystem.mount,
            version=__version__,
            options=socket_options(self._settings.act.socket), status=self._status(),
            cases=tuple(cases), all_cases=len(every_case), advice=advice[:max_cases], all_advice=len(advice),
            seconds=window.seconds, targets=tuple(targets), all_targets=len(every_target),
            device_time=tuple(time_row(view.device_time[row.target]) for row in targets
                              if row.target in view.device_time),
            jobs=tuple(jobs), all_jobs=len(every_job), users=self.users(named),
            pools=pool_rows(every_target, view.facts, view.device_time), reasons=tuple(reasons))

    def cases(self) -> list[answers.Case]:
        """All cases, with the reasons why not more is done now about a finding that holds."""
        return [case.replaced(why_not=tuple(map(refusal_answer, self._why_not(case.key)))) if case.active else case
                for case in self.snapshot.cases]

    def known_cases(self) -> dict[int, answers.Case]:
        """All cases, and the findings that are mere advice, by number."""
        view = self.snapshot
        advice = (found_case(f, view.numbers[f.key], f.evidence.numbers(), active=True) for f in view.findings)
        return {case.finding: case for case in (*advice, *self.cases()) if case.finding is not None}

    def _why_not(self, key: tuple[str, str, str]) -> tuple[Refusal, ...]:
        """Why nothing, or no more, is done about a finding: refusals of the last plan, and what holds acts back now."""
        view, state = self.snapshot, self._gate.operating_state
        refusals = view.why_not.get(key, ())
        holds = [state.last_held] if state.last_held else []
        if not holds and state.draining:
            holds = [Refusal(Reason.PAUSED, f"tierd is draining: {state.draining}")]
        holds += [Refusal(Reason.UNREADABLE, fault) for fault in self._daemon.blocking_faults]
        if not refusals and not holds and not any(case.state and case.key == key for case in view.cases):
            return (Refusal(Reason.NOTHING_TO_DO, "not planned yet; tierd plans in the next seconds"),)
        return (*refusals, *(hold for hold in holds if hold not in refusals))

    def findings(self, *, advice: bool | None = None) -> answers.FindingsAnswer:
        """Findings that hold: advice alone, all but advice, or both (None)."""
        view = self.snapshot
        chosen = [f for f in view.findings if advice is None or f.advice_only is advice]
        why_not = {f.key: self._why_not(f.key) for f in chosen if has_victim(f)}
        sentences = {case.key: case.sentence for case in view.cases if case.active}
        found = tuple(finding_answer(f, view.numbers.get(f.key), why_not.get(f.key, ()), sentences.get(f.key, ""))
                      for f in chosen)
        return answers.FindingsAnswer(found, view.window is not None, self.users(jobs_of(chosen)),
                                      max(0.0, self._clock.now() - view.window.end) if view.window else None)

    def movers(self) -> answers.MoversAnswer:
        state, now = self._gate.dispatch.state(), self._clock.now()
        if state is None:
            return answers.MoversAnswer(time=now, cluster=False)
        movers = [answers.MoverAnswer.of(each, under_way=sum(each.under_way.values())) for each in state.movers]
        counts, standbys = state.counts, map(answers.StandbyRow.of, state.standbys)
        return answers.MoversAnswer.of(state, time=now, cluster=True, movers=tuple(movers), standbys=tuple(standbys),
                                       redelivered=counts.redelivered, stale=counts.stale, expired=counts.expired)

    def operating_state(self) -> answers.OperatingStateAnswer:
        gate, state = self._gate, self._gate.operating_state
        return answers.OperatingStateAnswer(
            paused=state.paused, held=sentence_of(state.last_held), draining=state.draining, waiting_moves=gate.waiting,
            waiting_bytes=gate.waiting_bytes)

    def _status(self, cases: Sequence[answers.Case] = ()) -> answers.StatusAnswer:
        view, gate, settings, now = self.snapshot, self._gate, self._settings, self._clock.now()
        activities = self._activities()
        return answers.StatusAnswer.of(
            self.operating_state(),
            time=now,
            mode=settings.act.mode,
            scopes=tuple(map(answers.ScopeAnswer.of, settings.scopes)),
            dry_run=settings.act.dry_run,
            faults=dict(view.faults),
            cases=tuple(cases),
            advice=sum(f.advice_only for f in view.findings),
            last_cycle=view.window.end if view.window else None,
            windows=view.windows,
            least_windows=LEARNING_WINDOWS,
            looking_since=view.looking_since or None,
            history_seconds=settings.history_seconds,
            least_seconds=LEARNING_WINDOWS * settings.sense.cycle_seconds,
            learning=is_learning(view.windows, view.device_time),
            device_time=device_time_rows(view.device_time),
            cycles=view.cycles,
            cycle_seconds=view.cycle_seconds,
            waiting_orders=self._waiting_orders(),
            under_way_moves=gate.under_way,
            waiting_defaults=len(gate.default_layouts),
            waits_for=gate.waits_for,
            moves_to_requeue=len(gate.requeue_list),
            moves_not_persisted=gate.not_persisted,
            not_requeued=dict(gate.not_requeued),
            moved_bytes=gate.completed_acts.moved_bytes,
            outcomes=act_counts(gate.completed_acts),
            drains={drain.target: str(drain.phase) for drain in self._daemon.drains.all
                    if drain.phase in ACTIVE and not drain.preview},
            needless_moves=gate.completed_acts.needless.total(),
            activities=tuple(map(answers.ActivityAnswer.of, activities)),
            stalled=tuple(stalled_sentences(self._daemon, activities, now)),
            sources=tuple(map(source_answer, self._sources())),
            users=self.users(jobs_of(view.cases)))


def act_counts(acts: CompletedActs) -> dict[str, int]:
    """Number of acts since the start by kind and outcome, as the journal has them."""
    needless = acts.needless.copy()
    return {" ".join(key): count - needless[key] for key, count in tuple(acts.counts.items()) if count > needless[key]}


def jobs_of(findings: Iterable[Finding | answers.Case]) -> list[str]:
    return [job for finding in findings for job in (finding.aggressor, finding.victim) if job]


TARGETS_SHOWN, JOBS_SHOWN = 8, 4
"""Limits on the targets whose device time is shown, and on the jobs of each."""


def device_time_rows(times: Mapping[str, TargetTime]) -> tuple[answers.TargetTimeRow, ...]:
    """The busiest targets, and the jobs that take most of their service time."""
    return tuple(map(time_row, nlargest(TARGETS_SHOWN, times.values(), key=lambda time: time.utilisation)))


def time_row(time: TargetTime) -> answers.TargetTimeRow:
    """The jobs that take most of the service time of one target."""
    return answers.TargetTimeRow(
        time.target, round(min(time.utilisation, 1.0), 4), round(time.utilisation_error, 4),
        tuple(answers.JobTimeRow(job, round(share, 4), round(time.device_time(job).error, 4))
              for job, share in time.top(JOBS_SHOWN)))


def stalled_sentences(daemon: Daemon, activities: Sequence[Activity], now: float) -> list[str]:
    """A sentence for each activity that is stalled or late, with the reason."""
    found, gate = [], daemon.parts.gate
    if daemon.stale_for:
        found.append(f"the last reading of the counters is {daemon.stale_for:.0f} s old: no acts start before the next")
    moving = next((each for each in activities if each.name == "move"), None)
    idle = now - max(gate.last_move_at, gate.waiting_since)
    if gate.waiting and idle > STALLED_SECONDS and not gate.gives_way:
        why = sentence_of(gate.operating_state.last_held) or next(iter(daemon.blocking_faults), "") or gate.waits_for
        if not why and moving is not None and moving.begun_at:
            why = moving.waits_for or f"{moving.doing} has taken {now - moving.begun_at:.0f} s so far"
        why = why or "the reason is not known"
        found.append(f"no move has ended for {idle:.0f} s while {gate.waiting} are queued: {why}")
    return found


def socket_options(path: str) -> str:
    """Options of tierctl for a control socket, as they are typed.

    >>> socket_options("/run/tierd/tierd.sock"), socket_options("/run/tierd/scratch/tierd.sock")
    ('', ' --fs scratch')
    >>> socket_options("/tmp/x y.sock")
    " --socket '/tmp/x y.sock'"
    """
    parts = path.split("/")
    if parts[:3] == ["", "run", "tierd"] and parts[-1] == "tierd.sock" and len(parts) in {4, 5}:
        return f" --fs {shell_word(parts[3])}" if len(parts) == 5 else ""
    return f" --socket {shell_word(path)}"


def roles(findings: Sequence[Finding]) -> dict[str, str]:
    """Jobs of findings: ``noise`` or ``slowed``."""
    serious = [f for f in findings if not f.advice_only]
    noise = {job: "noise" for f in serious if f.aggressor for job in f.aggressors}
    return {f.victim: "slowed" for f in serious if f.victim} | noise


NO_LOAD = 0.0, 0.0, 0.0


def target_rows(window: Window, found: tuple[Finding, ...], facts: Facts) -> list[answers.TargetRow]:
    """Load, space and latency of each target, and the slowdown of its streams: slowed first, then the busiest."""
    slowdown: dict[str, float] = {}
    for finding in found:
        stream = finding.evidence.of_stream
        if stream is not None and not finding.advice_only:
            for target in finding.targets:
                slowdown[target] = max(slowdown.get(target, 0.0), stream.slowdown)
    rates, counts = rates_by(window, 0)
    latencies = latency_by_target(window)
    pool_of = {target: pool for pool, targets in facts.pools.items() for target in targets}
    rows = []
    for target in dict.fromkeys((*rates, *window.conditions, *facts.fill)):
        read_bytes, write_bytes, operations = rates.get(target, NO_LOAD)
        space = facts.fill.get(target)
        rows.append(answers.TargetRow(
            target=target, read_bytes=read_bytes, write_bytes=write_bytes, operations=operations,
            jobs=counts.get(target, 0), slowdown=slowdown.get(target), condition=window.conditions.get(target, ""),
            pool=pool_of.get(target, ""), used=space.used if space else None, latency_usec=latencies.get(target)))
    return sorted(rows, key=lambda row: (-(row.slowdown or 0), not row.condition, -row.operations, row.target))


def job_rows(window: Window, role: Mapping[str, str]) -> list[answers.JobRow]:
    """Load of each job: jobs of findings first, then the busiest."""
    rates, counts = rates_by(window, 1)
    rows = []
    for job in dict.fromkeys((*rates, *window.namespace)):
        read_bytes, write_bytes, operations = rates.get(job, NO_LOAD)
        creates = window.namespace[job].creates / window.metadata_seconds if job in window.namespace else 0.0
        rows.append(answers.JobRow(job=job, read_bytes=read_bytes, write_bytes=write_bytes, operations=operations,
                                   creates=creates, targets=counts.get(job, 0), role=role.get(job, "")))
    return sorted(rows, key=lambda row: (not row.role, -row.operations, row.job))


def latency_by_target(window: Window) -> dict[str, float]:
    """Mean service time of the bulk RPCs of each target, where the servers print it; microseconds."""
    usec: defaultdict[str, float] = defaultdict(float)
    operations: defaultdict[str, float] = defaultdict(float)
    for (target, _), load in window.loads.items():
        if load.busy_usec:
            usec[target] += load.busy_usec
            operations[target] += load.bulk_operations
    return {target: usec[target] / count for target, count in operations.items() if count}


def pool_rows(targets: Sequence[answers.TargetRow], facts: Facts,
              times: Mapping[str, TargetTime]) -> tuple[answers.PoolRow, ...]:
    loads = {row.target: row for row in targets}
    rows = []
    for pool, members in sorted(facts.pools.items()):
        space = [facts.fill[target] for target in members if target in facts.fill]
        active = [loads[target] for target in members if target in loads]
        busy = [times[target].utilisation for target in members if target in times]
        rows.append(answers.PoolRow(
            pool, len(members), sum(s.size_bytes for s in space), sum(s.avail_bytes for s in space),
            sum(row.read_bytes for row in active), write_bytes=sum(row.write_bytes for row in active),
            operations=sum(row.operations for row in active),
            utilisation=min(sum(busy) / len(busy), 1.0) if busy else None))
    return tuple(rows)


def rates_by(window: Window, place: int) -> tuple[dict[str, tuple[float, float, float]], dict[str, int]]:
    """Bytes read, bytes written and operations per second by target (``place`` 0) or job (1); number of loads."""
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    counts: defaultdict[str, int] = defaultdict(int)
    for key, load in window.loads.items():
        row, seconds = sums[key[place]], window.seconds_of(key[0])
        row[0] += load.read_bytes / seconds
        row[1] += load.write_bytes / seconds
        row[2] += load.operations / seconds
        counts[key[place]] += 1
    return {name: (row[0], row[1], row[2]) for name, row in sums.items()}, counts


def cycle_sentence(view: StatusSnapshot, gate: Gate) -> str:
    """Summary of one cycle: load, findings, queue and what holds acts back."""
    if view.window is None:
        seen = "first reading; findings need a second one"
    else:
        targets, jobs = len({target for target, _ in view.window.loads}), len(view.window.jobs)
        advice = sum(f.advice_only for f in view.findings)
        seen = f"{count_of(jobs, 'job')} on {count_of(targets, 'target')}, "
        seen += count_of(len(view.findings) - advice, "finding") + (f", {advice} advice" if advice else "")
    open_cases = sum(case.state in OPEN for case in view.cases)
    parts = [seen, f"{view.cycle_seconds:.1f} s"] if view.window else [seen]
    if open_cases:
        parts.append(f"{count_of(open_cases, 'remediation')} without a verdict")
    if view.waiting:
        parts.append(f"{count_of(view.waiting, 'move')} queued")
    if gate.operating_state.last_held:
        parts.append(f"no acts: {sentence_of(gate.operating_state.last_held)}")
    elif gate.operating_state.draining:
        parts.append(f"no new acts: {gate.operating_state.draining}")
    return "; ".join([*parts, *view.faults.values()])
