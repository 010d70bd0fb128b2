"""Cases: each finding with what is done about it, as the page and ``tierctl`` show it.

A case is a finding that holds, a remediation, or both. The words for its state are in :mod:`tierd.daemon.states`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, takewhile

from lustre.layout.model import explain
from tierd.acts import Verdict
from tierd.daemon.answers import Case, DefaultLayoutRow, JobTimeRow, RefusalAnswer, TargetTimeRow
from tierd.daemon.remediation import Remediation
from tierd.daemon.states import OPEN, State, past_sentence
from tierd.detect.device_time import TargetTime
from tierd.model import Finding, Window
from tierd.refusal import REMEDIES, Refusal

Key = tuple[str, str, str]
Curve = tuple[tuple[float, float], ...]
"""Time and bytes per second of each window."""
Stream = tuple[str, frozenset[str]]
"""A job, and the targets on which its throughput counts."""
MAX_POINTS = 360
"""Points of a curve in memory: half an hour at cycles of five seconds."""
MAX_STREAMS = 50
TARGETS_OF_CASE = 16
"""Targets of a finding whose device time is shown, at most."""
JOBS_OF_CASE = 4
MAX_LISTED = 64
"""Default layouts and directories of one case that an answer has."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What is measured for a case, or was until it was over."""

    stream: Stream | None = None
    """The victim, and the targets of the finding."""
    curve: Curve = ()
    """Rate of the victim on these targets, from some minutes before the aggressor came until a minute after the verdict
    and the end of the finding."""
    onset: float | None = None
    """When the aggressor came; None if it was there before the stream was seen."""
    time_now: TargetTimeRow | None = None
    time_before: TargetTimeRow | None = None
    """Before the first act."""


NONE = Figures()


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """The figures of all cases."""

    live: Mapping[Key, Figures] = field(default_factory=dict)
    """Of the cases that are not over."""
    past: Mapping[int, Figures] = field(default_factory=dict)
    """Of those that are, by the number of the finding."""
    ended: Mapping[int, float] = field(default_factory=dict)
    """When the finding of each remediation ended."""
    times: Mapping[str, TargetTime] = field(default_factory=dict)
    """The device times that ``time_now`` was made of."""


AFTER_SECONDS = 60.0
"""A closed case is measured so long after its verdict and the end of its finding."""
BEFORE_SECONDS = 240.0
"""Part of a curve before the aggressor came."""


def updated_figures(before: CaseFigures, findings: Sequence[Finding], cases: Sequence[Remediation],
                    windows: Sequence[Window], times: Mapping[str, TargetTime],
                    numbers: Mapping[Key, int] | None = None) -> CaseFigures:
    """The figures of the present cases. What was measured before the first act stays, and so does a closed case.

    ``numbers`` are those of the findings.
    """
    holding = {finding.key: finding for finding in findings if not finding.advice_only}
    time = windows[-1].end if windows else 0.0
    again = begun_again(holding, numbers or {}, cases)
    over = [case for case in cases if case.finding.key not in holding or case.finding.key in again]
    ended = {case.number: before.ended.get(case.number, time) for case in over}
    past = {case.number: before.past.get(case.number) or past_figures(case, before) for case in over
            if case.number in before.past or case.finding.key in again
            or (case.state is State.CLOSED and time > max(ended[case.number], case.judged_at) + AFTER_SECONDS)}
    anew = {case.finding.key for case in over if case.number in past}
    """Keys whose figures so far are those of a case that is over."""
    live = {**holding, **{case.finding.key: case.finding for case in cases if case.number not in past}}
    drawn = [key for key, finding in live.items() if finding.victim][:MAX_STREAMS]
    acted = {case.finding.key for case in cases if case.number not in past and changed(case)}
    figures = {}
    for key, finding in live.items():
        known = before.live.get(key, NONE)
        same = known if key not in anew else NONE
        came = same.onset or onset(finding)
        stream = finding.victim, frozenset(finding.targets)
        begin = (came or finding.time) - BEFORE_SECONDS
        curve = same.curve if same.stream == stream else ()
        # activities publish several times in a cycle
        now = (known.time_now if before.times is times else None) or mean_time(finding.targets, times)
        figures[key] = Figures(stream, extended(curve, windows, stream, begin) if key in drawn else (), came,
                               time_now=now, time_before=known.time_before if key in acted else now)
    return CaseFigures(figures, past, ended, times)


def begun_again(holding: Collection[Key], numbers: Mapping[Key, int], cases: Iterable[Remediation]) -> set[Key]:
    """Keys of findings that began again after their case was closed."""
    return {key for case in cases if (key := case.finding.key) in holding and case.state == State.CLOSED
            and numbers.get(key) not in {None, case.number}}


def changed(case: Remediation) -> bool:
    """Whether anything was done about its finding that was no dry run."""
    return case.has_acted and not case.dry_run


def past_figures(case: Remediation, figures: CaseFigures) -> Figures:
    """What is kept of a case that is over."""
    own = figures.live.get(case.finding.key, NONE)
    return replace(own, time_now=None, time_before=own.time_before if changed(case) else None)


UNTHINNED_POINTS = 24
"""Newest points of a curve that are not averaged: the present rate is their mean."""


def extended(curve: Curve, windows: Sequence[Window], stream: Stream, begin: float) -> Curve:
    """A curve with the points of windows that it lacks, from a time on."""
    since = curve[-1][0] if curve else float("-inf")
    lacking = takewhile(lambda window: window.end > since and window.end >= begin, reversed(windows))
    return thinned((*curve, *reversed([(window.end, throughput_on(window, *stream)) for window in lacking])))


def throughput_on(window: Window, job: str, targets: Iterable[str]) -> float:
    """Bytes per second of a job in a window, on these targets."""
    loads = (window.loads.get((target, job)) for target in targets)
    return sum(load.moved_bytes / window.seconds_of(load.target) for load in loads if load is not None)


def thinned(both: Curve) -> Curve:
    """A curve; of a long one, the means over equal times.

    >>> means = thinned(tuple((float(n), 1.0) for n in range(3 * MAX_POINTS)))
    >>> len(means) <= MAX_POINTS, means[-1], {rate for _, rate in means}
    (True, (1079.0, 1.0), {1.0})
    """
    if len(both) <= MAX_POINTS:
        return both
    old, newest = both[:-UNTHINNED_POINTS], both[-UNTHINNED_POINTS:]
    width = (old[-1][0] - old[0][0]) / (MAX_POINTS // 2)
    means = [(part[-1][0], sum(rate for _, rate in part) / len(part)) for part in (
        tuple(each) for _, each in groupby(old, lambda point: int((point[0] - old[0][0]) / width)))]
    return (*means, *newest)


def onset(finding: Finding) -> float | None:
    """When the aggressor came; None if it was there before the stream was seen."""
    stream = finding.evidence.of_stream
    return stream.aggressor_came_at or None if stream is not None else None


def mean_time(targets: Iterable[str], times: Mapping[str, TargetTime]) -> TargetTimeRow | None:
    """Device time by job on the mean of these targets; None if the costs of none are known."""
    known = [times[target] for target in list(targets)[:TARGETS_OF_CASE] if target in times]
    busy = sum(time.utilisation for time in known)
    if not known or busy <= 0:
        return None
    seconds: defaultdict[str, float] = defaultdict(float)
    for time in known:
        for job, share in time.top(JOBS_OF_CASE):
            seconds[job] += share * time.utilisation
    most = sorted(seconds.items(), key=lambda item: -item[1])[:JOBS_OF_CASE]
    rows = tuple(JobTimeRow(job, round(taken / busy, 4), round(max(t.device_time(job).error for t in known), 4))
                 for job, taken in most)
    error = max(time.utilisation_error for time in known)
    return TargetTimeRow("", round(min(busy / len(known), 1.0), 4), round(error, 4), rows)


def all_cases(findings: Sequence[Finding], numbers: Mapping[Key, int], cases: Sequence[Remediation],
              figures: CaseFigures, waiting: Waiting) -> list[Case]:
    """All cases: those whose finding holds first, then those without a verdict, then the latest.

    A finding that began again after its case was closed is a case of its own, with the number that the journal gave it.
    """
    holding = {finding.key: finding for finding in findings if not finding.advice_only}
    by_key = {case.finding.key: case for case in cases}
    again = begun_again(holding, numbers, cases)
    found = [case_of(by_key[key].finding, by_key[key].number, figures, waiting, by_key[key])
             if key in by_key and key not in again else case_of(finding, numbers.get(key), figures, waiting)
             for key, finding in holding.items()]
    found += [case_of(case.finding, case.number, figures, waiting, case, active=False)
              for key, case in by_key.items() if key not in holding or key in again]
    return sorted(found, key=lambda case: (not case.active, case.state not in OPEN, -case.active * case.loss,
                                           -case.since))


RECENT_SECONDS = 12.0
"""Throughput now is the mean of so many seconds: that of one window varies."""


def recent_rate(curve: Curve) -> float | None:
    """Throughput in the last seconds; None without a curve.

    >>> recent_rate(((0.0, 9.0), (5.0, 1.0), (10.0, 2.0), (15.0, 3.0))), recent_rate(())
    (2.0, None)
    """
    lately = [rate for time, rate in curve[-10:] if time > curve[-1][0] - RECENT_SECONDS]
    return sum(lately) / len(lately) if lately else None


Waiting = Callable[[Key], tuple[int, int]]
"""Numbers of default layouts and of moves of a finding that are queued."""


def case_of(finding: Finding, number: int | None, figures: CaseFigures, waiting: Waiting,
            done: Remediation | None = None, *, active: bool = True) -> Case:
    past = figures.past.get(done.number) if done and not active else None
    own, rates = past or figures.live.get(finding.key, NONE), finding.evidence.of_stream
    case = Case.of(
        finding, finding=number, sentence=finding.sentence if active else past_sentence(
            finding.sentence, finding.aggressor, finding.victim, finding.evidence.numbers()),
        active=active, since=finding.time, onset=own.onset, directories=finding.directories[:MAX_LISTED],
        usual=rates.victim_usual_bytes_per_second if rates else None,
        contended=rates.victim_bytes_per_second if rates else None,
        now=None if past else recent_rate(own.curve), curve=own.curve, time_now=own.time_now)
    if done is None:
        return case
    judgement = done.judgement if done.verdict != Verdict.UNDONE_BY_HAND else None
    if judgement and not judgement.words:
        case = case.replaced(usual=judgement.usual, contended=judgement.contended, after=judgement.after or None,
                             regained=judgement.regained)
    waiting_defaults, waiting_moves = waiting(finding.key)
    return case.replaced(
        ended_at=None if active else figures.ended.get(done.number), state=done.state, verdict=done.verdict,
        measured_text=judgement.words if judgement else "", judged=done.judged, undo_reason=done.undo_reason,
        acted_at=(done.begun_at if done.defaults else done.moved_at or done.acted_at) if done.has_acted else None,
        judged_at=done.judged_at or None,
        defaults=tuple(DefaultLayoutRow(each.entry, each.action.directory, explain(each.action.layout))
                       for each in done.defaults[:MAX_LISTED]),
        waiting_defaults=waiting_defaults, moves=done.queued, waiting_moves=waiting_moves, moved=done.moved,
        moves_held=done.moves_held, time_before=own.time_before if past or changed(done) else None)


def refusal_answer(refusal: Refusal) -> RefusalAnswer:
    return RefusalAnswer(refusal.reason, refusal.sentence, REMEDIES.get(refusal.reason, ""))
