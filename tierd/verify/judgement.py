"""Judges whether an act helped or harmed.

What a slowed stream has regained is known from its posterior (:mod:`tierd.detect.gain`). A job whose own files were
moved is compared with itself before, corrected by how much jobs on other targets became faster or slower. Jobs that
share the victim's targets, the flash targets of the files or the metadata targets must not lose: if another steady job
became clearly slower, tierd undoes the act at once.

Rates are bytes per second, and metadata operations per second, of each job in a window on all targets together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import chain
from math import exp, expm1, isfinite, log, log1p
from operator import attrgetter
from statistics import median, quantiles

from tierd.acts import Verdict
from tierd.arrays import any_at_work
from tierd.detect.gain import StreamTrack, StreamWindow, gain, probability_of_loss_to_others
from tierd.detect.groups import grouped
from tierd.detect.interference import ERRORS_OF_90_PERCENT, MOST_LOST
from tierd.model import UNSEEN, Finding, Table, Window
from tierd.text import Carrier
from tierd.validators import AtLeastOne, NotNegative, Positive, Share


@dataclass(frozen=True)
class Settings(Table):
    """Times and thresholds of judgements."""

    settle_seconds: Positive = 10.0
    """Time before measuring begins, for files open at the change and data still to be written."""
    moving_seconds: Positive = 600.0
    """An act that only moves files is judged when they are moved, or after this time. Directories to which a job moves
    on within this time are judged together with the first."""
    judge_seconds: Positive = 60.0
    """Measuring time after ``settle_seconds``."""
    min_gain: Share = 0.2
    """Part of the loss that the victim must regain for the act to be kept."""
    harm_seconds: Positive = 30.0
    """Measuring time after which an act is undone if other jobs lose."""
    max_harm: Share = 0.1
    """Fraction of its throughput that a steady job may lose after the act."""
    min_controls: AtLeastOne = 3
    """Minimum number of jobs on other targets to measure the change of the whole file system."""
    min_own_gain: Share = 0.05
    """Gain of a job whose own files were moved from which the act counts as a help; see ``max_harm`` for a loss."""
    cooldown_seconds: NotNegative = 21600.0
    """Time for which a directory is left alone after its default layout was undone."""


RatesOf = Callable[[Window], Mapping[str, float]]
MOVED: RatesOf = attrgetter("moved")
OPERATIONS: RatesOf = attrgetter("operations")
Rates = Mapping[str, Sequence[float]]
"""Rate of each job in each window, only for jobs active in all windows."""


def compared_rates(before: Sequence[Window], later: Sequence[Window], of: RatesOf) -> tuple[Rates, Rates]:
    """Steady rates before and later, without jobs on targets whose condition changed between these windows."""
    every = (*before, *later)
    in_doubt = jobs_on_targets(every, changed) if (changed := changed_targets(every)) else set()

    def steady(windows: Sequence[Window]) -> Rates:
        found = grouped((job, rate) for window in windows for job, rate in of(window).items() if rate > 0)
        return {job: each for job, each in found.items() if len(each) == len(windows) and job not in in_doubt}

    return steady(before), steady(later)


def where_seen(windows: Sequence[Window], job: str) -> list[Window]:
    """The windows in which no target that the job uses had a condition that it does not always have."""
    changed = changed_targets(windows)
    used = {target for window in windows if changed for target, of in window.loads if of == job and target in changed}
    return [window for window in windows if used.isdisjoint(window.conditions)]


def changed_targets(windows: Sequence[Window]) -> set[str]:
    """Targets that were not seen in some of these windows, or that became degraded, went into recovery, were full."""
    windows_of = Counter(chain.from_iterable(window.conditions.items() for window in windows))
    return {target for (target, why), count in windows_of.items() if why == UNSEEN or count < len(windows)}


def jobs_on_targets(windows: Sequence[Window], targets: Collection[str]) -> set[str]:
    return {job for window in windows for target, job in window.loads if target in targets}


MAX_CONTROL_VARIATION = 0.3
"""Variation of a job's own rate from which its change shows nothing about the file system. This is a choice."""
MIN_CONTROL_SHARE = 0.01
"""Part of the victim's rate that a job must move, or single calls make its rate. This is a choice."""
COMPARABLE = 0.5, 2.0
"""Change of the whole file system, as a ratio, outside of which a job's own rates cannot be compared."""


def harmed_jobs(was: Rates, now: Rates, whom: Set[str], elsewhere: float, settings: Settings) -> dict[str, float]:
    """Steady jobs in ``whom`` that lost more than allowed, with their loss as a fraction."""
    found: dict[str, float] = {}
    for job in whom & was.keys() & now.keys():
        lost = 1 - median(now[job]) / min(1.0, elsewhere) / median(was[job])
        if lost > max(settings.max_harm, relative_variation(was[job]), relative_variation(now[job])):
            found[job] = lost
    return found


FEW_VALUES_VARIATION = 0.25
"""Variation of a job of which there are few windows, because old ones were summed to half minutes."""


def relative_variation(values: Sequence[float], of_few: float = 1.0) -> float:
    """Variation of a job's rates: the range between the 10th and 90th percentile, as a share of the median.

    Three values, as of windows of 15 s, may be close by chance: it is twice that, and at least that of few values.
    """
    if len(values) < 3:
        return of_few
    cuts = quantiles(values, n=10, method="inclusive")
    variation = (cuts[-1] - cuts[0]) / median(values)
    return variation if len(values) > 3 else max(FEW_VALUES_VARIATION, 2 * variation)


class Doubt(StrEnum):
    """Why an effect cannot be judged. The values are words for people."""

    ABSENT = "a job has ended or paused, or its targets were not healthy or not seen"
    UNSURE = "what the stream lost, or has regained, is not known well enough"
    SLOWER = "the stream is slower since, for a reason that is not known"


@dataclass(frozen=True, slots=True)
class Judgement:
    """``verdict`` is ``too-early``, ``helped``, ``did-not-help``, ``harmed-others`` or ``cannot-tell``.

    Rates in bytes per second.
    """

    verdict: Verdict
    usual: float
    contended: float
    after: float
    """Rate of the victim after the act, as measured."""
    harmed: Mapping[str, float] = field(default_factory=dict)
    """Fraction of its rate that each job lost."""
    own: bool = False
    """Whether the rates are of the job whose files were moved, so that there is no victim."""
    operations: bool = False
    """Whether the rates are metadata operations per second."""
    words: str = ""
    """The verdict and what it rests on, where that is not a rate."""
    doubt: Doubt = Doubt.ABSENT
    """Means something only if the verdict is ``cannot-tell``."""
    regained: tuple[float, float, float] | None = None
    """Part of the loss that the victim has regained, and the ends of its interval of 90%; None where the posterior was
    not asked."""
    won_back: float = 0.0
    """Part of the loss that the victim regained; 1 is all of it. For a job's own files: its gain as a share, compared
    with jobs on other targets. It means something only if there is a verdict."""
    at: float = 0.0
    """When it was given; epoch seconds."""

    @property
    def is_slower(self) -> bool:
        """Whether the victim is slower than before the act for an unknown reason, which may be the moves themselves."""
        return self.verdict is Verdict.CANNOT_TELL and 0 < self.after < self.contended


@dataclass(frozen=True, slots=True)
class Act:
    """An act to judge."""

    finding: Finding
    begun_at: float
    acted_at: float
    """Time of its last move."""
    flash: Collection[str] = ()
    """Flash targets that the files went to."""
    on_mdt: bool = False
    """Whether files went to an MDT: the aggressor then works on, though its data shows in no object target."""


CERTAIN = 0.8
"""Probability of ``min_gain`` from which an act has helped; below 1 minus this it has not. In between, the effect is
not known. A choice."""
MOST_MEASURING_TIMES = 3
"""An effect that is not known is measured for this many times ``judge_seconds``. A choice: half of the error needs four
times as many windows, and windows are kept for five minutes."""


def judge(act: Act, windows: Sequence[Window], tracks: Mapping[str, StreamTrack], now: float,
          settings: Settings) -> Judgement:
    """Judge one act by what the posterior says that the victim has gained since. ``tracks`` are by victim.

    The verdict is ``cannot-tell`` if the victim or the aggressor has ended, if their targets were unhealthy, or if the
    gain is not known well enough. It proves nothing for or against the act. A victim that is slower than before the act
    was not helped if the aggressor has done more since; otherwise something else slows it.
    """
    finding, evidence = act.finding, act.finding.evidence.of_stream
    if evidence is None:
        return Judgement(Verdict.CANNOT_TELL, 0.0, 0.0, 0.0)
    usual, contended = evidence.victim_usual_bytes_per_second, evidence.victim_bytes_per_second
    since = act.acted_at + settings.settle_seconds
    every = [w for w in windows if w.start >= since]
    seen = where_seen(windows, finding.victim)
    later = [w for w in seen if w.start >= since and w.conditions.keys().isdisjoint(finding.targets)]
    track = tracks.get(finding.victim)
    before = [w for w in seen if act.begun_at - settings.judge_seconds <= w.start and w.end <= act.begun_at
              and any_at_work(finding.aggressor, finding.tasks, w.jobs)]
    lately = [w for w in later if w.moved.get(finding.victim, 0.0) > 0
              and (any_at_work(finding.aggressor, finding.tasks, w.moved)
                   or (act.on_mdt and any_at_work(finding.aggressor, finding.tasks, w.operations)))]
    after = median([w.moved[finding.victim] for w in lately]) if lately else 0.0
    # the finding may be of the window in which the neighbour started, of which it was active for a part only
    measured = [w for w in before if seen_in(track, (w,))] or before  # the windows by which the gain is measured
    contended = median([w.moved.get(finding.victim, 0.0) for w in measured] or [contended])
    if evidence.carrier is not Carrier.ARRIVAL and isfinite(evidence.slowdown):  # predicted by the rate of one window
        usual = contended * evidence.slowdown
    if now >= since + settings.harm_seconds and (harmed := harmed_by_act(act, before, later, tracks, settings)):
        return Judgement(Verdict.HARMED_OTHERS, usual, contended, after, harmed=harmed)
    if now < since + settings.judge_seconds:
        return Judgement(Verdict.TOO_EARLY, usual, contended, after)
    # the rate over all these windows together, which no single window can distort
    mean = sum(w.moved[finding.victim] * w.seconds for w in lately) / max(sum(w.seconds for w in lately), 1e-9)
    if len(lately) < max(2, len(every) // 2) or after > MAX_ABOVE_MEAN * mean:
        return Judgement(Verdict.CANNOT_TELL, usual, contended, min(after, mean))
    found = gain(track, finding.aggressor, seen_in(track, before), seen_in(track, lately)) if track else None
    lost = found.share * log(usual / contended) if found and usual > contended > 0 else 0.0
    if found is None or lost <= 0:
        return Judgement(Verdict.CANNOT_TELL, usual, contended, after, doubt=Doubt.UNSURE)
    least = log1p(settings.min_gain * expm1(lost))
    # what was lost is known with an error too: a gain far below a loss that was only predicted proves nothing
    high = -log1p(-min(evidence.loss_high, 1 - exp(-MOST_LOST)))
    spread = max(high - log(usual / evidence.victim_bytes_per_second), 0.0) / ERRORS_OF_90_PERCENT
    error = settings.min_gain * exp(lost - least) * found.share * spread  # as ``least`` changes with ``lost``
    slower = found.something_else(least, 1 - CERTAIN)
    work = work_ratio(act, before, lately) if slower else 1.0
    if slower and (work <= MORE_WORK or not found.slower_than_undone(work, 1 - CERTAIN)):
        return Judgement(Verdict.CANNOT_TELL, usual, contended, after, doubt=Doubt.SLOWER)
    probability = 0.0 if slower else found.probability(least, error)
    if 1 - CERTAIN < probability < CERTAIN:
        may_be_known = now < since + MOST_MEASURING_TIMES * settings.judge_seconds
        return Judgement(Verdict.TOO_EARLY if may_be_known else Verdict.CANNOT_TELL, usual, contended, after,
                         doubt=Doubt.UNSURE)
    verdict = Verdict.HELPED if probability >= CERTAIN else Verdict.DID_NOT_HELP
    # more than all that was lost cannot come back: only the measured rate may show that the loss was larger
    most = max(lost, found.measured + ERRORS_OF_90_PERCENT * found.measured_error)
    part, low, high = (expm1(each) / expm1(lost) for each in (
        found.mean, found.low(ERRORS_OF_90_PERCENT), min(found.high(ERRORS_OF_90_PERCENT), most)))
    return Judgement(verdict, usual, contended, after, regained=(part, low, high), won_back=part)


def seen_in(track: StreamTrack | None, windows: Sequence[Window]) -> list[StreamWindow]:
    spans = [(w.start, w.end) for w in windows]
    return [each for each in track.windows if any(start < each.end <= end for start, end in spans)] if track else []


MORE_WORK = 1.2
"""Rate of a neighbour, as a multiple of that before, from which it does more: bursts vary by less. This is a choice."""


def work_ratio(act: Act, before: Sequence[Window], since: Sequence[Window]) -> float:
    """Rate of the aggressor since an act, as a multiple of that before: its files may be on faster targets now."""
    def rate(windows: Sequence[Window]) -> float:
        return median(sum(rate for job, rate in (w.operations if act.on_mdt else w.moved).items()
                          if any_at_work(act.finding.aggressor, act.finding.tasks, (job,))) for w in windows)

    return rate(since) / max(rate(before), 1e-9) if before and since else 1.0


MAX_ABOVE_MEAN = 1.5
"""A median of windows above this multiple of their mean is a mistake of the measurement, or the job stood still."""


def harmed_by_act(act: Act, before: Sequence[Window], later: Sequence[Window], tracks: Mapping[str, StreamTrack],
                  settings: Settings) -> Mapping[str, float]:
    """Other jobs that lost to an act for a victim, with their loss.

    The act can slow a job on the targets of the finding, on flash targets where the aggressor has worked since, and, if
    its files went to an MDT, by metadata operations. A stream whose loss cannot come from what others take of its
    targets became slow by itself.
    """
    finding = act.finding
    flash = {target for w in later for target, job in w.loads if target in act.flash
             and any_at_work(finding.aggressor, finding.tasks, (job,))}
    _, harmed = harmed_by(before, later, finding, {*finding.targets, *flash}, {finding.victim}, settings=settings,
                          operations=act.on_mdt)
    found = {}
    for job, lost in harmed.items():
        track = tracks.get(job)
        was, now = seen_in(track, before), seen_in(track, later)
        if not (track and was and now) or probability_of_loss_to_others(
                track, was, now, settings.max_harm) > 1 - CERTAIN:
            found[job] = lost
    return found


def harmed_by(before: Sequence[Window], later: Sequence[Window], finding: Finding, targets: Set[str],
              spared: Set[str], *, settings: Settings, operations: bool = True) -> tuple[float, dict[str, float]]:
    """The rate of jobs on other targets, as a fraction of their rate before; and the losses of jobs that lost bytes on
    these targets, or metadata operations anywhere. Jobs in ``spared`` are left out.
    """
    was, now = compared_rates(before, later, MOVED)
    touched, near = jobs_on_targets((*before, *later), targets), jobs_on_targets(before, targets)
    least = MIN_CONTROL_SHARE * median(was.get(finding.victim, (0.0,)))
    ratios = [median(now[job]) / median(was[job]) for job in was.keys() & now.keys() - touched - {*finding.aggressors}
              if median(was[job]) >= least and relative_variation(was[job]) <= MAX_CONTROL_VARIATION]
    elsewhere = median(ratios) if len(ratios) >= settings.min_controls else 1.0
    harmed = harmed_jobs(was, now, near - spared, elsewhere, settings)
    if not operations:
        return elsewhere, harmed
    mdts = {target for target in changed_targets((*before, *later)) if "-MDT" in target}
    before, later = ([w for w in windows if mdts.isdisjoint(w.conditions)] for windows in (before, later))
    was, now = compared_rates(before, later, OPERATIONS)
    for job, lost in harmed_jobs(was, now, was.keys() - spared, elsewhere, settings).items():
        harmed[job] = max(lost, harmed.get(job, 0.0))
    return elsewhere, harmed


def judge_own(act: Act, windows: Sequence[Window], now: float, settings: Settings, *, operations: bool) -> Judgement:
    """Judge an act for the job whose files it moved, by the job's own rate before and after it.

    ``operations``: by its metadata operations, otherwise by its bytes. Only windows in which the job is active count,
    so a job may pause, or come back for its next run, within ``moving_seconds``. A gain of ``min_own_gain`` helped; a
    loss of ``max_harm``, and more than the job varies, did not help. In between, and for a job that does not come back,
    the verdict is ``cannot-tell``, and the act stands.
    """
    finding, rate_of = act.finding, OPERATIONS if operations else MOVED
    since = act.acted_at + settings.settle_seconds
    if now < since + min(settings.harm_seconds, settings.judge_seconds):
        return Judgement(Verdict.TOO_EARLY, 0.0, 0.0, 0.0, own=True, operations=operations)
    seen = where_seen(windows, finding.aggressor)
    later = [w for w in seen if w.start >= since and w.conditions.keys().isdisjoint(finding.targets)]
    before = [w for w in seen if act.begun_at - settings.judge_seconds <= w.start and w.end <= act.begun_at]
    # the job may have paused since it was last active: files are moved after it has closed them
    active = [w for w in seen if w.end <= act.begun_at and rate_of(w).get(finding.aggressor, 0.0) > 0]
    was = [rate_of(w)[finding.aggressor] for w in active if w.end > active[-1].end - settings.judge_seconds]
    got = [rate for w in later if (rate := rate_of(w).get(finding.aggressor, 0.0)) > 0]
    contended, after = median(was) if was else 0.0, median(got) if got else 0.0
    elsewhere, harmed = harmed_by(before, later, finding, {*finding.targets, *act.flash}, {*finding.aggressors},
                                  settings=settings)
    gained = after / elsewhere / contended - 1 if was else 0.0
    judged = partial(Judgement, usual=contended, contended=contended, after=after, own=True, operations=operations,
                     won_back=gained)
    if harmed:
        return judged(Verdict.HARMED_OTHERS, harmed=harmed)
    if now < since + settings.judge_seconds:
        return judged(Verdict.TOO_EARLY)
    if not was or len(got) < MIN_OWN_WINDOWS:
        waits = bool(was) and now < act.acted_at + settings.moving_seconds
        return judged(Verdict.TOO_EARLY if waits else Verdict.CANNOT_TELL)
    if not COMPARABLE[0] <= elsewhere <= COMPARABLE[1]:
        return judged(Verdict.CANNOT_TELL)
    varies = max(relative_variation(rates, FEW_VALUES_VARIATION) for rates in (was, got))
    if -gained > max(settings.max_harm, varies):
        return judged(Verdict.DID_NOT_HELP)
    return judged(Verdict.HELPED if gained >= settings.min_own_gain else Verdict.CANNOT_TELL)


MIN_OWN_WINDOWS = 3
"""Windows after an act in which the job must be active."""
