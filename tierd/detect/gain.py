"""What an act brought a stream: the posterior of :mod:`tierd.detect.interference`, looked at over the time since.

Of the log of the stream's rate, the neighbour's device time accounts for ``b (D before - D since)``. The stream must
have that gain: its rate must have risen as much, apart from what others take more or less since. Where b is right and
the level stayed, both are the same. If the stream did not get faster, the neighbour was not the cause, or the level
fell; if it got faster than the neighbour's device time fell, something else helped. So the smaller of the two counts,
and the interval covers both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import exp, expm1, log, log1p, sqrt
from statistics import fmean, median

import numpy as np

from tierd.detect.interference import VARIES, WANDER, Interference, Newest, normal
from tierd.loads import Floats

MEDIAN_VARIANCE = 1.57
"""Variance of the median of normal values, as a multiple of that of their mean: half of pi."""
LEAST_ERROR = 1e-3
"""Nothing about a stream is known better."""


@dataclass(frozen=True, slots=True)
class StreamWindow:
    """A stream in one window."""

    end: float
    log_rate: float
    """Logarithm of bytes per second."""
    taken: Mapping[str, float]
    """D of each suspect."""
    rivals: float
    """R, of other streams."""


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

    def doses(self, windows: Collection[StreamWindow]) -> Floats:
        """Means over some windows, for the columns of the posterior; that of the level is 0."""
        return np.array((0.0, *(fmean(each.taken.get(job, 0.0) for each in windows) for job in self.jobs),
                         fmean(each.rivals for each in windows)))

    def lost_to(self, doses: Floats) -> tuple[float, float]:
        """Log of the rate that these doses cost the stream, and its error."""
        mean = float(doses @ self.mean)
        return mean, sqrt(max(float(doses @ self.covariance @ doses), 0.0) + (VARIES * mean)**2)


class Tracks:
    """Tracks of the streams that acts are for, and of the streams beside them."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        """How long a track is, and how long it goes on after its stream was last found slow."""
        self._slowed_at: dict[int, float] = {}
        self._windows: dict[str, deque[StreamWindow]] = {}
        self.known: Mapping[str, StreamTrack] = {}
        """By the name of the stream."""

    def add(self, end: float, slowed: Collection[int], model: Interference, jobs: Sequence[str]) -> None:
        """Add the newest window, which ends at ``end``. ``slowed``: streams that are found slow now."""
        self._slowed_at.update(dict.fromkeys(slowed, end))
        self._slowed_at = {job: at for job, at in self._slowed_at.items() if end - self._seconds < at <= end}
        self._windows = {job: each for job, each in self._windows.items() if each[-1].end > end - self._seconds}
        found = {job: track for job, track in self.known.items() if job in self._windows}
        now = model.newest
        if now is not None:
            for at in beside(now, self._slowed_at):
                found[jobs[now.streams.job[at]]] = self._track(end, now, at, jobs)
        self.known = found

    def _track(self, end: float, now: Newest, at: int, jobs: Sequence[str]) -> StreamTrack:
        names = tuple(jobs[number] if number >= 0 else "" for number in now.slot[at].tolist())
        *doses, rivals = now.exposure[at].tolist()
        taken = {name: dose for name, dose in zip(names, doses, strict=True) if dose > 0}
        windows = self._windows.setdefault(jobs[now.streams.job[at]], deque())
        if windows and windows[-1].end >= end:
            windows.clear()  # the clock went back
        windows.append(StreamWindow(end, log(now.rate[at]), taken, rivals))
        while windows[0].end <= end - self._seconds:
            windows.popleft()
        return StreamTrack(tuple(windows), names, now.mean[at], now.covariance[at], float(now.noise[at]))


def beside(now: Newest, jobs: Collection[int]) -> list[int]:
    """Indices of these streams, and of those that the same targets hold up, as far as the window says something."""
    streams = now.streams
    theirs = np.isin(streams.target, streams.target[np.isin(streams.job[streams.of], list(jobs))])
    found: list[int] = np.unique(streams.of[theirs & (now.rate[streams.of] > 0)]).tolist()
    return found


@dataclass(frozen=True, slots=True)
class Gain:
    """What a stream has regained of the log of its rate."""

    explained: float
    """What the device time that the neighbour takes less accounts for."""
    explained_error: float
    """Standard deviation."""
    measured: float
    """What the stream has more, without what others take more or less."""
    measured_error: float
    share: float
    """The neighbour's part of the device time that all suspects took before."""

    @property
    def mean(self) -> float:
        """The smaller of the two."""
        return min(self.explained, self.measured)

    def low(self, errors: float) -> float:
        """Lower end of an interval that covers both, so many standard deviations from their means."""
        return min(self.explained - errors * self.explained_error, self.measured - errors * self.measured_error)

    def high(self, errors: float) -> float:
        """Upper end of that interval."""
        return max(self.explained + errors * self.explained_error, self.measured + errors * self.measured_error)

    def probability(self, least: float) -> float:
        """Probability of a gain of at least so much, of the one that is less sure of it."""
        return min(normal((self.explained - least) / self.explained_error),
                   normal((self.measured - least) / self.measured_error))


def gain(track: StreamTrack, neighbour: str, before: Sequence[StreamWindow],
         since: Sequence[StreamWindow]) -> Gain | None:
    """What a stream gained since an act against a neighbour; None if the posterior does not know this neighbour."""
    if not before or not since or neighbour not in track.jobs:
        return None
    was, now = track.doses(before), track.doses(since)
    own = np.zeros(len(was), bool)
    own[1 + track.jobs.index(neighbour)] = True
    explained, error = track.lost_to(np.where(own, was - now, 0.0))
    others, others_error = track.lost_to(np.where(own, 0.0, now - was))
    noise = track.noise * MEDIAN_VARIANCE * (1 / len(before) + 1 / len(since))
    wandered = WANDER * (fmean(each.end for each in since) - fmean(each.end for each in before))
    measured = median(each.log_rate for each in since) - median(each.log_rate for each in before) + others
    suspects = float(was[1:-1].sum())
    return Gain(explained, max(error, LEAST_ERROR), measured, sqrt(noise + wandered + others_error**2),
                float(was[own].sum()) / suspects if suspects > 0 else 0.0)


def probability_of_loss_to_others(track: StreamTrack, before: Sequence[StreamWindow], since: Sequence[StreamWindow],
                                  share: float) -> float:
    """Probability that a stream loses at least this share because others take more of its targets since an act.

    What other streams take is compared with what it took itself before: if it became slow by itself, they have more
    than it has, and take no more.
    """
    was, now = track.doses(before), track.doses(since)
    slower = fmean(each.log_rate for each in since) - fmean(each.log_rate for each in before)
    now[-1] = log1p(expm1(now[-1]) * exp(slower))
    mean, error = track.lost_to(now - was)
    return normal((mean + log1p(-share)) / max(error, LEAST_ERROR))
