"""Cases: each finding with what is done about it, as the page and ``tierctl`` show it.

A case is a finding that holds, a remediation, or both. The words for its state are in :mod:`tierd.daemon.states`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile

from lustre.layout.model import explain
from tierd.act.journal.entry import Entry, Recorded
from tierd.act.journal.reader import JournalReader, MovesRow
from tierd.acts import ORDER_KINDS, Outcome, Verdict
from tierd.daemon.answers import Case, DefaultLayoutRow, JobTimeRow, RefusalAnswer, TargetTimeRow
from tierd.daemon.remediation import Remediation
from tierd.daemon.states import OPEN, UNDOING_VERDICTS, State, stream_sentence
from tierd.detect.device_time import TargetTime
from tierd.detect.groups import totals
from tierd.model import Finding, Window
from tierd.refusal import REMEDIES, Refusal
from tierd.verify.judgement import Judgement

Curve = tuple[tuple[float, float], ...]
"""Time and bytes per second of each window."""
TARGETS_OF_CASE = 16
"""Targets of a finding whose device time is shown, at most."""
JOBS_SHOWN = 4
"""Limit on the jobs of a bar of device time."""
MAX_LISTED = 64
"""Default layouts and directories of one case that an answer has."""
BEFORE_SECONDS = 240.0
"""Part of a curve before the aggressor came."""
AFTER_SECONDS = 60.0
"""A closed case is measured so long after its verdict and the end of its finding."""


def throughput_of(case: Case, windows: Sequence[Window], after: float) -> Curve:
    """Throughput of the victim on the targets of the case in each window that ends after a time."""
    begin, end = time_of_curve(case)
    newest = takewhile(lambda window: window.end > max(after, begin), reversed(windows))
    return tuple((window.end, sum(load.moved_bytes / window.seconds_of(target) for target in case.targets
                                  if (load := window.loads.get((target, case.victim))) is not None))
                 for window in reversed([*newest]) if window.end <= end)


def time_of_curve(case: Case) -> tuple[float, float]:
    """The time that a curve shows: from some minutes before the aggressor came, as long as the case is measured."""
    end = max(case.since, case.ended_at or 0.0, case.judged_at or 0.0) + AFTER_SECONDS
    return (case.onset or case.since) - BEFORE_SECONDS, end if is_over(case) else float("inf")


def is_over(case: Case) -> bool:
    """Whether its finding has ended, and nothing more is done."""
    return not case.active and case.state in {"", State.CLOSED}


def with_measurements(case: Case, journal: JournalReader, windows: Sequence[Window], times: Mapping[str, TargetTime]
                      ) -> Case:
    """The case with its curve, which the journal has but for the last minute, and with the device time now."""
    stored = journal.curve(case.finding, *time_of_curve(case)) if case.victim else ()
    newest = throughput_of(case, windows, stored[-1][0] if stored else 0.0) if case.victim else ()
    return case.replaced(curve=(*stored, *newest), time_now=None if is_over(case) else mean_time(case.targets, times))


def mean_time(targets: Iterable[str], times: Mapping[str, TargetTime]) -> TargetTimeRow | None:
    """Device time by job on the mean of these targets; None if the costs of none are known."""
    known = [times[target] for target in list(targets)[:TARGETS_OF_CASE] if target in times]
    return time_row("", known) if any(time.utilisation > 0 for time in known) else None


def time_row(target: str, times: Sequence[TargetTime]) -> TargetTimeRow:
    """Device time of a target, or the mean of several, by the jobs that take most of it."""
    busy = sum(time.utilisation for time in times)
    seconds = totals((job, share * time.utilisation) for time in times for job, share in time.top(JOBS_SHOWN))
    most = sorted(seconds.items(), key=lambda item: -item[1])[:JOBS_SHOWN]
    rows = tuple(JobTimeRow(job, round(taken / busy, 4), round(max(t.device_time(job).error for t in times), 4))
                 for job, taken in most)
    error = max(time.utilisation_error for time in times)
    return TargetTimeRow(target, round(min(busy / len(times), 1.0), 4), round(error, 4), rows)


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
"""Throughput now is the mean of so many seconds: that of one window varies."""


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
        defaults=tuple(DefaultLayoutRow(each.entry, each.action.directory, explain(each.action.layout))
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
                  moves: MovesRow | None) -> Case:
    """A case that only the journal has: from before a restart, or long closed."""
    number, finding, ended_at = row
    begun = [entry.intended_at for entry in defaults] + ([moves.first_at] if moves else [])
    case = found_case(finding, number, active=False).replaced(
        ended_at=ended_at, acted_at=min(begun, default=None), moves=moves.outcomes if moves else {})
    if finding.kind in ORDER_KINDS or not (begun or judgement):
        return case
    standing = [entry for entry in defaults if entry.outcome in {Outcome.DONE, Outcome.DRY_RUN}]
    dry_run = Outcome.DRY_RUN in {*case.moves, *(entry.outcome for entry in defaults)}
    case = case.replaced(
        state=State.CLOSED, judged=True, dry_run=dry_run, judged_at=judgement.at if judgement else None,
        undo_reason=defaults[-1].detail if defaults and not standing else "",
        defaults=tuple(DefaultLayoutRow(entry.id, entry.place, explain(entry.layout_after))
                       for entry in standing[:MAX_LISTED] if entry.layout_after))
    return judged_case(case, finding, judgement.verdict if judgement else "", judgement)


def found_case(finding: Finding, number: int, *, active: bool) -> Case:
    """The case of a finding, before anything is done about it."""
    numbers = finding.evidence.numbers()
    return Case.of(
        finding, finding=number, active=active, since=finding.time, onset=numbers.get("aggressor_came_at") or None,
        sentence=sentence_of(finding, active=active),
        directories=finding.directories[:MAX_LISTED], usual=numbers.get("victim_usual_bytes_per_second"),
        contended=numbers.get("victim_bytes_per_second"), loss_low=numbers.get("loss_low"),
        loss_high=numbers.get("loss_high"))


def sentence_of(finding: Finding, *, active: bool) -> str:
    """The sentence of a finding in all views; what the aggressor does is in the log and in the evidence."""
    if sentence := stream_sentence(finding.aggressor, finding.victim, finding.evidence.numbers(), past=not active):
        return sentence
    return finding.sentence if active or finding.kind in ORDER_KINDS else f"when it was found: {finding.sentence}"


def refusal_answer(refusal: Refusal) -> RefusalAnswer:
    return RefusalAnswer(refusal.reason, refusal.sentence, REMEDIES.get(refusal.reason, ""))
