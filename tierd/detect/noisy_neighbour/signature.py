"""Finds noisy neighbours without a past: the aggressor was on the victim's targets before tierd started.

Three kinds of evidence need no window without the aggressor:

* device time: the part of the targets' service time that the suspects take, and what the stream would get without
  them, with an error band (:mod:`tierd.detect.device_time`);
* dose: the stream gets less in windows in which the suspects do more (permutation test: Good, "Permutation, Parametric
  and Bootstrap Tests of Hypotheses", 2005);
* cross-section: streams get more on targets of the same pool on which the suspects do little.

Device time must predict the loss at which a finding begins (``enter``). It is enough by itself if a part of the loss is
certain. Otherwise dose or cross-section must confirm it. Then the loss at which a finding ends is enough (``leave``),
as two kinds of evidence agree. A pair whose past can be compared is not judged here: the past is better evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import add, mul
from random import Random
from statistics import fmean, median

from tierd.detect.device_time import DeviceTimeShare, Gain, TargetTime, gain_without, mean_share
from tierd.detect.noisy_neighbour.baseline import LoadTracks, SlowdownSettings
from tierd.detect.noisy_neighbour.blame import blamed_jobs
from tierd.detect.noisy_neighbour.pairs import SlowdownView
from tierd.detect.profile import Profile
from tierd.model import CHANCE
from tierd.text import count_of, percent

SURE_LOSS = 0.05
"""Loss, one standard error lower than expected, from which device time is enough by itself."""
MIN_DOSE_WINDOWS = 8
PERMUTATIONS = 199
DOSE_SECONDS = 30.0
"""A dose is tested again after so long: a window or two more hardly change it."""
FREE_SHARE, MIN_FREE_TARGETS = 0.05, 2
"""Suspects' share of a target's service time up to which it counts as free of them, and the least number of free
targets."""


@dataclass(frozen=True, slots=True)
class Dose:
    """How the victim's throughput varies with the suspects' operations."""

    probability: float
    """Probability that it falls as much by chance."""

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

    @property
    def speaks(self) -> bool:
        """Whether streams get more where the suspects do little."""
        return self.ratio > 1

    def __str__(self) -> str:
        return f"cross-section ({self.ratio:.2f} times as much on {count_of(self.targets, 'other target')})"


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

    @property
    def confirmed(self) -> bool:
        """Whether a second kind of evidence agrees with device time."""
        return any(each is not None and each.speaks for each in (self.dose, self.cross_section))

    def device_time(self, aggressor: str) -> DeviceTimeShare:
        """What one aggressor takes of the targets' service time."""
        return mean_share(self.times, aggressor)

    def kinds(self, aggressor: str) -> str:
        """The kinds of evidence that agree, and how sure each is."""
        others = (str(each) for each in (self.dose, self.cross_section) if each is not None and each.speaks)
        return ", ".join((str(self.device_time(aggressor)), *others))


def signatures(view: SlowdownView, victims: Collection[Profile], suspects: Mapping[str, Profile], kind: str,
               settings: SlowdownSettings) -> Iterator[Signature]:
    """Streams that lose throughput to suspects for which there is no time without them."""
    unhealthy = view.windows[-1].conditions
    for victim in victims:
        times = [time for target in victim.by_target
                 if target not in unhealthy and (time := view.device_time.get(target)) is not None]
        here = {job for time in times for job in time.work if job in suspects}
        if not here or gain_without(times, victim.job, here).high < 1 / settings.leave:
            continue
        always = sorted(job for job in here if not past_decides(view, victim.job, job, settings))
        case = Case(view, victim, times, [job for of, job, stream in view.active if (of, stream) == (kind, victim.job)],
                    settings)
        found = case.signature([suspects[job] for job in always])
        if found is not None:
            yield found


def past_decides(view: SlowdownView, victim: str, suspect: str, settings: SlowdownSettings) -> bool:
    """Whether there are windows enough of the stream without the suspect, or not yet enough beside it.

    A window is without the suspect if it did hardly anything in it by its own measure. One task of an array never does
    much beside a stream, and is present all the same.
    """
    targets = [target for target in view.jobs[victim].by_target if target in view.jobs[suspect].by_target]
    moved, operations = view.tracks.moved(targets, victim), view.tracks.operations(targets, suspect)
    least = settings.presence * median([each for each in operations if each] or [1.0])
    beside = [each > least for each, own in zip(operations, moved, strict=True) if own]
    return beside.count(False) >= settings.min_windows or beside.count(True) < settings.min_windows


@dataclass(frozen=True, slots=True)
class Case:
    """One stream and what is known about its targets."""

    view: SlowdownView
    victim: Profile
    times: Sequence[TargetTime]
    """Service time of its healthy targets."""
    known: Collection[str]
    """Aggressors of its active findings."""
    settings: SlowdownSettings

    def signature(self, suspects: Sequence[Profile]) -> Signature | None:
        """The suspects to blame, and the evidence; None if there is none, or if it is not certain enough.

        The tests of dose and cross-section run only if device time predicts a loss.
        """
        jobs = [suspect.job for suspect in suspects]
        shares = {time.target: share for time in self.times if (share := time.share(jobs)) >= FREE_SHARE}
        shared = [time for time in self.times if time.target in shares]
        if not shared:
            return None
        together = sum(shares.values())
        parts = {job: sum(time.share([job]) for time in shared) / together for job in jobs}
        blamed = blamed_jobs(parts, self.known, self.settings.load_share)
        gain = gain_without(shared, self.victim.job, blamed)
        if not blamed or gain.expected < 1 / self.settings.leave:
            return None
        targets = tuple(sorted(shares))
        moved = self.view.tracks.moved(targets, self.victim.job)
        found = Signature(
            self.victim, tuple(suspect for suspect in suspects if suspect.job in blamed), targets, tuple(shared), gain,
            sum(self.victim.by_target[target].moved_bytes for target in targets) / self.victim.seconds,
            sum(each > 0 for each in moved), recent_dose(self.view.tracks, self.victim.job, blamed, targets),
            cross_section(self.view.device_time, shared, blamed, {stream.job for stream in self.view.streams}))
        return found if self._is_certain(found) else None

    def _is_certain(self, found: Signature) -> bool:
        if found.confirmed or any(suspect.job in self.known for suspect in found.aggressors):
            return True
        return found.gain.expected >= 1 / self.settings.enter and 1 - 1 / found.gain.low >= SURE_LOSS


def recent_dose(tracks: LoadTracks, victim: str, suspects: Collection[str], targets: tuple[str, ...]) -> Dose | None:
    """The dose, tested anew every half minute."""
    key, now = (victim, frozenset(suspects), targets), tracks.windows[-1].end
    tested = tracks.doses.get(key)
    if tested is not None and now - tested[0] < DOSE_SECONDS:
        return Dose(tested[1])
    found = dose(tracks, victim, suspects, targets)
    if found is not None:
        tracks.doses[key] = now, found.probability
    return found


def dose(tracks: LoadTracks, victim: str, suspects: Collection[str], targets: Sequence[str]) -> Dose | None:
    """Whether the victim's throughput falls as the suspects' operations rise, target by target.

    The probability is the share of random orders of the windows in which rates and operations disagree at least as
    much. None with fewer windows than the test needs.
    """
    pairs = []
    for target in targets:
        theirs = [tracks.of(target, job)[1] for job in suspects]
        pairs.append((tracks.of(target, victim)[0], list(map(sum, zip(*theirs, strict=True)))))
    at_work = [n for n in range(len(tracks.windows))
               if any(moved[n] and operations[n] for moved, operations in pairs)]
    if len(at_work) < MIN_DOSE_WINDOWS:
        return None
    seconds = [tracks.windows[n].seconds for n in at_work]
    products = [[0.0] * len(at_work) for _ in at_work]
    """Rate of one window times operations of another, summed over targets: any order is then a sum of few numbers."""
    for moved, operations in pairs:
        rates = _centred([moved[n] / s for n, s in zip(at_work, seconds, strict=True)])
        doses = _centred([operations[n] / s for n, s in zip(at_work, seconds, strict=True)])
        for n, rate in enumerate(rates):
            products[n] = list(map(add, products[n], map(mul, doses, [rate] * len(doses))))
    order = list(range(len(at_work)))
    observed, chance = sum(products[n][n] for n in order), Random(f"{victim} {len(at_work)}")  # noqa: S311 - no secret
    as_low = 0
    for _ in range(PERMUTATIONS):
        chance.shuffle(order)
        as_low += sum([row[at] for row, at in zip(products, order, strict=True)]) <= observed
    return Dose((as_low + 1) / (PERMUTATIONS + 1))


def _centred(values: Sequence[float]) -> list[float]:
    """Differences from the mean, as shares of it."""
    mean = fmean(values)
    return [value / mean - 1 for value in values] if mean else [0.0] * len(values)


def cross_section(times: Mapping[str, TargetTime], shared: Sequence[TargetTime], suspects: Collection[str],
                  streams: Collection[str]) -> CrossSection | None:
    """What streams get on free targets of the same pool, compared with what they get on the shared ones.

    None if streams are at work on too few free targets.
    """
    def streamed(time: TargetTime) -> float:
        return sum([work[0] + work[1] for job, work in time.work.items() if job in streams])

    on = {time.target for time in shared}
    free = [rate for time in times.values() if time.target not in on and time.costs is shared[0].costs
            and time.share(suspects) < FREE_SHARE and (rate := streamed(time)) > 0]
    here = median(map(streamed, shared))
    return CrossSection(median(free) / here, len(free)) if len(free) >= MIN_FREE_TARGETS and here else None
