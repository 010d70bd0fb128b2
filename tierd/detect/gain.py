"""What a stream gained by an act: the posterior of :mod:`tierd.detect.interference`, applied to the time since.

Of the log of the stream's rate, the neighbour's device time accounts for ``b D`` before, less ``b D`` since. The stream
must have that gain: its rate must have risen as much, apart from what others take more or less since. Where b was right
and the level stayed, both are the same. If the stream did not get faster, the neighbour was not the cause, or the level
fell; if it got faster than the neighbour's device time fell, something else helped. So the smaller of the two counts,
and the interval covers both. Each b is that of its time: costs of service that are learned later change what b means.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from math import exp, expm1, hypot, log, log1p, sqrt
from statistics import fmean, median

import numpy as np

from tierd.detect.interference import RIVALS, WANDER, Interference, Newest, normal
from tierd.loads import Floats, Ints

MEDIAN_VARIANCE = 1.57
"""Variance of the median of normal values, as a multiple of that of their mean: half of pi."""
VARIES = 0.1
"""Relative error of a present loss: what a second of device time costs a stream, from minute to minute. A choice."""
LEAST_ERROR = 1e-3
"""Least standard error of a gain: nothing about a stream is known better."""


@dataclass(frozen=True, slots=True)
class StreamWindow:
    """A stream in one window."""

    end: float
    seconds: float
    """Its length."""
    log_rate: float
    """Logarithm of bytes per second."""
    jobs: Sequence[str]
    """Suspects."""
    numbers: bytes
    """What :attr:`suspects` says, packed, because there are thousands of windows."""
    rivals: float
    """R: of the device time of other streams."""

    @property
    def suspects(self) -> Mapping[str, Sequence[float]]:
        """D of each suspect, and mean and standard deviation of its b, as known after this window."""
        return dict(zip(self.jobs, np.frombuffer(self.numbers).reshape(-1, 3).tolist(), strict=True))

    @property
    def taken(self) -> Mapping[str, float]:
        """D of each suspect."""
        return {job: numbers[0] for job, numbers in self.suspects.items()}


@dataclass(frozen=True, slots=True)
class StreamTrack:
    """The last windows of a stream, and its posterior after them."""

    windows: Sequence[StreamWindow]
    jobs: Sequence[str]
    """Suspect of each slot; empty for a free one."""
    mean: Floats
    """Of the posterior: level, b of each slot, b of other streams."""
    covariance: Floats
    noise: float
    """Variance of the log rate of a window."""
    wander: float = WANDER
    """Variance of the level, each second, as learned before the track: what an act changes is no wandering."""

    def doses(self, windows: Collection[StreamWindow]) -> Floats:
        """Means over some windows, for the columns of the posterior; that of the level is 0."""
        taken = [each.taken for each in windows]
        return np.array((0.0, *(fmean(each.get(job, 0.0) for each in taken) for job in self.jobs),
                         fmean(each.rivals for each in windows)))

    def lost_to(self, doses: Floats) -> tuple[float, float]:
        """Log of the rate that these doses cost the stream, and its error."""
        mean = float(doses @ self.mean)
        return mean, sqrt(max(float(doses @ self.covariance @ doses), 0.0) + (VARIES * mean)**2)


class Tracks:
    """Tracks of slowed streams, of streams that acts are for, and of those on the same targets."""

    def __init__(self, before_seconds: float, seconds: float) -> None:
        """``before_seconds``: length of the track of a slowed stream before an act; ``seconds``: with an act."""
        self._before_seconds = before_seconds
        self._seconds = seconds
        self.known: Mapping[str, StreamTrack] = {}
        """By the name of the stream."""

    def add(self, end: float, slowed: Collection[int], acted_for: Collection[int], model: Interference,
            jobs: Sequence[str]) -> None:
        """Add the newest window, which ends at ``end``. ``acted_for``: streams whose acts have no verdict yet."""
        found = {job: track for job, track in self.known.items() if 0 <= end - track.windows[-1].end < self._seconds}
        now = model.newest
        for wanted, seconds in ((slowed, self._before_seconds), (acted_for, self._seconds)):
            if now is not None and wanted:
                found.update(extended(self.known, end, seconds, now, beside(now, wanted), jobs=jobs))
        self.known = found


def extended(known: Mapping[str, StreamTrack], end: float, seconds: float, now: Newest, every: Ints,
             jobs: Sequence[str]) -> Iterator[tuple[str, StreamTrack]]:
    """The tracks of the last seconds with the newest window of the streams at these indexes, by name."""
    # by the costs of the time when each job was first seen, so that all windows of a track have one measure of D and R
    state = now.state[every]
    dose_factor = np.pad(state["dose_factor"], ((0, 0), (1, 0)), constant_values=1.0)
    means = now.mean[every] * dose_factor
    covariances = now.covariance[every] * (dose_factor[:, :, None] * dose_factor[:, None, :])
    doses, variances = now.exposure[every] / dose_factor[:, 1:], np.einsum("vii->vi", covariances)[:, 1:]
    numbers = np.stack((doses, means[:, 1:], np.sqrt(np.maximum(variances, 0.0))), axis=2)
    taken = doses[:, :RIVALS] > 0
    columns = (now.streams.job[every], state["slot"], taken, now.rate[every], doses[:, RIVALS], state["noise"],
               state["wander"])
    for at, (job, slots, of_slots, rate, rivals, noise, wander) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)):
        track, names = known.get(jobs[job]), tuple(jobs[number] if number >= 0 else "" for number in slots)
        windows = [each for each in (track.windows if track else ()) if end - seconds < each.end < end]
        newest = StreamWindow(end, now.seconds, log(rate), tuple(compress(names, of_slots)),
                              numbers[at, :RIVALS][taken[at]].tobytes(), rivals=rivals)
        yield jobs[job], StreamTrack((*windows, newest), names, means[at].copy(), covariances[at].copy(), noise,
                                     wander=track.wander if track else wander)


def beside(now: Newest, jobs: Collection[int]) -> Ints:
    """Indices of these streams, and of those that the same targets hold up, as far as the window says something."""
    streams = now.streams
    theirs = np.isin(streams.target, streams.target[np.isin(streams.job[streams.of], list(jobs))])
    return np.unique(streams.of[theirs & (now.rate[streams.of] > 0)])


@dataclass(frozen=True, slots=True)
class Gain:
    """What a stream has regained of the log of its rate."""

    explained: float
    """What the device time that the neighbour takes less accounts for."""
    explained_error: float
    """Standard deviation."""
    measured: float
    """What the stream gained in fact, corrected for what others take more or less."""
    measured_error: float
    share: float
    """The neighbour's part of the device time that all suspects took before."""

    @property
    def mean(self) -> float:
        """The smaller of the two."""
        return min(self.explained, self.measured)

    def low(self, errors: float) -> float:
        """Lower end of an interval that covers both, at this many standard deviations from their means."""
        return min(self.explained - errors * self.explained_error, self.measured - errors * self.measured_error)

    def high(self, errors: float) -> float:
        """Upper end of that interval."""
        return max(self.explained + errors * self.explained_error, self.measured + errors * self.measured_error)

    def probability(self, least: float, error: float = 0.0) -> float:
        """Probability of a gain of at least so much, of the one that is less sure of it. ``error``: of ``least``."""
        return min(normal((self.explained - least) / hypot(self.explained_error, error)),
                   normal((self.measured - least) / hypot(self.measured_error, error)))

    def something_else(self, least: float, doubt: float) -> bool:
        """Whether the stream is slower than with the neighbour, although the act may have gained it ``least``.

        An act takes load from a stream's targets. What slows the stream even more is something else. ``doubt`` is the
        probability of an error.
        """
        return (normal((self.explained - least) / self.explained_error) > doubt
                and normal(self.measured / self.measured_error) < doubt)

    def slower_than_undone(self, work: float, doubt: float) -> bool:
        """Whether the stream is slower than it would be without the act. The neighbour does ``work`` times as much now.

        It does so because of the act, or would have done so anyway: each with a probability of a half, a choice.
        """
        more = (work - 1) / 2
        return normal((self.measured + more * self.explained)
                      / hypot(self.measured_error, more * self.explained_error)) < doubt


def gain(track: StreamTrack, neighbour: str, before: Sequence[StreamWindow],
         since: Sequence[StreamWindow]) -> Gain | None:
    """What a stream gained since an act against a neighbour; None if the posterior does not know this neighbour."""
    costs = [each.suspects[neighbour] for each in before if neighbour in each.jobs]
    if not costs or not since or neighbour not in track.jobs:
        return None
    was, now = track.doses(before), track.doses(since)
    own = np.arange(len(was)) == 1 + track.jobs.index(neighbour)
    _, b, b_error = costs[-1]
    still = fmean(dose * now_b for dose, now_b, _ in (each.suspects.get(neighbour, (0.0, 0.0, 0.0)) for each in since))
    explained = b * float(was[own].sum()) - still
    error = hypot(b_error * float((was - now)[own].sum()), VARIES * explained)
    others, others_error = track.lost_to(np.where(own, 0.0, now - was))
    noise = track.noise * MEDIAN_VARIANCE * (1 / len(before) + 1 / len(since))
    wandered = track.wander * (fmean(each.end for each in since) - fmean(each.end for each in before))
    measured = median(each.log_rate for each in since) - median(each.log_rate for each in before) + others
    return Gain(explained, max(error, LEAST_ERROR), measured, sqrt(noise + wandered + others_error**2),
                float(was[own].sum() / max(was[1:-1].sum(), 1e-9)))


def probability_of_loss_to_others(track: StreamTrack, before: Sequence[StreamWindow], since: Sequence[StreamWindow],
                                  share: float) -> float:
    """Probability that a stream loses at least this share because others take more of its targets since an act.

    What other streams take is compared with what it took itself before: if it became slow by itself, they have more
    than it has, and take no more.
    """
    was, now = track.doses(before), track.doses(since)
    slower = fmean(each.log_rate for each in since) - fmean(each.log_rate for each in before)
    now[-1] = log1p(expm1(now[-1]) * exp(slower))
    mean, _ = track.lost_to(now - was)
    _, error = track.lost_to(np.maximum(now - was, 0))  # what takes less costs no more, however little is known of it
    return normal((mean + log1p(-share)) / max(error, LEAST_ERROR))
