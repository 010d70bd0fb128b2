"""How fast a stream is when a suspect leaves it alone, and how fast now: the victim against its own past."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles

from tierd.detect.tracks import Tracks


@dataclass(frozen=True, slots=True)
class Series:
    """Bytes per second of one stream on shared targets, window by window, and which windows the suspect was in."""

    rates: tuple[float, ...]
    disturbed: tuple[bool, ...]
    ends: tuple[float, ...]
    suspect: tuple[float, ...]
    """The suspect's operations per second."""
    learnt: int = 0
    """How many of the windows, the oldest, somebody else saw before our start."""
    begun: float = 0.0
    """When the first of our own windows begins."""

    @property
    def own(self) -> Series:
        """The same, without what somebody else saw."""
        first = self.learnt
        return Series(self.rates[first:], self.disturbed[first:], self.ends[first:], self.suspect[first:],
                      begun=self.begun)

    @property
    def contended_seconds(self) -> float:
        """How long we have seen the present stay ourselves."""
        return self.ends[-1] - max(self.begun, self.ends[self.onset - 1] if self.onset else self.begun)

    @property
    def learnt_quiet(self) -> int:
        """Windows without the suspect that somebody else saw."""
        return sum(not disturbed for disturbed in self.disturbed[:self.learnt])

    @property
    def quiet(self) -> list[float]:
        """Rates while the suspect was away."""
        return [rate for rate, disturbed in zip(self.rates, self.disturbed, strict=True) if not disturbed]

    @property
    def contended(self) -> list[float]:
        """Rates since the suspect came the last time, oldest first; empty while it is away."""
        return list(self.rates[self.onset:])

    @property
    def onset(self) -> int:
        """Index of the first window of the suspect's present stay. One window without it does not end a stay."""
        index = len(self.rates)
        gap = 0
        for position in range(len(self.rates) - 1, -1, -1):
            if self.disturbed[position]:
                index, gap = position, 0
            else:
                gap += 1
                if gap > 1:
                    break
        return index

    @property
    def onset_end(self) -> float:
        """When the first window of the suspect's present stay ended; infinite while it is away."""
        return self.ends[self.onset] if self.onset < len(self.ends) else float("inf")

    def now(self, count: int) -> float:
        """What the stream gets of late, while the suspect is there; it must be there."""
        return median(self.contended[-count:])

    def halves(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The stay in two: median rate of the victim and of the suspect's operations, early and late."""
        middle = self.onset + (len(self.rates) - self.onset) // 2
        early, late = slice(self.onset, middle), slice(middle, None)
        return ((median(self.rates[early]), median(self.suspect[early])),
                (median(self.rates[late]), median(self.suspect[late])))

    def before_onset(self, count: int) -> list[float]:
        """The last undisturbed rates before the suspect came."""
        return [rate for rate, disturbed in zip(self.rates[:self.onset], self.disturbed, strict=False)
                if not disturbed][-count:]

    def usual(self, count: int) -> float:
        """What the stream gets without the suspect: its median, but no more than it got just before the suspect came.

        So a stream that had got slow for another reason, a sick disk or the nightly backup, is compared with that.
        """
        return min(median(self.quiet), median(self.before_onset(count) or self.quiet))

    def usual_mean(self, count: int) -> float:
        """The same as a mean: what a stream with large calls does not get done in one window it does in the next."""
        return min(fmean(self.quiet), fmean(self.before_onset(count) or self.quiet))


def series(tracks: Tracks, victim: str, suspect: str, targets: Collection[str], presence: float) -> Series:
    """Rates of the victim on these targets in the windows it was active in.

    A window is disturbed when the suspect did at least ``presence`` of the operations of the two.
    """
    rates, disturbed, ends, operations, learnt = [], [], [], [], 0
    mine, theirs = tracks.on(targets, victim), tracks.on(targets, suspect)
    for window, moved, own, other in zip(tracks.windows, *mine, theirs[1], strict=True):
        if moved:
            rates.append(moved / window.seconds)
            disturbed.append(other > 0 and other >= presence * (own + other))
            ends.append(window.end)
            operations.append(other / window.seconds)
            learnt += window.learnt
    begun = next((window.start for window in tracks.windows if not window.learnt), 0.0)
    return Series(tuple(rates), tuple(disturbed), tuple(ends), tuple(operations), learnt, begun)


def spread(rates: Sequence[float]) -> float:
    """How much a stream varies by itself: the middle half of its rates as a share of its median.

    >>> spread([100.0] * 8), spread([90.0, 110.0, 100.0, 95.0, 105.0])
    (0.0, 0.1)
    """
    low, middle, high = quantiles(rates, n=4, method="inclusive")
    return (high - low) / middle if middle else 1.0


def lower_edge(rates: Sequence[float], fraction: float) -> float:
    """Below this a rate is slower than the stream's own ups and downs: a share of its median, or its first quintile.

    >>> lower_edge([100.0] * 8, 0.85)
    85.0
    >>> lower_edge([20.0, 100.0, 30.0, 110.0, 25.0, 105.0], 0.85) < 30  # a stream that pauses by itself
    True
    """
    if len(rates) < 2:
        return fraction * rates[0] if rates else 0.0
    return min(fraction * median(rates), quantiles(rates, n=5, method="inclusive")[0])
