"""A stream that got slow since another job came to its targets: what every kind of neighbour has in common."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from statistics import median

from tierd.detect.baseline import Series, series, spread
from tierd.detect.pairs import AtWork, at_work, may_be_told_apart, shared_targets
from tierd.detect.profile import Profile
from tierd.detect.scene import Scene
from tierd.detect.shortlist import heavy, may_be_slow
from tierd.detect.thresholds import Settings
from tierd.detect.tracks import Tracks
from tierd.detect.verdict import slowed

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Slowdown:
    """A victim, the other job, where they meet, and how the victim fared."""

    victim: Profile
    other: Profile
    targets: tuple[str, ...]
    course: Series
    usual: float
    """Bytes per second the victim gets there without the other."""
    now: float
    """What it gets now."""

    @property
    def evidence(self) -> dict[str, float]:
        """How fast the victim was and is, in bytes per second."""
        return {
            "victim_usual_bytes_per_second": self.usual,
            "victim_bytes_per_second": self.now,
            "slowdown": self.usual / self.now if self.now else float("inf"),
            "quiet_windows": float(len(self.course.quiet)),
            "contended_windows": float(len(self.course.contended)),
            **({"learnt_windows": float(self.course.learnt_quiet)} if self.course.learnt else {}),
        }


def slowdowns(at: Scene, victims: Iterable[Profile], others: Iterable[Profile], kind: str,
              active: Collection[Key], settings: Settings) -> Iterator[Slowdown]:
    """Every victim that is slow since one of the others came. ``active`` are the keys found before (hysteresis)."""
    on = heavy(others)
    known = {job for of, _, job in active if of == kind}
    for victim in victims:
        if victim.job not in known:
            if victim.job not in at.slow:
                at.slow[victim.job] = may_be_slow(victim, at.tracks, settings)
            if not at.slow[victim.job]:
                continue
        near = {other.job: other for target in victim.by_target for other in on[target] if other.job != victim.job}
        own, ill = at.asked_by(victim), at.windows[-1].conditions
        mine: dict[tuple[str, ...], AtWork] = {}
        for other in near.values():
            targets = shared_targets(own, at.asked_by(other), ill, settings.target_share)
            if not targets:
                continue
            if targets not in mine:
                mine[targets] = at_work(at.tracks.on(targets, victim.job))
            if not may_be_told_apart(mine[targets], at.tracks.operations(targets, other.job), settings.presence,
                                     settings.least_windows):
                continue
            course = series(at.tracks, victim.job, other.job, targets, settings.presence)
            if course.learnt and len(course.own.quiet) >= settings.least_windows:
                course = course.own
            if slowed(course, (kind, other.job, victim.job) in active, settings):
                yield Slowdown(victim, other, targets, course, course.usual(settings.before_windows),
                               course.now(settings.least_windows))


def gained(tracks: Tracks, bystander: str, slow: Slowdown, targets: Collection[str], settings: Settings) -> float:
    """Bytes per second a stream has won on these targets since the victim got slow, which leaves it room.

    0 where it is not clearly faster than by itself, or was not there before: then nothing is known of it.
    """
    course = slow.course
    alone = {end for end, disturbed in zip(course.ends, course.disturbed, strict=True) if not disturbed}
    rates = [(window.end, moved / window.seconds)
             for window, moved in zip(tracks.windows, tracks.moved(targets, bystander), strict=True) if moved]
    quiet = [rate for end, rate in rates if end in alone and end < course.onset_end]
    since = [rate for end, rate in rates if end >= course.onset_end]
    if len(quiet) < settings.least_windows or len(since) < settings.least_windows:
        return 0.0
    usual = max(median(quiet), median(quiet[-settings.before_windows:]))
    now = median(since[-settings.before_windows:])
    return now - usual if now > usual * (1 + spread(quiet)) else 0.0
