"""Cases: each finding with what is done about it, as the page and ``tierctl`` show it.

A case is a finding that holds, a remediation, or both. The words for its state are in :mod:`tierd.daemon.states`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from lustre.layout.model import explain
from tierd.acts import Outcome, Verdict
from tierd.daemon.answers import CaseAnswer, DefaultLayoutRow, JobTimeRow, RefusalAnswer, TargetTimeRow
from tierd.daemon.curves import MAX_POINTS, Curve, Stream, StreamCurves
from tierd.daemon.remediation import Remediation
from tierd.daemon.states import OPEN, UNDONE_VERDICT, State, past_sentence
from tierd.detect.device_time import TargetTime
from tierd.model import Finding, Window
from tierd.refusal import REMEDIES, Refusal
from tierd.verify.judgement import Judgement

Key = tuple[str, str, str]
TARGETS_OF_CASE = 16
"""Targets of a finding whose device time is shown, at most."""
JOBS_OF_CASE = 4
MAX_LISTED = 64
"""Default layouts and directories of one case that an answer has."""


@dataclass(frozen=True, slots=True)
class RemediationSnapshot:
    """A remediation as status shows it."""

    number: int
    finding: Finding
    begun_at: float
    acted_at: float
    state: State
    judged: bool
    verdict: Verdict
    """Empty before the verdict."""
    judgement: Judgement | None
    judged_at: float
    defaults: tuple[DefaultLayoutRow, ...]
    queued: int
    moved_at: float
    dry_run: bool
    """Whether its default layouts were set in a dry run, so that nothing has changed."""
    waiting_defaults: int = 0
    """Number of queued default layouts."""
    waiting_moves: int = 0
    moves_held: bool = False
    """Whether its moves wait, so that the effect is measured without them."""
    undo_reason: str = ""
    """Why its default layouts are being undone."""


def remediation_snapshot(case: Remediation, waiting_defaults: int, waiting_moves: int) -> RemediationSnapshot:
    """The present state of a remediation. The caller holds the lock of the store."""
    defaults = tuple(DefaultLayoutRow(done.entry, done.action.directory, explain(done.action.layout))
                     for done in case.defaults[:MAX_LISTED])
    dry_run = bool(case.defaults) and all(done.result == Outcome.DRY_RUN for done in case.defaults)
    return RemediationSnapshot(
        case.number, case.finding, case.begun_at, case.acted_at, case.state, case.judged, case.verdict, case.judgement,
        case.judged_at, defaults, case.queued, case.moved_at, dry_run, waiting_defaults, waiting_moves,
        case.moves_held, case.undo_reason)


@dataclass(frozen=True, slots=True)
class PastFigures:
    """What was measured for a case until it was over."""

    curve: Curve
    """From some minutes before the aggressor came until a minute after the verdict and the end of the finding."""
    onset: float | None
    time_before: TargetTimeRow | None


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """What is measured for the cases that are not over, by their keys; and what was, by number."""

    streams: Mapping[Key, Stream] = field(default_factory=dict)
    curves: Mapping[Key, Curve] = field(default_factory=dict)
    """Rate of the victim on the targets of the finding, from some minutes before the aggressor came."""
    time_now: Mapping[Key, TargetTimeRow] = field(default_factory=dict)
    time_before: Mapping[Key, TargetTimeRow] = field(default_factory=dict)
    """Before the first act."""
    onsets: Mapping[Key, float] = field(default_factory=dict)
    """When the aggressor came."""
    times: Mapping[str, TargetTime] = field(default_factory=dict)
    """The device times that ``time_now`` was made of."""
    ended: Mapping[int, float] = field(default_factory=dict)
    """When the finding of each remediation ended."""
    past: Mapping[int, PastFigures] = field(default_factory=dict)


AFTER_SECONDS = 60.0
"""A closed case is measured so long after its verdict and the end of its finding."""
BEFORE_SECONDS = 240.0
"""Part of a curve before the aggressor came."""


def updated_figures(before: CaseFigures, curves: StreamCurves, findings: Sequence[Finding],
                    cases: Sequence[RemediationSnapshot], windows: Sequence[Window],
                    times: Mapping[str, TargetTime], numbers: Mapping[Key, int] | None = None) -> CaseFigures:
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
    onsets = {key: (before.onsets.get(key) if key not in anew else None) or onset(finding)
              for key, finding in live.items()}
    streams = {key: (finding.victim, frozenset(finding.targets)) for key, finding in live.items() if finding.victim}
    drawn = curves.updated(windows, streams.values())
    known = {key: curve for key, curve in before.curves.items()
             if key not in anew and before.streams.get(key) == streams.get(key)}
    grown = {key: extended(known.get(key, ()), drawn.get(stream, ()), (onsets[key] or live[key].time) - BEFORE_SECONDS)
             for key, stream in streams.items()}
    acted = {case.finding.key for case in cases
             if has_acted(case) and not case.dry_run and case.number not in past}
    known_now = before.time_now if before.times is times else {}  # activities publish several times in a cycle
    now = {key: row for key, finding in live.items()
           if (row := known_now[key] if key in known_now else mean_time(finding.targets, times)) is not None}
    earlier = {key: row for key in live if (row := before.time_before.get(key) if key in acted else now.get(key))}
    return CaseFigures(streams, {key: curve for key, curve in grown.items() if curve}, now, earlier,
                       {key: since for key, since in onsets.items() if since}, times, ended, past)


def begun_again(holding: Collection[Key], numbers: Mapping[Key, int], cases: Iterable[RemediationSnapshot]) -> set[Key]:
    """Keys of findings that began again after their case was closed."""
    return {key for case in cases if (key := case.finding.key) in holding and case.state == State.CLOSED
            and numbers.get(key) not in {None, case.number}}


def past_figures(case: RemediationSnapshot, figures: CaseFigures) -> PastFigures:
    """What is kept of a case that is over."""
    key = case.finding.key
    return PastFigures(figures.curves.get(key, ()), figures.onsets.get(key),
                       figures.time_before.get(key) if has_acted(case) and not case.dry_run else None)


UNTHINNED_POINTS = 24
"""Newest points of a curve that are not averaged: the present rate is their mean."""


def extended(curve: Curve, fresh: Curve, begin: float) -> Curve:
    """A curve with further points of its stream, from a time on. A long one gets means over equal times.

    >>> extended(((5.0, 1.0),), ((5.0, 1.0), (10.0, 3.0)), 0.0), extended((), ((5.0, 1.0), (10.0, 3.0)), 6.0)
    (((5.0, 1.0), (10.0, 3.0)), ((10.0, 3.0),))
    >>> whole = tuple((float(n), 1.0) for n in range(3 * MAX_POINTS))
    >>> means = extended((), whole, 0.0)
    >>> len(means) <= MAX_POINTS, means[-1], {rate for _, rate in means}
    (True, (1079.0, 1.0), {1.0})
    """
    since = curve[-1][0] if curve else float("-inf")
    new = tuple(point for point in fresh if point[0] > since and point[0] >= begin)
    both = (*curve, *new) if new else curve
    if len(both) <= MAX_POINTS:
        return both
    old, newest = both[:-UNTHINNED_POINTS], both[-UNTHINNED_POINTS:]
    width = (old[-1][0] - old[0][0]) / (MAX_POINTS // 2)
    means = [(part[-1][0], sum(rate for _, rate in part) / len(part)) for part in (
        tuple(each) for _, each in groupby(old, lambda point: int((point[0] - old[0][0]) / width)))]
    return (*means, *newest)


def has_acted(case: RemediationSnapshot) -> bool:
    """Whether anything was done about its finding, also in a dry run."""
    return bool(case.defaults or case.moved_at or case.verdict)


def onset(finding: Finding) -> float:
    """When the aggressor came. 0 if it was there before the stream was seen."""
    stream = finding.evidence.of_stream
    return stream.aggressor_came_at if stream is not None else 0.0


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


def case_answers(findings: Sequence[Finding], numbers: Mapping[Key, int], cases: Sequence[RemediationSnapshot],
                 why_not: Mapping[Key, Sequence[Refusal]], figures: CaseFigures) -> list[CaseAnswer]:
    """All cases: those whose finding holds first, then those without a verdict, then the latest.

    A finding that began again after its case was closed is a case of its own, with the number that the journal gave it.
    """
    holding = {finding.key: finding for finding in findings if not finding.advice_only}
    by_key = {case.finding.key: case for case in cases}
    again = begun_again(holding, numbers, cases)
    found = [_found(finding, numbers.get(key), why_not.get(key, ()), figures) if key not in by_key or key in again
             else _acted_on(by_key[key], True, why_not.get(key, ()), figures) for key, finding in holding.items()]
    found += [_acted_on(case, False, (), figures) for key, case in by_key.items() if key not in holding or key in again]
    return sorted(found, key=lambda case: (not case.active, case.state not in OPEN, -_loss(case), -case.since))


RECENT_SECONDS = 12.0
"""Throughput now is the mean of so many seconds: that of one window varies."""


def recent_rate(curve: Curve) -> float | None:
    """Throughput in the last seconds; None without a curve.

    >>> recent_rate(((0.0, 9.0), (5.0, 1.0), (10.0, 2.0), (15.0, 3.0))), recent_rate(())
    (2.0, None)
    """
    lately = [rate for time, rate in curve[-10:] if time > curve[-1][0] - RECENT_SECONDS]
    return sum(lately) / len(lately) if lately else None


def _loss(case: CaseAnswer) -> float:
    return 1 - (case.contended or 0.0) / case.usual if case.active and case.usual else 0.0


def _found(finding: Finding, number: int | None, why_not: Sequence[Refusal], figures: CaseFigures) -> CaseAnswer:
    """A finding that holds and is not acted on."""
    key, rates = finding.key, finding.evidence.of_stream
    curve = figures.curves.get(key, ())
    return CaseAnswer(
        finding=number, kind=finding.kind, sentence=finding.sentence, aggressor=finding.aggressor,
        victim=finding.victim, subject=finding.subject, active=True, since=finding.time,
        onset=figures.onsets.get(key), targets=finding.targets, directories=finding.directories[:MAX_LISTED],
        state="", verdict="", judged=False, undo_reason="", why_not=tuple(map(refusal_answer, why_not)),
        usual=rates.victim_usual_bytes_per_second if rates else None,
        contended=rates.victim_bytes_per_second if rates else None, now=recent_rate(curve), after=None,
        acted_at=None, judged_at=None, defaults=(), waiting_defaults=0, moves=0, waiting_moves=0, moves_held=False,
        curve=curve, time_before=None, time_now=figures.time_now.get(key))


def _acted_on(case: RemediationSnapshot, active: bool, why_not: Sequence[Refusal],
              figures: CaseFigures) -> CaseAnswer:
    """A case with a remediation."""
    finding, judgement = case.finding, case.judgement if case.verdict != UNDONE_VERDICT else None
    answer = _found(finding, case.number, why_not, figures)
    measured = judgement if judgement and not judgement.words else None
    answer = answer.replaced(
        active=active, state=case.state, verdict=case.verdict, judged=case.judged,
        undo_reason=case.undo_reason, usual=measured.usual if measured else answer.usual,
        contended=measured.contended if measured else answer.contended,
        measured_text=judgement.words if judgement else "",
        after=measured.after or None if measured else None, regained=measured.regained if measured else None,
        acted_at=(case.begun_at if case.defaults else case.moved_at or case.acted_at) if has_acted(case) else None,
        judged_at=case.judged_at or None, defaults=case.defaults, waiting_defaults=case.waiting_defaults,
        moves=case.queued, waiting_moves=case.waiting_moves, moves_held=case.moves_held,
        time_before=figures.time_before.get(finding.key) if has_acted(case) and not case.dry_run else None)
    if active:
        return answer
    answer = answer.replaced(
        ended_at=figures.ended.get(case.number),
        sentence=past_sentence(finding.sentence, finding.aggressor, finding.victim, finding.evidence.numbers()))
    past = figures.past.get(case.number)
    return answer if past is None else answer.replaced(curve=past.curve, onset=past.onset, now=None, time_now=None,
                                                       time_before=past.time_before)


def refusal_answer(refusal: Refusal) -> RefusalAnswer:
    """Why something is not done, and what would change that."""
    return RefusalAnswer(refusal.reason, refusal.sentence, REMEDIES.get(refusal.reason, ""))
