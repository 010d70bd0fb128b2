"""Selects the streams and suspects to compare: each cycle tests tens of thousands of pairs.

A stream is compared if it is slower now than in most of its history. A suspect is compared if it causes enough load on
a shared target, and if there are windows with and without it.

>>> stream = active_windows(([5e6, 5e6, 0.0, 5e6, 5e6], [10.0, 10.0, 0.0, 10.0, 10.0]))
>>> stream
[(4, 10.0), (3, 10.0), (1, 10.0), (0, 10.0)]
>>> comparable(stream, [0.0, 0.0, 9.0, 9.0, 9.0], 0.05, least=2)  # it came when the stream had paused
True
>>> comparable(stream, [9.0, 9.0, 9.0, 9.0, 9.0], 0.05, least=2)  # it was always there
False
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tierd.detect.device_time import TargetTime
from tierd.detect.noisy_neighbour.baseline import LoadSeries, LoadTracks, SlowdownSettings
from tierd.detect.profile import Profile, is_stream, profiles
from tierd.model import Finding, Window

Demand = Mapping[str, tuple[float, float]]
"""Operations and bytes of a job by target."""
ActiveWindows = Sequence[tuple[int, float]]
"""Index of each window in which a stream moved bytes, newest first, with its operations."""


def demand_by_target(job: Profile) -> Demand:
    """Recent operations and bytes of one job by target."""
    return {target: (load.reads + load.writes + load.other_operations, load.read_bytes + load.write_bytes)
            for target, load in job.by_target.items()}


def shared_targets(mine: Demand, theirs: Demand, unhealthy: Collection[str], share: float) -> tuple[str, ...]:
    """Healthy targets used by both jobs where the other has at least ``share`` of their operations or bytes.

    Either suffices: 4 KiB writes are many operations and few bytes; 4 MiB files are the opposite.
    """
    found = []
    few, many = (mine, theirs) if len(mine) < len(theirs) else (theirs, mine)
    for target in few:
        if target in many and target not in unhealthy:
            own_operations, own_moved = mine[target]
            operations, moved = theirs[target]
            if operations >= share * (operations + own_operations) or moved >= share * (moved + own_moved):
                found.append(target)
    return tuple(sorted(found)) if len(found) > 1 else tuple(found)


def active_windows(stream: LoadSeries) -> ActiveWindows:
    """Windows in which a stream was active, with its operations."""
    both = list(zip(*stream, strict=True))
    return [(at, both[at][1]) for at in range(len(both) - 1, -1, -1) if both[at][0]]


def comparable(mine: ActiveWindows, theirs: Sequence[float], presence: float, least: int) -> bool:
    """Whether enough recent windows have the suspect, and enough windows lack it, for a comparison.

    ``theirs`` are the suspect's operations, window by window. For half of all pairs the newest windows decide.
    """
    stay = gap = quiet = 0
    stays = False
    for at, own in mine:
        other = theirs[at]
        if other > 0 and other >= presence * (own + other):
            if not stays:
                stay, gap = stay + gap + 1, 0
                stays = stay >= least
        else:
            quiet += 1
            if stays:
                if quiet >= least:
                    return True
            else:
                gap += 1
                if gap > 1:
                    return False
    return stays and quiet >= least


def min_windows_compared(least: int) -> int:
    """Windows in which a stream must have moved bytes to be comparable with any suspect.

    Every second window of a stay may be one without the suspect, and counts for both.

    >>> min_windows_compared(4), comparable([(n, 1.0) for n in range(6)], [0.0, 1.0, 0.0, 1.0, 0.0, 0.0], 0.05, 4)
    (6, True)
    """
    return least + (least + 1) // 2


FEW_JOBS, HEAVY_SHARE = 4, 0.05
"""If a target has more suspects than ``FEW_JOBS``, those with a smaller share of their load are ignored."""


def significant_jobs(others: Iterable[Profile]) -> Mapping[str, Sequence[Profile]]:
    """Suspects by target, without those whose load is negligible on a crowded target."""
    on: defaultdict[str, list[Profile]] = defaultdict(list)
    for other in others:
        for target in other.by_target:
            on[target].append(other)
    for target, crowd in on.items():
        if len(crowd) > FEW_JOBS:
            loads = [other.by_target[target] for other in crowd]
            operations = [load.reads + load.writes + load.other_operations for load in loads]
            moved = [load.read_bytes + load.write_bytes for load in loads]
            least_operations, least_bytes = HEAVY_SHARE * sum(operations), HEAVY_SHARE * sum(moved)
            on[target] = [other for other, own_operations, own_bytes in zip(crowd, operations, moved, strict=True)
                          if own_operations >= least_operations or own_bytes >= least_bytes]
    return defaultdict(list, on)


def may_have_slowed(victim: Profile, tracks: LoadTracks, settings: SlowdownSettings) -> bool:
    """Whether the stream is slower now than in most of its history, on all its targets or on one.

    A stream that was slow for most of the history is missed. This saves comparing thousands of healthy streams with
    thousands of jobs.
    """
    def fraction(targets: Collection[str]) -> float:
        rates = tracks.rates(targets, victim.job)
        learned = tracks.learned_rates(targets, victim.job)
        usual = max(healthy_rate(rates), healthy_rate(learned)) if learned else healthy_rate(rates)
        return sorted_median(sorted(rates[-settings.min_windows:])) / usual if usual else 1.0

    if fraction(victim.by_target) <= settings.enter_steady + 0.01:
        return True
    return len(victim.by_target) > 1 and any(fraction([target]) < settings.enter for target in victim.by_target)


def healthy_rate(rates: Sequence[float]) -> float:
    """Healthy throughput of a stream: its median, or 97% of its third quartile if that is more. 0 without rates.

    >>> healthy_rate([]), healthy_rate([10.0, 10.0, 100.0, 100.0])
    (0.0, 97.0)
    """
    ordered = sorted(rates)
    return max(sorted_median(ordered), 0.97 * ordered[3 * len(ordered) // 4]) if ordered else 0.0


def sorted_median(ordered: Sequence[float]) -> float:
    """The median of sorted values; it is called thousands of times per cycle.

    >>> sorted_median([1.0, 2.0, 4.0]), sorted_median([1.0, 2.0, 4.0, 5.0])
    (2.0, 3.0)
    """
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


@dataclass(frozen=True)
class SlowdownView:
    """The input of detectors of slowdowns, made once per cycle."""

    windows: Sequence[Window]
    recent: Sequence[Window]
    jobs: Mapping[str, Profile]
    """Recent profiles by job."""
    tracks: LoadTracks
    active: Collection[tuple[str, str, str]]
    """Keys of active findings: their thresholds are laxer."""
    on: Mapping[str, Sequence[Profile]] = field(repr=False)
    """Recently active jobs by target."""
    streams: Sequence[Profile] = ()
    """Jobs that stream."""
    device_time: Mapping[str, TargetTime] = field(default_factory=dict, repr=False)
    """Recent service time of targets by job; only targets whose costs of service are known."""
    slowed_cache: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)
    """Result of ``may_have_slowed`` by victim, shared by the detectors."""
    demand_cache: dict[str, Demand] = field(default_factory=dict, compare=False, repr=False)
    """Result of ``demand_by_target`` by job."""

    @property
    def now(self) -> float:
        """End of the newest window; epoch seconds."""
        return self.windows[-1].end

    def demand_of(self, job: Profile) -> Demand:
        """Recent operations and bytes of a job by target."""
        known = self.demand_cache.get(job.job)
        if known is None:
            known = self.demand_cache[job.job] = demand_by_target(job)
        return known

    def device_times(self, targets: Collection[str]) -> list[TargetTime]:
        """Service time of those targets whose pool's costs are known."""
        return [time for target in targets if (time := self.device_time.get(target)) is not None]

    @cached_property
    def stream_rates(self) -> Mapping[str, Sequence[tuple[float, float]]]:
        """Mean bytes of an RPC and bytes per second of each stream, by target whose costs are known.

        Hundreds of victims are compared with the streams of all targets.
        """
        size_of = {stream.job: stream.mean_rpc_bytes for stream in self.streams}
        return {target: [(size_of[job], read + written) for job, (read, written, _) in time.work.items()
                         if job in size_of and read + written] for target, time in self.device_time.items()}


def slowdown_view(windows: Sequence[Window], settings: SlowdownSettings, before: LoadTracks | None = None,
                  active: Collection[tuple[str, str, str]] = ()) -> SlowdownView:
    """The view as of the newest window; there must be one. ``before`` are the tracks of the previous cycle."""
    recent = [w for w in windows if w.end > windows[-1].end - settings.recent_seconds]
    jobs = profiles(recent)
    on: defaultdict[str, list[Profile]] = defaultdict(list)
    for each in jobs.values():
        for target in each.by_target:
            on[target].append(each)
    streams = [job for job in jobs.values() if is_stream(job, settings.classes)]
    return SlowdownView(windows, recent, jobs, LoadTracks(windows, before), active, on, streams)


@dataclass(frozen=True, slots=True)
class SlowdownDetector:
    """One kind of slowdown and how it is found, in every cycle. All kinds share a view and settings."""

    name: str
    """The kind of its findings."""
    detect: Callable[[SlowdownView, SlowdownSettings], Iterable[Finding]]
