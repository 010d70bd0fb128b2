"""The baseline of a stream: its throughput with and without a suspect, and the threshold below which it is slow.

A victim is compared with its own past. Loads of a job on a target are looked up once and kept for the next cycle.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import erfc, sqrt
from operator import add, eq
from statistics import fmean, median, quantiles
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Lt

from tierd.detect.profile import Classes
from tierd.model import Window

LoadSeries = tuple[Sequence[float], Sequence[float]]
"""Bytes and operations, window by window."""
DoseKey = tuple[str, frozenset[str], tuple[str, ...]]
"""A victim, its suspects and the targets."""
LoadArrays = tuple["array[float]", "array[float]"]
"""Bytes and operations of one job on one target, window by window."""


class LoadTracks:
    """Loads of jobs on targets, window by window. Each is looked up once, for any number of pairs of jobs.

    Loads are those of a window's own seconds at the rate of the target's span. A window in which one of the targets was
    not seen has none, so that it counts for no job there.

    ``before`` are the tracks of the previous cycle. Their arrays are moved into these, since most windows are the same.
    """

    def __init__(self, windows: Sequence[Window], before: LoadTracks | None = None) -> None:
        self.windows = windows
        self._seconds = [window.seconds for window in windows]
        self.marks = [(window.start, window.end, id(window.conditions)) for window in windows]
        """Identity of the windows; packing a window does not change it."""
        self.known: dict[tuple[str, str], LoadArrays] = {}
        self.doses: dict[DoseKey, tuple[float, float, float]] = before.doses if before is not None else {}
        """When each dose was tested last, its probability by chance, and the loss that it shows."""
        self.with_past: dict[tuple[str, str], float] = before.with_past if before is not None else {}
        """Victims and suspects whose past can be compared, and when that was seen."""
        self._old: dict[tuple[str, str], LoadArrays] = {}
        self._from = self._to = 0
        """Position of the common windows in ``before``."""
        if before is not None and windows and self.marks[0] in before.marks:
            self._old = before.known
            self._from = before.marks.index(self.marks[0])
            self._to = self._from + sum(takewhile(bool, map(eq, self.marks, before.marks[self._from:])))
        self._same = before is not None and self._from == 0 and self._to == len(before.marks)
        """Whether ``before`` has no windows that these tracks lack."""
        self._new = windows[self._to - self._from:]
        """Windows that ``before`` does not have."""
        self._unseen: defaultdict[str, set[int]] = defaultdict(set)
        """Indexes of the windows in which a target was not seen."""
        for at, window in enumerate(windows):
            for target in window.unseen if window.conditions else ():
                self._unseen[target].add(at)

    def of(self, target: str, job: str) -> LoadArrays:
        """Bytes and operations of one job on one target."""
        key = target, job
        known = self.known.get(key)
        if known is None:
            known = self.known[key] = self._looked_up(key)
        return known

    def _looked_up(self, key: tuple[str, str]) -> LoadArrays:
        track = self._old.pop(key, None)
        if track is None:
            track = array("d"), array("d")
            append_loads(track, key, self.windows)
        else:
            if not self._same:
                for numbers in track:
                    del numbers[self._to:], numbers[:self._from]
            append_loads(track, key, self._new)
        return track

    def settle(self) -> None:
        """Release the windows and the rest of the previous cycle's arrays. No more lookups follow."""
        oldest = self.windows[0].end if self.windows else 0.0
        self._old, self.windows, self._new = {}, (), ()
        self.doses = {key: tested for key, tested in self.doses.items() if tested[0] >= oldest}
        self.with_past = {pair: seen for pair, seen in self.with_past.items() if seen >= oldest}

    def on(self, targets: Collection[str], job: str) -> LoadSeries:
        """Bytes and operations of one job, summed over several targets."""
        return self.moved(targets, job), self.operations(targets, job)

    def moved(self, targets: Collection[str], job: str) -> Sequence[float]:
        """Bytes of one job, summed over several targets."""
        return self._where_seen(targets, summed([self.of(target, job)[0] for target in targets]))

    def operations(self, targets: Collection[str], job: str) -> Sequence[float]:
        """Operations of one job, summed over several targets."""
        return self._where_seen(targets, summed([self.of(target, job)[1] for target in targets]))

    def _where_seen(self, targets: Collection[str], numbers: Sequence[float]) -> Sequence[float]:
        if not self._unseen:
            return numbers
        unseen = {at for target in self._unseen.keys() & targets for at in self._unseen[target]}
        return [0.0 if at in unseen else number for at, number in enumerate(numbers)] if unseen else numbers

    def rates(self, targets: Collection[str], job: str) -> list[float]:
        """Bytes per second of one job over several targets, in the windows in which it was active."""
        return [moved / seconds for moved, seconds in zip(self.moved(targets, job), self._seconds, strict=True)
                if moved]

    def learned_rates(self, targets: Collection[str], job: str) -> list[float]:
        """Bytes per second of one job over several targets, in the windows from Prometheus' history."""
        if not (self.windows and self.windows[0].learned):
            return []
        return [moved / w.seconds for moved, w in zip(self.moved(targets, job), self.windows, strict=True)
                if moved and w.learned]


def append_loads(track: LoadArrays, key: tuple[str, str], windows: Iterable[Window]) -> None:
    """Append the loads of a job on a target in further windows, each as of the window's seconds."""
    moved, operations = track
    for window in windows:
        load = window.loads.get(key)
        if load is None:
            moved.append(0.0)
            operations.append(0.0)
        else:
            _, _, read_bytes, write_bytes, reads, writes, others, _, _ = load  # faster than by name
            part = window.seconds / window.spans[key[0]] if key[0] in window.spans else 1.0
            moved.append((read_bytes + write_bytes) * part)
            operations.append((reads + writes + others) * part)


def summed(parts: Sequence[Sequence[float]]) -> Sequence[float]:
    """Element-wise sums."""
    total = parts[0]
    for part in parts[1:]:
        total = list(map(add, total, part))
    return total


@dataclass(frozen=True, slots=True)
class StreamSeries:
    """Throughput of a stream on shared targets in bytes per second, and the windows in which the suspect was active."""

    rates: tuple[float, ...]
    disturbed: tuple[bool, ...]
    ends: tuple[float, ...]
    suspect: tuple[float, ...]
    """The suspect's operations per second."""
    learned: int = 0
    """Number of the oldest windows that come from Prometheus' history."""
    begun: float = 0.0
    """Start of tierd's first own window; epoch seconds."""

    @property
    def own(self) -> StreamSeries:
        """The series without windows from Prometheus' history."""
        first = self.learned
        return StreamSeries(self.rates[first:], self.disturbed[first:], self.ends[first:], self.suspect[first:],
                      begun=self.begun)

    @property
    def contended_seconds(self) -> float:
        """Duration of the present stay in tierd's own windows; seconds."""
        return self.ends[-1] - max(self.begun, self.ends[self.onset - 1] if self.onset else self.begun)

    @property
    def learned_quiet(self) -> int:
        """Number of windows without the suspect in Prometheus' history."""
        return sum(not disturbed for disturbed in self.disturbed[:self.learned])

    @property
    def quiet(self) -> list[float]:
        """Rates in windows without the suspect."""
        return [rate for rate, disturbed in zip(self.rates, self.disturbed, strict=True) if not disturbed]

    @property
    def contended(self) -> list[float]:
        """Rates in the suspect's present stay, oldest first; empty while it is away."""
        return list(self.rates[self.onset:])

    def late(self, least: int) -> list[float]:
        """The second half of the suspect's present stay, or ``least`` windows: load may build up."""
        contended = self.contended
        return contended[-max(least, len(contended) // 2):]

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
        """Median of the last rates in the suspect's present stay. There must be such a stay."""
        return median(self.contended[-count:])

    def halves(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Median rates of the victim and of the suspect's operations in the first and second half of the stay."""
        half = self.onset + (len(self.rates) - self.onset) // 2
        early, late = slice(self.onset, half), slice(half, None)
        return ((median(self.rates[early]), median(self.suspect[early])),
                (median(self.rates[late]), median(self.suspect[late])))

    def before_onset(self, count: int) -> list[float]:
        """The last undisturbed rates before the suspect came."""
        return [rate for rate, disturbed in zip(self.rates[:self.onset], self.disturbed, strict=False)
                if not disturbed][-count:]

    def usual(self, count: int) -> float:
        """Throughput without the suspect: the median, or the median just before the suspect came if that is lower.

        A stream that was already slow for another reason, such as a failing disk, is compared with its slow state.
        """
        return min(median(self.quiet), median(self.before_onset(count) or self.quiet))

    def usual_mean(self, count: int) -> float:
        """Mean throughput without the suspect. Large calls spread over windows change a median, but not a mean."""
        return min(fmean(self.quiet), fmean(self.before_onset(count) or self.quiet))


def stream_series(
    tracks: LoadTracks, victim: str, suspect: str, targets: Collection[str], presence: float
) -> StreamSeries:
    """Rates of the victim on these targets in the windows in which it was active.

    A window is disturbed if the suspect has at least ``presence`` of the two jobs' operations.
    """
    rates, disturbed, ends, operations, learned = [], [], [], [], 0
    mine, theirs = tracks.on(targets, victim), tracks.on(targets, suspect)
    for window, moved, own, other in zip(tracks.windows, *mine, theirs[1], strict=True):
        if moved:
            rates.append(moved / window.seconds)
            disturbed.append(other > 0 and other >= presence * (own + other))
            ends.append(window.end)
            operations.append(other / window.seconds)
            learned += window.learned
    begun = next((window.start for window in tracks.windows if not window.learned), 0.0)
    return StreamSeries(tuple(rates), tuple(disturbed), tuple(ends), tuple(operations), learned, begun)


def spread(rates: Sequence[float]) -> float:
    """Variation of a stream: the interquartile range of its rates as a share of the median.

    >>> spread([100.0] * 8), spread([90.0, 110.0, 100.0, 95.0, 105.0])
    (0.0, 0.1)
    """
    low, center, high = quantiles(rates, n=4, method="inclusive")
    return (high - low) / center if center else 1.0


def lower_edge(rates: Sequence[float], fraction: float) -> float:
    """Rates below this are slower than the stream's own variation: a share of its median, or its first quintile.

    >>> lower_edge([100.0] * 8, 0.85)
    85.0
    >>> lower_edge([20.0, 100.0, 30.0, 110.0, 25.0, 105.0], 0.85) < 30  # a stream that pauses by itself
    True
    """
    if len(rates) < 2:
        return fraction * rates[0] if rates else 0.0
    return min(fraction * median(rates), quantiles(rates, n=5, method="inclusive")[0])


def normal_below(deviations: float) -> float:
    """Probability that a normal variable is so many standard deviations above its mean, or lower.

    >>> round(normal_below(-1.645), 3), normal_below(0.0)
    (0.05, 0.5)
    """
    return erfc(-deviations / sqrt(2)) / 2


def lower_by_chance(lower: Sequence[float], higher: Sequence[float]) -> float:
    """Probability that values have so much lower ranks than others by chance (Mann and Whitney), from some of each.

    >>> round(lower_by_chance([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]), 2), lower_by_chance([1.0, 3.0], [2.0, 2.0])
    (0.01, 0.5)
    """
    wins = sum([(value > other) + (value == other) / 2 for value in higher for other in lower])
    mean = len(higher) * len(lower) / 2
    return normal_below((mean - wins) / sqrt(mean * (len(higher) + len(lower) + 1) / 6))


STEADY_WINDOWS = 8
"""Undisturbed windows needed to measure a stream's own variation; fewer may look steady by chance."""
DOUBT_MARGIN = 0.03
"""Loss beyond a stream's own variation, as a fraction of its throughput, from which it counts as slow."""


@dataclass(frozen=True)
class SlowdownSettings:
    """Thresholds of the table ``[noisy_neighbour]``, for both kinds of slowdown.

    Fractions are of the victim's undisturbed throughput unless the field says otherwise.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    classes: Classes = field(default_factory=Classes)
    recent_seconds: Annotated[float, Gt(0)] = 30.0
    """Period from which profiles of jobs are made."""
    enter: Annotated[float, Gt(0), Lt(1)] = 0.85
    """Throughput below this fraction begins a finding."""
    leave: Annotated[float, Gt(0), Lt(1)] = 0.91
    """Throughput above this fraction ends it: 1/1.1."""
    enter_steady: Annotated[float, Gt(0), Lt(1)] = 0.94
    """Begins a finding about a steady stream: a smaller loss is significant there."""
    leave_steady: Annotated[float, Gt(0), Lt(1)] = 0.965
    """Ends a finding about a steady stream."""
    min_windows: Annotated[int, Ge(2)] = 4
    """Windows with and windows without the aggressor, at the least."""
    before_windows: Annotated[int, Ge(1)] = 6
    """Windows just before the aggressor came that count for the usual throughput."""
    slow_windows: Annotated[float, Gt(0), Lt(1)] = 0.6
    """Share of the windows since the aggressor came in which the victim must have been slow."""
    target_share: Annotated[float, Gt(0), Lt(1)] = 0.1
    """Aggressor's share of the two jobs' operations or bytes from which a target counts as shared."""
    presence: Annotated[float, Gt(0), Lt(1)] = 0.05
    """Aggressor's share of the two jobs' operations from which a window counts as disturbed."""
    load_share: Annotated[float, Gt(0), Lt(1)] = 0.25
    """Suspects' part of the load that was added to the shared targets since they came, without the victim's."""
    operation_seconds: Annotated[float, Gt(0)] = 0.1
    """Throughput that one operation can cost a stream, as seconds of it, while the costs of the pool are not known:
    seeks, a journal commit, a RAID's read-modify-write."""


def threshold(quiet: Sequence[float], held: bool, settings: SlowdownSettings) -> float:
    """Fraction of the usual throughput below which a stream is slow. It is higher for steadier streams.

    >>> steady, varying = [100.0] * 8, [80.0, 100.0, 90.0, 120.0]
    >>> threshold(steady, False, SlowdownSettings()), threshold(varying, False, SlowdownSettings())
    (0.94, 0.85)
    """
    if len(quiet) < STEADY_WINDOWS:
        return settings.leave if held else settings.enter
    if held:
        return max(settings.leave, min(settings.leave_steady, 1 - spread(quiet)))
    return max(settings.enter, min(settings.enter_steady, 1 - DOUBT_MARGIN - spread(quiet)))
