"""A stream that got slow since another job came to its targets: what every kind of neighbour has in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Lt

from tierd.detect.baseline import Series, lower_edge, series, spread
from tierd.detect.profile import Classes, Profile
from tierd.model import JobLoad, Window

Key = tuple[str, str, str]

DOUBT = 0.03
"""Fraction of its throughput by which a stream must be slower than its own variation explains."""


@dataclass(frozen=True)
class Settings:
    """Thresholds. Fractions are of the victim's undisturbed throughput unless said otherwise."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    classes: Classes = field(default_factory=Classes)
    recent_seconds: Annotated[float, Gt(0)] = 30.0
    """What a job is like is told from its last so many seconds."""
    enter: Annotated[float, Gt(0), Lt(1)] = 0.85
    """Throughput below this fraction begins a finding."""
    leave: Annotated[float, Gt(0), Lt(1)] = 0.91
    """Throughput above this fraction ends it: 1/1.1."""
    enter_steady: Annotated[float, Gt(0), Lt(1)] = 0.94
    """The same for a stream that hardly varies by itself: of it less is enough to be sure."""
    leave_steady: Annotated[float, Gt(0), Lt(1)] = 0.965
    """Where a finding about such a stream ends."""
    least_windows: Annotated[int, Ge(2)] = 4
    """Windows with and windows without the aggressor, at the least: fewer are no evidence."""
    before_windows: Annotated[int, Ge(1)] = 6
    """Windows before the aggressor came that tell what the victim got then."""
    slow_windows: Annotated[float, Gt(0), Lt(1)] = 0.6
    """Share of the windows since the aggressor came in which the victim must have been slow."""
    target_share: Annotated[float, Gt(0), Lt(1)] = 0.1
    """Aggressor's part of the operations or of the bytes of the two on a target, for the target to count as shared."""
    presence: Annotated[float, Gt(0), Lt(1)] = 0.05
    """Aggressor's part of the operations of the two for a window to count as disturbed."""


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
        }


def slowdowns(windows: Sequence[Window], victims: Iterable[Profile], others: Iterable[Profile], kind: str,
              active: Collection[Key], settings: Settings) -> Iterator[Slowdown]:
    """Every victim that is slow since one of the others came. ``active`` are the keys found before (hysteresis)."""
    at: defaultdict[str, list[Profile]] = defaultdict(list)
    for other in others:
        for target in other.by_target:
            at[target].append(other)
    for victim in victims:
        near = {other.job: other for target in victim.by_target for other in at[target] if other.job != victim.job}
        for other in near.values():
            targets = shared_targets(victim, other, windows[-1], settings.target_share)
            if not targets:
                continue
            course = series(windows, victim.job, other.job, targets, settings.presence)
            if slowed(course, (kind, other.job, victim.job) in active, settings):
                yield Slowdown(victim, other, targets, course, course.usual(settings.before_windows),
                               course.now(settings.least_windows))


def shared_targets(victim: Profile, other: Profile, now: Window, share: float) -> tuple[str, ...]:
    """Healthy targets where both work and the other does at least its share of the operations or bytes of the two.

    Either is enough: 4 KiB writes are many operations and hardly any bytes, 4 MiB files the other way round.
    """
    def fair(target: str, load: JobLoad) -> bool:
        mine = victim.by_target[target]
        return (load.operations >= share * (load.operations + mine.operations)
                or load.moved_bytes >= share * (load.moved_bytes + mine.moved_bytes))

    return tuple(sorted(
        target for target, load in other.by_target.items()
        if target in victim.by_target and target not in now.conditions and fair(target, load)
    ))


def slowed(course: Series, held: bool, settings: Settings) -> bool:
    """Whether the victim has been slow in most windows of late, against what it got just before the other came.

    Of late is the second half of the other's stay: noise may build up, as when a directory fills.
    """
    quiet, contended = course.quiet, course.contended
    if len(quiet) < settings.least_windows or len(contended) < settings.least_windows:
        return False
    usual, edge = course.usual(settings.before_windows), threshold(quiet, held, settings)
    if course.now(settings.least_windows) > edge * usual:
        return False
    limit = min(edge * usual, lower_edge(quiet, edge))
    late = contended[-max(settings.least_windows, len(contended) // 2):]
    if sum(rate <= limit for rate in late) < settings.slow_windows * len(late):
        return False
    return len(contended) < 2 * settings.least_windows or dose_fits(course, usual)


def threshold(quiet: Sequence[float], held: bool, settings: Settings) -> float:
    """Fraction of its usual throughput below which this stream is slow: the steadier it is by itself, the higher.

    >>> threshold([100.0] * 8, False, Settings()), threshold([80.0, 100.0, 90.0, 120.0], False, Settings())
    (0.94, 0.85)
    """
    if held:
        return max(settings.leave, min(settings.leave_steady, 1 - spread(quiet)))
    return max(settings.enter, min(settings.enter_steady, 1 - DOUBT - spread(quiet)))


def dose_fits(course: Series, usual: float) -> bool:
    """Whether as much of the other did some harm early in its stay too.

    A victim that bore it well for long, and then got slow while the other did no more than before, got slow for
    another reason: a disk that fails, for instance.
    """
    (early, early_dose), (late, late_dose) = course.halves()
    return early_dose < late_dose / 2 or usual - early >= (usual - late) / 3


def gained(windows: Sequence[Window], bystander: Profile, other: Profile, targets: Collection[str],
           settings: Settings) -> float:
    """Bytes per second a stream has won on these targets since the other came: a slow victim leaves it room.

    0 where it is not clearly faster than by itself, or was not there before: then nothing is known of it.
    """
    course = series(windows, bystander.job, other.job, targets, settings.presence)
    quiet, contended = course.quiet, course.contended
    if len(quiet) < settings.least_windows or len(contended) < settings.least_windows:
        return 0.0
    usual = max(median(quiet), median(course.before_onset(settings.before_windows) or quiet))
    now = course.now(settings.before_windows)
    return now - usual if now > usual * (1 + spread(quiet)) else 0.0
