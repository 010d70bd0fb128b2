"""Finds streams that slowed down after another job came to their targets, whatever that job does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean, median

from tierd.detect.noisy_neighbour.baseline import (
    LoadTracks,
    SlowdownSettings,
    StreamSeries,
    lower_by_chance,
    lower_edge,
    spread,
    stream_series,
    threshold,
)
from tierd.detect.noisy_neighbour.pairs import (
    ActiveWindows,
    SlowdownView,
    active_windows,
    comparable,
    may_have_slowed,
    min_windows_compared,
    shared_targets,
    significant_jobs,
)
from tierd.detect.profile import Profile
from tierd.model import CHANCE

MIN_STAY_SECONDS = 120.0
"""Windows from Prometheus' history have this length. A stay must be as long to be compared with them."""


def is_slowed(course: StreamSeries, held: bool, settings: SlowdownSettings) -> bool:
    """Whether the victim was slow in most recent windows, compared with its throughput before the other job came.

    Recent is the second half of the other job's stay: load may build up, for instance as a directory fills. Median and
    mean of these windows must be slow, and most single windows.
    """
    quiet, contended = course.quiet, course.contended
    if len(quiet) < settings.min_windows or len(contended) < settings.min_windows:
        return False
    if course.learned and course.contended_seconds < MIN_STAY_SECONDS:
        return False
    usual, edge = course.usual(settings.before_windows), threshold(quiet[course.learned_quiet:], held, settings)
    if course.learned and fmean(course.own.contended) > edge * usual:
        return False  # history holds means: single windows may be slow by chance
    if course.now(settings.min_windows) > edge * usual:
        return False
    limit = min(edge * usual, lower_edge(quiet, edge))
    late = course.late(settings.min_windows)
    if fmean(late) > edge * course.usual_mean(settings.before_windows):
        return False  # with large calls a median of few windows is chance
    enough = settings.slow_windows * len(late)
    if sum(rate <= limit for rate in late) < enough:
        # a window holds few large calls, and one call more lifts it over the threshold
        end = threshold(course.own.quiet, True, settings) * usual
        if sum(rate <= end for rate in late) < enough or may_be_chance(course, settings):
            return False
    return dose_fits(course, usual, settings)


def may_be_chance(course: StreamSeries, settings: SlowdownSettings) -> bool:
    """Whether the victim's windows beside the other job are slower by chance (rank test), or its stream is not steady.

    They must be slower than the last windows before the other job came, and than all windows without it.
    """
    if threshold(course.own.quiet, False, settings) <= settings.enter:
        return True
    before = course.before_onset(settings.before_windows)
    return any(lower_by_chance(course.contended, each) > CHANCE for each in (before or course.quiet, course.quiet))


def dose_fits(course: StreamSeries, usual: float, settings: SlowdownSettings) -> bool:
    """Whether the victim's loss fits the aggressor's load over time.

    If the victim kept its speed for the first windows or the first half of the aggressor's activity, and slowed down
    only later at the same load, the aggressor is not the cause. A failing disk may be.
    """
    if was_whole_at_first(course, usual, settings):
        return False
    if len(course.contended) < 2 * settings.min_windows:
        return True
    (early, early_dose), (late, late_dose) = course.halves()
    return early_dose < late_dose / 2 or usual - early >= (usual - late) / 3


def was_whole_at_first(course: StreamSeries, usual: float, settings: SlowdownSettings) -> bool:
    """Whether the victim was whole in each of the aggressor's first windows, at the load of the later ones."""
    least = settings.min_windows
    first, later = course.contended[:least], course.suspect[course.onset + least:]
    return (bool(later) and min(first) >= settings.leave_steady * usual
            and median(course.suspect[course.onset:course.onset + least]) >= median(later) / 2)


@dataclass(frozen=True, slots=True)
class Slowdown:
    """A victim, the other job, their shared targets and the victim's throughput there."""

    victim: Profile
    other: Profile
    targets: tuple[str, ...]
    course: StreamSeries
    usual: float
    """Throughput of the victim there without the other job; bytes per second."""
    now: float
    """Throughput of the victim there now; bytes per second."""

    @property
    def factor(self) -> float:
        """Usual throughput divided by throughput now; infinite if the victim stands still."""
        return self.usual / self.now if self.now else float("inf")

    @property
    def learnt_windows(self) -> int | None:
        """Quiet windows that come from Prometheus' history; None if tierd's own windows were enough."""
        return self.course.learned_quiet if self.course.learned else None


def slowdowns(at: SlowdownView, victims: Iterable[Profile], others: Iterable[Profile], kind: str,
              settings: SlowdownSettings) -> Iterator[Slowdown]:
    """Every victim that slowed down since one of the others came. Active findings of ``kind`` have laxer thresholds."""
    on = significant_jobs(others)
    known = {job for of, _, job in at.active if of == kind}
    needed = min_windows_compared(settings.min_windows)
    for victim in victims:
        if victim.job not in known:
            if victim.job not in at.slowed_cache:
                at.slowed_cache[victim.job] = may_have_slowed(victim, at.tracks, settings)
            if not at.slowed_cache[victim.job]:
                continue
        if sum(map(bool, at.tracks.moved(victim.by_target, victim.job))) < needed:
            continue
        near = {other.job: other for target in victim.by_target for other in on[target] if other.job != victim.job}
        own, unhealthy = at.demand_of(victim), at.windows[-1].conditions
        mine: dict[tuple[str, ...], ActiveWindows] = {}
        for other in near.values():
            targets = shared_targets(own, at.demand_of(other), unhealthy, settings.target_share)
            if not targets:
                continue
            stream = mine.get(targets)
            if stream is None:
                stream = mine[targets] = active_windows(at.tracks.on(targets, victim.job))
            if len(stream) < needed or not comparable(stream, at.tracks.operations(targets, other.job),
                                                      settings.presence, settings.min_windows):
                continue
            course = stream_series(at.tracks, victim.job, other.job, targets, settings.presence)
            if course.learned and len(course.own.quiet) >= settings.min_windows:
                course = course.own
            if is_slowed(course, (kind, other.job, victim.job) in at.active, settings):
                yield Slowdown(victim, other, targets, course, course.usual(settings.before_windows),
                               course.now(settings.min_windows))


def bystander_gain(
    tracks: LoadTracks, bystander: str, slow: Slowdown, targets: Collection[str], settings: SlowdownSettings
) -> float:
    """Throughput that another stream gained on these targets since the victim slowed down; bytes per second.

    0 if it is not clearly faster than its own variation, or if it was not there before.
    """
    course = slow.course
    alone = {end for end, disturbed in zip(course.ends, course.disturbed, strict=True) if not disturbed}
    rates = [(window.end, moved / window.seconds)
             for window, moved in zip(tracks.windows, tracks.moved(targets, bystander), strict=True) if moved]
    quiet = [rate for end, rate in rates if end in alone and end < course.onset_end]
    since = [rate for end, rate in rates if end >= course.onset_end]
    if len(quiet) < settings.min_windows or len(since) < settings.min_windows:
        return 0.0
    usual = max(median(quiet), median(quiet[-settings.before_windows:]))
    now = median(since[-settings.before_windows:])
    return now - usual if now > usual * (1 + spread(quiet)) else 0.0
