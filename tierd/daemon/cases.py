"""Cases: each finding with what is done about it, as the page and ``tierctl`` show it.

A case is a finding that holds, a remediation, or both. The words for its state are in :mod:`tierd.daemon.states`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lustre.layout.model import explain
from tierd.acts import Outcome, Verdict
from tierd.daemon.answers import CaseAnswer, DefaultLayoutRow, JobTimeRow, RefusalAnswer, TargetTimeRow
from tierd.daemon.curves import Curve, StreamCurves
from tierd.daemon.remediation import Remediation
from tierd.daemon.states import OPEN, State
from tierd.detect.device_time import TargetTime
from tierd.model import Finding, NoisyNeighbourEvidence, SlowdownEvidence, Window
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
class CaseFigures:
    """What is measured for the cases, by their keys."""

    widest: Mapping[Key, Finding] = field(default_factory=dict)
    """The finding with the most targets since the case began. A finding may rest on fewer targets for one cycle, and
    its rates are those on these targets."""
    curves: Mapping[Key, Curve] = field(default_factory=dict)
    """Rate of the victim on the targets of ``widest``."""
    time_now: Mapping[Key, TargetTimeRow] = field(default_factory=dict)
    time_before: Mapping[Key, TargetTimeRow] = field(default_factory=dict)
    """Before the first act."""
    onsets: Mapping[Key, float] = field(default_factory=dict)
    """When the aggressor came."""
    times: Mapping[str, TargetTime] = field(default_factory=dict)
    """The device times that ``time_now`` was made of."""


def updated_figures(before: CaseFigures, curves: StreamCurves, findings: Sequence[Finding],
                    cases: Sequence[RemediationSnapshot], windows: Sequence[Window],
                    times: Mapping[str, TargetTime]) -> CaseFigures:
    """The figures of the present cases. What was measured before the first act stays."""
    widest: dict[Key, Finding] = {}
    for finding in (*(case.finding for case in cases), *findings):
        if not finding.advice_only:
            known = before.widest.get(finding.key), widest.get(finding.key), finding
            widest[finding.key] = max((f for f in known if f is not None), key=lambda each: len(each.targets))
    streams = {key: (finding.victim, frozenset(finding.targets)) for key, finding in widest.items() if finding.victim}
    drawn = curves.updated(windows, streams.values())
    acted = {case.finding.key for case in cases if has_acted(case) and not case.dry_run}
    known_now = before.time_now if before.times is times else {}  # activities publish several times in a cycle
    now = {key: row for key, finding in widest.items()
           if (row := known_now[key] if key in known_now and before.widest.get(key) is finding
               else mean_time(finding.targets, times)) is not None}
    earlier = {key: row for key in widest if (row := before.time_before.get(key) if key in acted else now.get(key))}
    onsets = {key: before.onsets.get(key) or onset(finding, windows) for key, finding in widest.items()}
    return CaseFigures(widest, {key: drawn[stream] for key, stream in streams.items() if stream in drawn}, now, earlier,
                       {key: time for key, time in onsets.items() if time}, times)


def has_acted(case: RemediationSnapshot) -> bool:
    """Whether anything was done about its finding, also in a dry run."""
    return bool(case.defaults or case.moved_at or case.verdict)


def onset(finding: Finding, windows: Sequence[Window]) -> float:
    """When the aggressor came: the start of the windows beside it. 0 if it was active before tierd started."""
    evidence = finding.evidence
    if not isinstance(evidence, SlowdownEvidence) or (
            isinstance(evidence, NoisyNeighbourEvidence) and evidence.lacks_past):
        return 0.0
    until = [window for window in windows if window.end <= finding.time + 1.0]
    return until[-min(evidence.contended_windows, len(until))].start if until and evidence.contended_windows else 0.0


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
    again = {key for key, case in by_key.items()
             if key in holding and case.state == State.CLOSED and numbers.get(key) not in {None, case.number}}
    keys = dict.fromkeys((*holding, *by_key))
    found = [_answer(holding.get(key) or by_key[key].finding, numbers.get(key),
                     None if key in again else by_key.get(key), key in holding, why_not.get(key, ()), figures)
             for key in keys]
    found += [_answer(by_key[key].finding, by_key[key].number, by_key[key], False, (), figures) for key in again]
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


def _answer(finding: Finding, number: int | None, case: RemediationSnapshot | None, active: bool,
            why_not: Sequence[Refusal], figures: CaseFigures) -> CaseAnswer:
    key = finding.key
    widest = figures.widest.get(key, finding)
    evidence = widest.evidence
    curve = figures.curves.get(key, ())
    rates = evidence if isinstance(evidence, SlowdownEvidence) else None
    answer = CaseAnswer(
        finding=number, kind=finding.kind, sentence=finding.sentence, aggressor=finding.aggressor,
        victim=finding.victim, subject=finding.subject, active=active, since=finding.time,
        onset=figures.onsets.get(key), targets=widest.targets, directories=finding.directories[:MAX_LISTED],
        state="", verdict="", judged=False, undo_reason="", why_not=tuple(map(refusal_answer, why_not)),
        usual=rates.victim_usual_bytes_per_second if rates else None,
        contended=rates.victim_bytes_per_second if rates else None, now=recent_rate(curve), after=None,
        acted_at=None, judged_at=None, defaults=(), waiting_defaults=0, moves=0, waiting_moves=0, moves_held=False,
        curve=curve, time_before=None, time_now=figures.time_now.get(key))
    if case is None:
        return answer
    judgement = case.judgement
    return answer.replaced(
        finding=case.number, since=case.finding.time, directories=case.finding.directories[:MAX_LISTED],
        state=case.state, verdict=case.verdict, judged=case.judged, undo_reason=case.undo_reason,
        usual=judgement.usual if judgement and not judgement.words else answer.usual,
        contended=judgement.contended if judgement and not judgement.words else answer.contended,
        measured_text=judgement.words if judgement else "",
        after=judgement.after if judgement and judgement.after else None,
        acted_at=(case.begun_at if case.defaults else case.moved_at or case.acted_at) if has_acted(case) else None,
        judged_at=case.judged_at or None, defaults=case.defaults, waiting_defaults=case.waiting_defaults,
        moves=case.queued, waiting_moves=case.waiting_moves, moves_held=case.moves_held,
        time_before=figures.time_before.get(key) if has_acted(case) and not case.dry_run else None)


def refusal_answer(refusal: Refusal) -> RefusalAnswer:
    """Why something is not done, and what would change that."""
    return RefusalAnswer(refusal.reason, refusal.sentence, REMEDIES.get(refusal.reason, ""))
