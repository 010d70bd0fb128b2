"""Finds noisy neighbours without a past: the aggressor was on the victim's targets before tierd looked.

Three kinds of evidence need no window without the aggressor:

* device time: the part of the targets' service time that the suspects take, and so what the stream would get without
  them, with an error band (:mod:`tierd.detect.device_time`);
* dose: the stream gets less in windows in which the suspects do more, by a permutation test (Good, "Permutation,
  Parametric and Bootstrap Tests of Hypotheses", 2005);
* cross-section: streams get more on targets of the same pool on which the suspects do little.

Device time must predict that the stream loses as much as a finding needs (``enter``). It is enough by itself where the
loss is certain. Where its error is large, dose or cross-section must confirm it; then the loss at which a finding would
end is enough (``leave``), as two kinds of evidence agree. A pair whose past can be compared
is not judged here: the past is better evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean, median

from tierd.detect.device_time import Gain, TargetTime, gain_without
from tierd.detect.noisy_neighbour.baseline import LoadTracks, SlowdownSettings
from tierd.detect.noisy_neighbour.blame import named
from tierd.detect.noisy_neighbour.pairs import SlowdownView
from tierd.detect.profile import Profile

SURE_LOSS = 0.05
"""Loss, one standard error lower than expected, from which on device time is enough by itself."""
CHANCE = 0.05
"""Probability of the dose by chance, at the most."""
MIN_DOSE_WINDOWS = 8
PERMUTATIONS = 199
FREE_SHARE, MIN_FREE_TARGETS = 0.05, 2
"""Suspects' share of a target's service time up to which it counts as free of them, and how many are asked for."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A stream, the jobs that take its targets' time, and the evidence."""

    victim: Profile
    aggressors: tuple[Profile, ...]
    targets: tuple[str, ...]
    times: tuple[TargetTime, ...]
    """Service time of these targets."""
    gain: Gain
    """Throughput of the victim there without all its aggressors."""
    now: float
    """Bytes per second it gets there."""
    contended_windows: int
    dose_probability: float | None
    cross_section_ratio: float | None

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of evidence that speak for it, the first always device time."""
        others = (("dose", self.dose_probability is not None and self.dose_probability <= CHANCE),
                  ("cross-section", self.cross_section_ratio is not None and self.cross_section_ratio > 1))
        return ("device time", *(kind for kind, speaks in others if speaks))

    def share(self, jobs: Collection[str]) -> tuple[float, float]:
        """Mean part of the targets' service time that these jobs take, and its standard error."""
        return (fmean(time.share(jobs) for time in self.times),
                fmean(time.share_error(jobs) for time in self.times))


def signatures(view: SlowdownView, victims: Collection[Profile], suspects: Mapping[str, Profile], kind: str,
               settings: SlowdownSettings) -> Iterator[Signature]:
    """Streams that lose by suspects which were always there, as far as anybody looked."""
    held = {key[1:] for key in view.active if key[0] == kind}
    ill = view.windows[-1].conditions
    for victim in victims:
        times = [time for target in victim.by_target
                 if target not in ill and (time := view.device_time.get(target)) is not None]
        here = {job for time in times for job in time.work if job in suspects}
        known = [job for job, of in held if of == victim.job]
        if not here or gain_without(times, victim.job, here).high < 1 / settings.leave:
            continue
        always = sorted(job for job in here if not past_speaks(view, victim.job, job, settings))
        found = signature(view, victim, [suspects[job] for job in always], times, known, settings)
        if found is not None:
            confirmed = len(found.kinds) > 1 or any(suspect.job in known for suspect in found.aggressors)
            if found.gain.expected >= 1 / (settings.leave if confirmed else settings.enter):
                yield found


def past_speaks(view: SlowdownView, victim: str, suspect: str, settings: SlowdownSettings) -> bool:
    """Whether there are windows enough of the stream without the suspect, or not yet enough beside it.

    A window is without the suspect if it did hardly anything there by its own measure. One task of an array never does
    much beside a stream, and is there all the same.
    """
    targets = [target for target in view.jobs[victim].by_target if target in view.jobs[suspect].by_target]
    moved, operations = view.tracks.moved(targets, victim), view.tracks.operations(targets, suspect)
    least = settings.presence * median([each for each in operations if each] or [1.0])
    beside = [each > least for each, own in zip(operations, moved, strict=True) if own]
    return beside.count(False) >= settings.min_windows or beside.count(True) < settings.min_windows


def signature(view: SlowdownView, victim: Profile, suspects: Sequence[Profile], times: Sequence[TargetTime],
              known: Collection[str], settings: SlowdownSettings) -> Signature | None:
    """Those of the suspects to blame, and the evidence; None where there is none, or it is not certain enough."""
    jobs = [suspect.job for suspect in suspects]
    shared = [time for time in times if time.share(jobs) >= FREE_SHARE]
    if not shared:
        return None
    parts = {job: fmean(time.share([job]) for time in shared) / fmean(time.share(jobs) for time in shared)
             for job in jobs}
    names = named(parts, known, settings.load_share)
    blamed = tuple(suspect for suspect in suspects if suspect.job in names)
    targets = tuple(sorted(time.target for time in shared))
    gain = gain_without(shared, victim.job, names)
    loads = [victim.by_target[target] for target in targets]
    dose = dose_probability(view.tracks, victim.job, names, targets)
    cross = cross_section_ratio(view.device_time, shared, names, {p.job for p in view.streams})
    found = Signature(victim, blamed, targets, tuple(shared), gain,
                      sum(load.moved_bytes for load in loads) / victim.seconds,
                      sum(view.tracks.moved(targets, victim.job)[n] > 0 for n in range(len(view.windows))), dose, cross)
    sure = 1 - 1 / gain.low >= SURE_LOSS or len(found.kinds) > 1 or any(job in known for job in names)
    return found if blamed and sure else None


def dose_probability(tracks: LoadTracks, victim: str, suspects: Collection[str],
                     targets: Sequence[str]) -> float | None:
    """Probability that as strong a fall of the victim's throughput with the suspects' operations comes by chance.

    The victim's rates are compared with the operations of the same window, target by target. A chance of the windows'
    order puts as low a sum of products as often as this says. None with fewer windows than the test needs.
    """
    pairs = []
    for target in targets:
        moved, _ = tracks.of(target, victim)
        operations = [sum(each) for each in zip(*(tracks.of(target, job)[1] for job in suspects), strict=True)]
        pairs.append((moved, operations))
    at_work = [n for n in range(len(tracks.windows))
               if any(moved[n] and operations[n] for moved, operations in pairs)]
    if len(at_work) < MIN_DOSE_WINDOWS:
        return None
    seconds = [tracks.windows[n].seconds for n in at_work]
    series = [(_centred([moved[n] / s for n, s in zip(at_work, seconds, strict=True)]),
               _centred([operations[n] / s for n, s in zip(at_work, seconds, strict=True)]))
              for moved, operations in pairs]

    def agreement(order: Sequence[int]) -> float:
        return sum(moved[n] * operations[at] for moved, operations in series for at, n in enumerate(order))

    order = list(range(len(at_work)))
    observed, chance = agreement(order), Random(f"{victim} {len(at_work)}")  # noqa: S311 - a test, not a secret
    as_low = 0
    for _ in range(PERMUTATIONS):
        chance.shuffle(order)
        as_low += agreement(order) <= observed
    return (as_low + 1) / (PERMUTATIONS + 1)


def _centred(values: Sequence[float]) -> list[float]:
    """Relative to their mean, as a share of it."""
    mean = fmean(values)
    return [value / mean - 1 for value in values] if mean else [0.0] * len(values)


def cross_section_ratio(times: Mapping[str, TargetTime], shared: Sequence[TargetTime], suspects: Collection[str],
                        streams: Collection[str]) -> float | None:
    """What streams get on free targets of the same pool, as a multiple of what they get on the shared ones.

    None with few free targets on which streams are at work.
    """
    def streamed(time: TargetTime) -> float:
        return sum(work[0] + work[1] for job, work in time.work.items() if job in streams)

    on = {time.target for time in shared}
    free = [rate for time in times.values() if time.target not in on and time.costs is shared[0].costs
            and time.share(suspects) < FREE_SHARE and (rate := streamed(time)) > 0]
    here = median(streamed(time) for time in shared)
    return median(free) / here if len(free) >= MIN_FREE_TARGETS and here else None
