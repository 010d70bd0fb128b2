"""Finds noisy neighbours without a past: the aggressor was on the victim's targets before tierd started.

Three kinds of evidence need no window without the aggressor:

* device time: the part of the targets' service time that the suspects take, and what the stream would get without
  them, with an error band (:mod:`tierd.detect.device_time`);
* dose: the stream gets less in windows in which the suspects do more (permutation test: Good, "Permutation, Parametric
  and Bootstrap Tests of Hypotheses", 2005);
* cross-section: streams alike get more on targets of the same pool on which the suspects do little (rank test).

Device time must predict the loss at which a finding ends (``leave``). It is enough by itself if a part of the loss is
certain. Otherwise dose or cross-section must confirm it. Acts need more certainty than findings
(:mod:`tierd.decide.benefit`).

A stream with a past is judged here if its past does not decide: single windows vary too much for the rules of
:mod:`tierd.detect.noisy_neighbour.slowdown`, as with large calls, or one neighbour of several takes little. Then the
mean throughput since the neighbour came must be lower by at least half of what device time predicts. A past that is
unlikely by chance confirms device time as dose and cross-section do.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from statistics import fmean, median

from tierd.detect.device_time import DeviceTimeShare, Gain, TargetTime, freed, gain_without, mean_share
from tierd.detect.noisy_neighbour.baseline import (
    LoadTracks,
    SlowdownSettings,
    lower_by_chance,
    normal_below,
    stream_series,
)
from tierd.detect.noisy_neighbour.blame import blamed_jobs
from tierd.detect.noisy_neighbour.pairs import SlowdownView
from tierd.detect.noisy_neighbour.slowdown import Slowdown, dose_fits
from tierd.detect.profile import Profile
from tierd.model import CHANCE
from tierd.text import count_of, percent

SURE_LOSS = 0.05
"""Loss, one standard error lower than expected, from which device time is enough by itself."""
MIN_DOSE_WINDOWS, MAX_DOSE_WINDOWS = 8, 60
RECHECK_SECONDS = 30.0
"""A dose, and whether there is a past, are tested again after so long: a window or two more hardly change them."""
FREE_SHARE = 0.05
"""Suspects' share of a target's service time up to which it counts as free of them."""
MIN_COMPARED_TARGETS = 3
"""Least number of targets with, and of those without suspects: fewer differ by chance."""
LITTLE_SHARE = 0.01
"""Suspects with a smaller share of a target's service time are left out."""


@dataclass(frozen=True, slots=True)
class Dose:
    """How the victim's throughput varies with the suspects' operations."""

    probability: float
    """Probability that it falls as much by chance."""
    loss: float
    """Part of its throughput that the suspects' operations cost it; negative if it rises with them."""

    @property
    def speaks(self) -> bool:
        """Whether it falls by more than chance."""
        return self.probability <= CHANCE

    def __str__(self) -> str:
        return f"dose ({percent(self.probability)} by chance)"


@dataclass(frozen=True, slots=True)
class CrossSection:
    """What streams get on targets of the same pool on which the suspects do little."""

    ratio: float
    """As a multiple of what they get on the targets with the suspects."""
    targets: int
    """Number of targets with little of the suspects."""
    probability: float
    """Probability that they get as much more by chance."""

    @property
    def speaks(self) -> bool:
        """Whether streams get more where the suspects do little, by more than chance."""
        return self.ratio > 1 and self.probability <= CHANCE

    def __str__(self) -> str:
        return (f"cross-section ({self.ratio:.2f} times as much on {count_of(self.targets, 'other target')}, "
                f"{percent(self.probability)} by chance)")


@dataclass(frozen=True, slots=True)
class Signature:
    """A stream, the jobs that take its targets' time, and the evidence."""

    victim: Profile
    aggressors: tuple[Profile, ...]
    targets: tuple[str, ...]
    times: tuple[TargetTime, ...]
    """Service time of these targets."""
    gain: Gain
    """Throughput of the victim on these targets without all its aggressors."""
    now: float
    """Throughput of the victim on these targets; bytes per second."""
    contended_windows: int
    dose: Dose | None
    cross_section: CrossSection | None
    pasts: Mapping[str, Slowdown] = field(default_factory=dict)
    """By aggressor, what the victim had before it came, where that is known."""
    past_by_chance: float = 1.0
    """Probability that the victim was faster in these windows by chance."""

    @property
    def confirmed(self) -> bool:
        """Whether a second kind of evidence agrees with device time."""
        return self.past_by_chance <= CHANCE or any(
            each is not None and each.speaks for each in (self.dose, self.cross_section))

    def device_time(self, aggressor: str) -> DeviceTimeShare:
        """What one aggressor takes of the targets' service time."""
        return mean_share(self.times, aggressor)

    def kinds(self, aggressor: str) -> str:
        """The kinds of evidence that agree, and how sure each is."""
        others = (str(each) for each in (self.dose, self.cross_section) if each is not None and each.speaks)
        return ", ".join((str(self.device_time(aggressor)), *others))


def signatures(view: SlowdownView, victims: Collection[Profile], suspects: Mapping[str, Profile], kind: str,
               settings: SlowdownSettings) -> Iterator[Signature]:
    """Streams that lose throughput to suspects for which there is no time without them.

    Only targets count on which all suspects together take enough. This saves testing thousands of healthy streams.
    """
    unhealthy = view.windows[-1].conditions
    crowded: dict[str, Sequence[str]] = {}
    gains: dict[str, float] = {}
    for target, time in view.device_time.items():
        here = [job for job in time.taken if job in suspects]
        share = time.share(here) if here else 0.0
        if share >= FREE_SHARE and target not in unhealthy:
            gains[target] = 1 + freed(share)
            crowded[target] = [job for job in here if time.taken[job] >= LITTLE_SHARE * time.utilisation]
    slowed = [victim for victim in victims
              if max((gains[target] for target in victim.by_target if target in gains), default=1.0)
              >= 1 / settings.leave]
    for victim in slowed:
        shared = [target for target in victim.by_target if target in crowded]
        near = {job for target in shared for job in crowded[target]}
        always = sorted(job for job in near if not past_decides(view, victim.job, job, settings))
        known = [job for of, job, stream in view.active if (of, stream) == (kind, victim.job)]
        case = Case(view, victim, [view.device_time[target] for target in shared], known, len(slowed), settings)
        found = case.signature([suspects[job] for job in always]) if always else None
        if found is not None:
            yield found


def past_decides(view: SlowdownView, victim: str, suspect: str, settings: SlowdownSettings) -> bool:
    """Whether the stream's past shows no loss to the suspect, or it is not yet long enough beside it."""
    return has_past(view, victim, suspect, settings) and (
        not view.slowed_cache.get(victim) or past_of(view, victim, suspect, settings) is None)


def past_of(view: SlowdownView, victim: str, suspect: str, settings: SlowdownSettings) -> Slowdown | None:
    """What the stream lost since the suspect came, by the means of windows; None if it is too little.

    A median of few windows is chance if calls are as large as a window moves. The mean is not.
    """
    stream, other = view.jobs[victim], view.jobs[suspect]
    targets = tuple(sorted(target for target in stream.by_target if target in other.by_target))
    course = stream_series(view.tracks, victim, suspect, targets, settings.presence).own
    if min(len(course.quiet), len(course.contended)) < settings.min_windows:
        return None
    usual, now = course.usual_mean(settings.before_windows), fmean(course.late(settings.min_windows))
    if now > settings.leave * usual:
        return None
    if not dose_fits(course, usual, settings):
        return None
    return Slowdown(stream, other, targets, course, usual, now)


def has_past(view: SlowdownView, victim: str, suspect: str, settings: SlowdownSettings) -> bool:
    """Whether there are windows enough of the stream without the suspect, or not yet enough beside it.

    A window is without the suspect if it did hardly anything in it by its own measure. One task of an array never does
    much beside a stream, and is present all the same.
    """
    seen = view.tracks.with_past.get((victim, suspect))
    if seen is not None and view.now - seen < RECHECK_SECONDS:
        return True
    targets = [target for target in view.jobs[victim].by_target if target in view.jobs[suspect].by_target]
    moved, operations = view.tracks.moved(targets, victim), view.tracks.operations(targets, suspect)
    least = settings.presence * median([each for each in operations if each] or [1.0])
    beside = [each > least for each, own in zip(operations, moved, strict=True) if own]
    if beside.count(False) >= settings.min_windows:
        view.tracks.with_past[victim, suspect] = view.now
        return True
    return beside.count(True) < settings.min_windows


@dataclass(frozen=True, slots=True)
class Case:
    """One stream and what is known about its targets."""

    view: SlowdownView
    victim: Profile
    times: Sequence[TargetTime]
    """Service time of its healthy targets."""
    known: Collection[str]
    """Aggressors of its active findings."""
    tested: int
    """Number of streams that are tested."""
    settings: SlowdownSettings

    def signature(self, suspects: Sequence[Profile]) -> Signature | None:
        """Return the suspects to blame with the evidence; None without evidence, or if it is not certain enough.

        The tests of dose and cross-section run only if device time predicts a loss.
        """
        jobs = [suspect.job for suspect in suspects]
        shares = {time.target: share for time in self.times if (share := time.share(jobs)) >= FREE_SHARE}
        shared = [time for time in self.times if time.target in shares]
        if not shared:
            return None
        together = sum(shares.values())
        taken = [(time.taken, time.utilisation * together) for time in shared]
        parts = {job: sum([seconds[job] / all_seconds for seconds, all_seconds in taken if job in seconds])
                 for job in jobs}
        blamed = blamed_jobs(parts, self.known, self.settings.load_share)
        gain = gain_without(shared, self.victim.job, blamed)
        if not blamed or gain.expected < 1 / self.settings.leave:
            return None
        targets = tuple(sorted(shares))
        moved = self.view.tracks.moved(targets, self.victim.job)
        pasts = self._pasts(blamed)
        dose = recent_dose(self.view.tracks, self.victim.job, blamed, targets)
        compared = cross_section(self.view, self.victim, shared, blamed)
        found = Signature(
            self.victim, tuple(suspect for suspect in suspects if suspect.job in blamed), targets, tuple(shared), gain,
            sum(self.victim.by_target[target].moved_bytes for target in targets) / self.victim.seconds,
            sum(each > 0 for each in moved),
            replace(dose, probability=self._of_all(dose.probability)) if dose is not None else None,
            replace(compared, probability=self._of_all(compared.probability)) if compared is not None else None,
            pasts, self._of_all(max(map(past_by_chance, pasts.values()), default=1.0)))
        return found if self._is_certain(found) and self._agrees(found) else None

    def _pasts(self, blamed: Collection[str]) -> dict[str, Slowdown]:
        """What the victim lost since each of these came, where its past is known."""
        view, victim = self.view, self.victim.job
        known = {job: past_of(view, victim, job, self.settings) for job in sorted(blamed)
                 if has_past(view, victim, job, self.settings)}
        return {job: past for job, past in known.items() if past is not None}

    def _agrees(self, found: Signature) -> bool:
        """Whether the past, where it is known, shows at least half of the loss that device time predicts."""
        predicted = 1 - 1 / found.gain.expected
        return all(1 - past.now / past.usual >= predicted / 2 for past in found.pasts.values())

    def _of_all(self, probability: float) -> float:
        """Probability that chance does this to any of the streams that are tested (Bonferroni)."""
        return min(1.0, probability * self.tested)

    def _is_certain(self, found: Signature) -> bool:
        if found.confirmed or any(suspect.job in self.known for suspect in found.aggressors):
            return True
        return 1 - 1 / found.gain.low >= SURE_LOSS


def recent_dose(tracks: LoadTracks, victim: str, suspects: Collection[str], targets: tuple[str, ...]) -> Dose | None:
    """The dose, tested anew every half minute."""
    key, now = (victim, frozenset(suspects), targets), tracks.windows[-1].end
    tested = tracks.doses.get(key)
    if tested is not None and now - tested[0] < RECHECK_SECONDS:
        return Dose(*tested[1:])
    found = dose_of(tracks, victim, suspects, targets)
    if found is not None:
        tracks.doses[key] = now, found.probability, found.loss
    return found


def dose_of(tracks: LoadTracks, victim: str, suspects: Collection[str], targets: Sequence[str]) -> Dose | None:
    """How the rates of the victim vary with the operations of the suspects; None with too few windows.

    Their ranks are compared window by window and target by target. Chance is a random order of the windows. The sum of
    products of such an order is distributed nearly normally (Hoeffding, "A Combinatorial Central Limit Theorem", Annals
    of Mathematical Statistics 22(4), 1951). This holds for ranks. Of the values themselves, one window in which a disk
    stood still would make the whole sum. The loss is that of the linear regression, from none of the suspects'
    operations to their mean.
    """
    pairs = []
    for target in targets:
        theirs = [tracks.of(target, job)[1] for job in suspects]
        pairs.append((tracks.of(target, victim)[0], list(map(sum, zip(*theirs, strict=True)))))
    at_work = [n for n in range(len(tracks.windows))
               if any(moved[n] and operations[n] for moved, operations in pairs)][-MAX_DOSE_WINDOWS:]
    if len(at_work) < MIN_DOSE_WINDOWS:
        return None
    seconds = [tracks.windows[n].seconds for n in at_work]
    products = [[0.0] * len(at_work) for _ in at_work]
    """Rank of the rate of one window times that of the operations of another, summed over targets."""
    together = squares = 0.0
    """Of rates times operations, and of operations, both as differences from the mean."""
    for moved, operations in pairs:
        rates = [moved[n] / s for n, s in zip(at_work, seconds, strict=True)]
        doses = [operations[n] / s for n, s in zip(at_work, seconds, strict=True)]
        centred = _centred(doses)
        squares += sum([dose * dose for dose in centred])
        together += sum([rate * dose for rate, dose in zip(_centred(rates), centred, strict=True)])
        dose_ranks = _centred(ranks(doses))
        for n, rank in enumerate(_centred(ranks(rates))):
            products[n] = [total + rank * dose for total, dose in zip(products[n], dose_ranks, strict=True)]
    observed = sum([row[n] for n, row in enumerate(products)])
    # ranks are centred, so all rows and columns sum to 0, and so does the mean over all orders
    variance = sum([product * product for row in products for product in row]) / (len(at_work) - 1)
    if not variance:
        return Dose(1.0, 0.0)
    falls = -together / squares
    return Dose(normal_below(observed / sqrt(variance)), falls / (1 + falls) if falls > 0 else falls)


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share their mean rank.

    >>> ranks([3.0, 1.0, 3.0, 2.0])
    [3.5, 1.0, 3.5, 2.0]
    """
    ordered = sorted(values)
    return [(bisect_left(ordered, value) + bisect_right(ordered, value) + 1) / 2 for value in values]


def _centred(values: Sequence[float]) -> list[float]:
    """Differences from the mean, as shares of it."""
    mean = fmean(values)
    return [value / mean - 1 for value in values] if mean else [0.0] * len(values)


def cross_section(view: SlowdownView, victim: Profile, shared: Sequence[TargetTime],
                  suspects: Collection[str]) -> CrossSection | None:
    """What streams like the victim get on free targets of the same pool, and on the shared ones.

    Streams are alike if their mean RPCs differ by less than a factor of two. The probability is that of as high a sum
    of ranks by chance (Mann and Whitney, Annals of Mathematical Statistics 18(1), 1947). None if such streams are at
    work on too few targets of either kind.
    """
    least, most = victim.mean_rpc_bytes / 2, victim.mean_rpc_bytes * 2
    alike = view.stream_rates
    rates: tuple[list[float], list[float]] = [], []
    on = {time.target for time in shared}
    for time in view.device_time.values():
        is_free = time.target not in on
        if time.costs is shared[0].costs and (not is_free or time.share(suspects) < FREE_SHARE):
            each = [rate for size, rate in alike[time.target] if least < size < most]
            if each:
                rates[is_free].append(fmean(each))
    here, free = rates
    if min(len(here), len(free)) < MIN_COMPARED_TARGETS:
        return None
    return CrossSection(median(free) / median(here), len(free), lower_by_chance(here, free))


def past_by_chance(past: Slowdown) -> float:
    """Probability that the stream was faster before the suspect came by chance (rank test, window by window)."""
    return lower_by_chance(past.course.contended, past.course.quiet)
