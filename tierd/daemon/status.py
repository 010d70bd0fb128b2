"""The status of the daemon: a snapshot, published after each step of an activity, and the rows of answers made of it.

A case is a finding that holds, a remediation, or both: the page and ``tierctl`` show it. The words for its state are in
:mod:`tierd.daemon.states`. Readers of the snapshot wait for no activity. The sentence about each cycle goes to the log
and to ``systemctl status``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import nlargest
from itertools import takewhile

from lustre.layout.directory import DefaultStriping, setdirstripe_arguments
from lustre.layout.model import explain
from lustre.layout.setstripe import setstripe_arguments
from tierd.act.journal.entry import Default, Entry, Recorded
from tierd.act.journal.reader import JournalReader
from tierd.acts import ORDER_KINDS, Outcome, Verdict
from tierd.daemon import answers
from tierd.daemon.activities import Activity
from tierd.daemon.answers import Case, TargetTimeRow
from tierd.daemon.loop import Daemon
from tierd.daemon.remediation import Remediation
from tierd.daemon.states import OPEN, UNDOING_VERDICTS, State, stream_sentence
from tierd.detect.device_time import TargetTime
from tierd.detect.groups import totals
from tierd.loads import BUSY_USEC, READS, WRITES, Loads, Numbers, sums
from tierd.model import Action, Facts, Finding, Window
from tierd.rates import mean_rates
from tierd.refusal import REMEDIES, Refusal, sentence_of
from tierd.text import count_of, duration_text, shell_word
from tierd.verify.judgement import Judgement

NO_WINDOW = Window(0.0, 0.0, {}, {})
Times = Mapping[str, TargetTime]
"""Device time by target."""
Curve = tuple[tuple[float, float], ...]
"""Time and bytes per second of each window."""
TARGETS_OF_CASE = 16
"""Targets of a finding whose device time is shown, at most."""
JOBS_SHOWN = 4
"""Limit on the jobs of a bar of device time."""
MAX_LISTED = 64
"""Default layouts and directories of one case that an answer has."""
BEFORE_SECONDS = 240.0
"""Part of a curve before the aggressor started."""
AFTER_SECONDS = 60.0
"""Time for which a closed case is measured, after its verdict and the end of its finding."""


def throughput_of(case: Case, windows: Sequence[Window], after: float) -> Curve:
    """Throughput of the victim, as its usual one on all its targets, in each window that ends after a time."""
    begin, end = time_of_curve(case)
    # from the newest, as the history is long
    newest = takewhile(lambda window: window.end > max(after, begin), reversed(windows))
    return tuple((window.end, window.moved.get(case.victim, 0.0)) for window in reversed([*newest])
                 if window.end <= end)


def time_of_curve(case: Case) -> tuple[float, float]:
    """The time that a curve shows: from some minutes before the aggressor started, as long as the case is measured."""
    end = max(case.since, case.ended_at or 0.0, case.judged_at or 0.0) + AFTER_SECONDS
    return (case.onset or case.since) - BEFORE_SECONDS, end if is_over(case) else float("inf")


def is_over(case: Case) -> bool:
    """Whether its finding has ended, and nothing more is done."""
    return not case.active and case.state in {"", State.CLOSED}


def with_measurements(case: Case, journal: JournalReader, windows: Sequence[Window], times: Times) -> Case:
    """The case with its curve, which the journal has but for the last minute, and with the device time now."""
    stored = journal.curve(case.finding, *time_of_curve(case)) if case.victim else ()
    newest = throughput_of(case, windows, stored[-1][0] if stored else 0.0) if case.victim else ()
    return case.replaced(curve=(*stored, *newest), time_now=None if is_over(case) else mean_time(case.targets, times))


def mean_time(targets: Iterable[str], times: Times) -> TargetTimeRow | None:
    """Device time by job on the mean of these targets; None if the costs of none are known."""
    known = [times[target] for target in list(targets)[:TARGETS_OF_CASE] if target in times]
    return time_row("", known) if any(time.utilisation > 0 for time in known) else None


def time_row(target: str, times: Sequence[TargetTime]) -> TargetTimeRow:
    """Device time of a target, or the mean of several, by the jobs that take most of it."""
    busy = sum(time.utilisation for time in times)
    seconds = totals((job, share * time.utilisation) for time in times for job, share in time.top(JOBS_SHOWN))
    most = sorted(seconds.items(), key=lambda item: -item[1])[:JOBS_SHOWN]
    rows = tuple(answers.JobTimeRow(job, round(taken / busy, 4), round(max(t.device_time(job).error for t in times), 4))
                 for job, taken in most)
    return TargetTimeRow(target, round(min(busy / len(times), 1.0), 4), rows)


def all_cases(findings: Mapping[int, Finding], cases: Sequence[Remediation], windows: Sequence[Window],
              waiting: Waiting) -> list[Case]:
    """All cases, of findings by number: those whose finding holds first, then those without a verdict, then the latest.

    Advice alone is not a case. A finding that began again after its case was closed is a case of its own, with the
    number that the journal gave it.
    """
    done = {case.number: case for case in cases}
    found = [case_of(finding, number, windows, waiting, done.pop(number, None))
             for number, finding in findings.items() if finding.victim or not finding.advice_only]
    found += [case_of(case.finding, number, windows, waiting, case, active=False) for number, case in done.items()]
    return sorted(found, key=lambda case: (not case.active, case.state not in OPEN, -case.active * case.loss,
                                           -case.since))


RECENT_SECONDS = 12.0
"""Seconds over which the present throughput is averaged: that of one window varies."""


def recent_rate(case: Case, windows: Sequence[Window]) -> float | None:
    """Throughput of the victim in the last seconds, with the aggressor active; None without a victim or a window."""
    if not (case.victim and windows):
        return None
    lately = throughput_of(case, windows[-10:], max(windows[-1].end - RECENT_SECONDS, case.onset or 0.0))
    return sum(rate for _, rate in lately) / len(lately) if lately else None


Waiting = Callable[[tuple[str, str, str]], tuple[int, int]]
"""Numbers of default layouts and of moves of a finding that are queued."""


def case_of(finding: Finding, number: int, windows: Sequence[Window], waiting: Waiting,
            done: Remediation | None = None, *, active: bool = True) -> Case:
    case = found_case(finding, number, active=active)
    if done is None or active or not done.closed:
        case = case.replaced(now=recent_rate(case, windows))
    if done is None:
        return case
    waiting_defaults, waiting_moves = waiting(finding.key)
    dry_run = bool(done.moves[Outcome.DRY_RUN]) or any(each.result == Outcome.DRY_RUN for each in done.defaults)
    case = case.replaced(
        ended_at=None if active else done.ended_at, state=done.state, dry_run=dry_run, judged=done.judged,
        undo_reason=done.undo_reason, acted_at=done.first_act_at or None,
        defaults=tuple(answers.DefaultLayoutRow(each.entry, each.action.directory, explain(each.action.layout))
                       for each in done.defaults[:MAX_LISTED]), waiting_defaults=waiting_defaults, moves=+done.moves,
        needless_moves=done.needless_moves, waiting_moves=waiting_moves, moves_held=done.moves_held,
        time_before=mean_time(finding.targets, done.times_before) if done.first_act_at and not dry_run else None,
        judged_at=done.judged_at or None)
    return judged_case(case, finding, done.verdict, done.judgement)


def judged_case(case: Case, finding: Finding, verdict: str, judgement: Judgement | None) -> Case:
    """The case with the verdict on its acts, and what they brought unless they were undone for another reason."""
    if not verdict:
        return case
    stands = not (verdict in UNDOING_VERDICTS or case.undo_reason)
    sentence = stream_sentence(case.aggressor, case.victim, finding.evidence.numbers(), past=stands or not case.active)
    case = case.replaced(verdict=verdict, sentence=sentence or case.sentence)
    if judgement is None or verdict == Verdict.UNDONE_BY_HAND or (case.undo_reason and verdict not in UNDOING_VERDICTS):
        return case
    if judgement.words or judgement.operations:
        return case.replaced(measured_text=judgement.words or f"{judgement.contended:.0f} operations/s before the "
                             f"acts, {judgement.after:.0f} operations/s after")
    own = {} if case.usual is not None else {"usual": judgement.usual or None, "contended": judgement.contended or None}
    return case.replaced(**own, after=judgement.after or None, regained=judgement.regained)


def cases_of(rows: Sequence[Recorded], known: Mapping[int, Case], journal: JournalReader) -> tuple[Case, ...]:
    """The cases of findings and orders of the journal, without curves: the known ones, and what it has of others."""
    numbers = [number for number, *_ in rows if number not in known]
    judged, defaults, moves = journal.judgements(numbers), journal.defaults_of(numbers), journal.moves_of(numbers)
    return tuple(
        known[row[0]].replaced(time_before=None) if row[0] in known else
        recorded_case(row, judged.get(row[0]), defaults.get(row[0], ()), moves.get(row[0])) for row in rows)


def recorded_case(row: Recorded, judgement: Judgement | None, defaults: Sequence[Entry],
                  moves: tuple[Mapping[str, int], float] | None) -> Case:
    """A case that only the journal has: from before a restart, or long closed."""
    number, finding, ended_at = row
    begun = [entry.intended_at for entry in defaults] + ([moves[1]] if moves else [])
    case = found_case(finding, number, active=False).replaced(
        ended_at=ended_at, acted_at=min(begun, default=None), moves=moves[0] if moves else {})
    if finding.kind in ORDER_KINDS or not (begun or judgement):
        return case
    standing = [entry for entry in defaults if entry.outcome in {Outcome.DONE, Outcome.DRY_RUN}]
    dry_run = Outcome.DRY_RUN in {*case.moves, *(entry.outcome for entry in defaults)}
    case = case.replaced(
        state=State.CLOSED, judged=True, dry_run=dry_run, judged_at=judgement.at if judgement else None,
        undo_reason=defaults[-1].detail if defaults and not standing else "",
        defaults=tuple(answers.DefaultLayoutRow(entry.id, entry.place, explain(entry.layout_after))
                       for entry in standing[:MAX_LISTED] if entry.layout_after))
    return judged_case(case, finding, judgement.verdict if judgement else "", judgement)


def found_case(finding: Finding, number: int, *, active: bool) -> Case:
    """The case of a finding, before anything is done about it."""
    numbers = finding.evidence.numbers()
    return Case.of(
        finding, finding=number, active=active, since=finding.time, onset=numbers.get("aggressor_came_at") or None,
        sentence=finding_sentence(finding, active=active),
        evidence={name: round(value, 6) for name, value in numbers.items()},
        directories=finding.directories[:MAX_LISTED], usual=numbers.get("victim_usual_bytes_per_second"),
        contended=numbers.get("victim_bytes_per_second"), loss_low=numbers.get("loss_low"),
        loss_high=numbers.get("loss_high"))


def finding_sentence(finding: Finding, *, active: bool) -> str:
    """The sentence of a finding in all views; what the aggressor does is in the log and in the evidence."""
    if sentence := stream_sentence(finding.aggressor, finding.victim, finding.evidence.numbers(), past=not active):
        return sentence
    return finding.sentence if active or finding.kind in ORDER_KINDS else f"when it was found: {finding.sentence}"


def refusal_answer(refusal: Refusal) -> answers.RefusalAnswer:
    return answers.RefusalAnswer(refusal.reason, refusal.sentence, REMEDIES.get(refusal.reason, ""))


@dataclass(frozen=True)
class StatusSnapshot:
    """State of the daemon at the end of the last step of any activity."""

    window: Window = NO_WINDOW
    windows: int = 0
    """Number of windows; 0 before the first."""
    findings: Mapping[int, Finding] = field(default_factory=dict)
    """By their numbers in the journal."""
    cases: tuple[Case, ...] = ()
    """Those whose finding holds first; without the reasons why not more is done, and without what is asked for singly:
    the curve, and the device time now."""
    looking_since: float = 0.0
    """Beginning of the history that tierd observed itself; 0 if the history is from Prometheus."""
    device_time: Times = field(default_factory=dict)
    """Device time of the targets whose service costs are known."""
    facts: Facts = field(default_factory=Facts)
    """Pools, and the space on their targets."""

    @cached_property
    def targets(self) -> list[answers.TargetRow]:
        """Load, space and latency of each target, and the slowdown of its streams: slowed first, then the busiest."""
        window, fill, slowdown = self.window, self.facts.fill, dict[str, float]()
        for finding in self.findings.values():
            stream = finding.evidence.of_stream
            if stream is not None and not finding.advice_only:
                for target in finding.targets:
                    slowdown[target] = max(slowdown.get(target, 0.0), stream.slowdown)
        rates, latencies = rates_by(window, 0), latency_by_target(window)
        counts = Counter(target for target, _ in window.loads)
        pool_of = {target: pool for pool, targets in self.facts.pools.items() for target in targets}
        rows = [answers.TargetRow(
            target=target, **rates.get(target, NO_LOAD), jobs=counts[target], slowdown=slowdown.get(target),
            condition=window.conditions.get(target, ""), pool=pool_of.get(target, ""),
            used=fill[target].used if target in fill else None, latency_usec=latencies.get(target))
            for target in dict.fromkeys((*counts, *window.conditions, *fill))]
        return sorted(rows, key=lambda row: (-(row.slowdown or 0), not row.condition, -row.operations, row.target))

    @cached_property
    def jobs(self) -> list[answers.JobRow]:
        """Load of each job: jobs of findings first, then the busiest."""
        serious = [f for f in self.findings.values() if not f.advice_only]
        role = {f.victim: "slowed" for f in serious if f.victim} | {
            job: "noise" for f in serious if f.aggressor for job in f.aggressors}
        rates, names = rates_by(self.window, 1), self.window.namespace
        counts = Counter(job for _, job in self.window.loads)
        rows = [answers.JobRow(
            job=job, **rates.get(job, NO_LOAD), targets=counts[job], role=role.get(job, ""),
            creates=names[job].creates / self.window.metadata_seconds if job in names else 0.0)
            for job in dict.fromkeys((*counts, *names))]
        return sorted(rows, key=lambda row: (not row.role, -row.operations, row.job))


def snapshot_of(daemon: Daemon) -> StatusSnapshot:
    windows, gate = daemon.windows, daemon.parts.gate
    findings = {number: daemon.log.recorded(f) for f in daemon.findings if (number := daemon.log.known_number(f))}
    waiting, device_time = gate.queue.by_finding(), daemon.engine.device_time
    with daemon.store.lock:  # for a moment: the rest is made of copies
        done = [replace(case, defaults=[*case.defaults]) for case in daemon.store]
    cases = tuple(all_cases(findings, done, windows, lambda key: (gate.default_layouts.of(key), waiting[key])))
    return StatusSnapshot(
        windows[-1] if windows else NO_WINDOW, len(windows), findings=findings, cases=cases,
        looking_since=windows[0].start if windows else 0.0, device_time=device_time, facts=daemon.facts.known)


NO_LOAD = {"read_bytes": 0.0, "write_bytes": 0.0, "operations": 0.0}


def rates_by(window: Window, place: int) -> dict[str, dict[str, float]]:
    """Rates per second by target (``place`` 0) or job (1)."""
    rates = mean_rates([window], place)
    return {name: dict(zip(NO_LOAD, numbers, strict=False))
            for name, numbers in zip(rates.names, rates.numbers.tolist(), strict=True)}


def latency_by_target(window: Window) -> dict[str, float]:
    """Mean service time of the bulk RPCs of each target, where the servers print it; microseconds."""
    loads, targets = Loads.of(window.loads), Numbers[str]()
    timed = loads.rows(loads.numbers[:, BUSY_USEC] > 0)
    found = sums(targets.of(timed.target.tolist(), len(timed)), timed.numbers, len(targets)).tolist()
    return {target: each[BUSY_USEC] / count for target, each in zip(targets, found, strict=True)
            if (count := each[READS] + each[WRITES])}


def pool_rows(view: StatusSnapshot) -> tuple[answers.PoolRow, ...]:
    loads, facts, times = {row.target: row for row in view.targets}, view.facts, view.device_time
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


TARGETS_SHOWN = 8
"""Limit on the targets whose device time ``tierctl status`` shows."""


def device_time_rows(times: Times) -> tuple[TargetTimeRow, ...]:
    """The busiest targets, and the jobs that take most of their service time."""
    busiest = nlargest(TARGETS_SHOWN, times.values(), key=lambda time: time.utilisation)
    return tuple(time_row(time.target, [time]) for time in busiest)


def action_answer(action: Action) -> answers.ActionAnswer:
    layout, striping = action.layout, action.striping
    try:
        words = " ".join(setdirstripe_arguments(striping) if striping is not None else setstripe_arguments(layout))
    except ValueError:  # lfs has no options for it, and liblustreapi sets it
        words = f"({explain(layout)})"
    return answers.ActionAnswer.of(action, action=action.kind, layout=words)


def act_answer(entry: Entry) -> answers.ActAnswer:
    return answers.ActAnswer.of(entry, time=entry.intended_at, before=layout_words(entry.before),
                                after=layout_words(entry.after))


def layout_words(default: Default) -> str | None:
    """A layout, or a default striping of directories, in words; None if there is neither."""
    if isinstance(default, DefaultStriping):
        return f"lfs setdirstripe {' '.join(setdirstripe_arguments(default))}"
    return explain(default) if default else None


def jobs_of(findings: Iterable[Finding | Case]) -> list[str]:
    return [job for finding in findings for job in (finding.aggressor, finding.victim) if job]


BUSY_SECONDS = 10.0
"""Status shows an activity after this time."""


def busy_sentences(activities: Sequence[Activity]) -> Iterator[str]:
    for each in activities:
        if each.under_way_seconds > BUSY_SECONDS:
            why = f": {each.waits_for}" if each.waits_for else ""
            yield f"{each.doing} has taken {duration_text(each.under_way_seconds)} so far{why}"


STALLED_SECONDS = 60.0
"""If moves are queued and none ends in this time, status reports them as stalled, with the reason."""


def stalled_sentences(daemon: Daemon, activities: Sequence[Activity], now: float) -> list[str]:
    """A sentence if moves are stalled, with the reason."""
    gate, moving = daemon.parts.gate, next((each for each in activities if each.name == "move"), None)
    idle = now - max(gate.last_move_at, gate.waiting_since)
    if not gate.waiting or idle <= STALLED_SECONDS or gate.queue.gives_way:
        return []
    why = sentence_of(gate.operating_state.last_held or next(daemon.blocked_by(), None)) or gate.queue.waits_for
    if not why and moving is not None and moving.begun_at:
        why = moving.waits_for or f"{moving.doing} has taken {now - moving.begun_at:.0f} s so far"
    return [f"no move has ended for {idle:.0f} s while {gate.waiting} are queued: {why or 'the reason is not known'}"]


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


def cycle_sentence(view: StatusSnapshot, daemon: Daemon) -> str:
    """Summary of one cycle: load, findings, queue and what holds acts back."""
    gate = daemon.parts.gate
    parts = ["first reading; findings need a second one"]
    if view.windows:
        targets, jobs = len({target for target, _ in view.window.loads}), len(view.window.jobs)
        found = sum(not f.advice_only for f in view.findings.values())
        parts = [f"{count_of(jobs, 'job')} on {count_of(targets, 'target')}, {count_of(found, 'finding')}",
                 f"{daemon.counters.cycle_seconds:.1f} s"]
    if gate.waiting:
        parts.append(f"{count_of(gate.waiting, 'move')} queued")
    if held := gate.operating_state.new_work_refusal:
        parts.append(f"no new acts: {held}")
    if daemon.faults:  # each was logged in full when it began
        parts.append(f"problems: {', '.join(daemon.faults)}")
    return "; ".join(parts)
