"""A stream that got slow since another job came to its targets: what every kind of neighbour has in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Lt

from tierd.detect.baseline import Series, lower_edge, series, spread
from tierd.detect.pairs import Asked, AtWork, asked, at_work, may_be_told_apart, shared_targets
from tierd.detect.profile import Classes, Profile, profiles
from tierd.detect.tracks import Tracks
from tierd.model import Window

Key = tuple[str, str, str]

TELLING = 8
"""Undisturbed windows that tell how steady a stream is by itself; fewer may look steady by chance."""
FEW, HEAVY_SHARE = 4, 0.05
"""On a target with more such jobs than that, those that do less than this share of what they all do slow nobody."""

LIKE_SECONDS = 120.0
"""What others saw before our start are means over so long: as long a stay is compared with them, and no shorter one."""

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
            **({"learnt_windows": float(self.course.learnt_quiet)} if self.course.learnt else {}),
        }


@dataclass(frozen=True, slots=True)
class Scene:
    """The history as detectors of slowness look at it; made once a cycle."""

    windows: Sequence[Window]
    recent: Sequence[Window]
    jobs: Mapping[str, Profile]
    """What each job is like of late."""
    tracks: Tracks
    on: Mapping[str, Sequence[Profile]] = field(repr=False)
    """Who did something on a target of late."""
    slow: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)
    """What ``may_be_slow`` has said: several detectors ask for the same."""
    asked: dict[str, Asked] = field(default_factory=dict, compare=False, repr=False)
    """What jobs ask for of late, as far as it was looked up."""

    def asked_by(self, job: Profile) -> Asked:
        """What a job asks for of late, by target."""
        known = self.asked.get(job.job)
        if known is None:
            known = self.asked[job.job] = asked(job)
        return known


def scene(windows: Sequence[Window], settings: Settings, before: Tracks | None = None) -> Scene:
    """The scene of the newest window, of which there must be one. ``before`` are the tracks of the cycle before."""
    recent = [w for w in windows if w.end > windows[-1].end - settings.recent_seconds]
    jobs = profiles(recent)
    on: defaultdict[str, list[Profile]] = defaultdict(list)
    for each in jobs.values():
        for target in each.by_target:
            on[target].append(each)
    return Scene(windows, recent, jobs, Tracks(windows, before), on)


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


def heavy(others: Iterable[Profile]) -> Mapping[str, Sequence[Profile]]:
    """By target: the others that could slow somebody there. Where many crowd, a twentieth of it is asked for."""
    on: defaultdict[str, list[Profile]] = defaultdict(list)
    for other in others:
        for target in other.by_target:
            on[target].append(other)
    for target, crowd in on.items():
        if len(crowd) > FEW:
            loads = {other.job: other.by_target[target] for other in crowd}
            operations = HEAVY_SHARE * sum(load.operations for load in loads.values())
            moved = HEAVY_SHARE * sum(load.moved_bytes for load in loads.values())
            on[target] = [other for other in crowd if loads[other.job].operations >= operations
                          or loads[other.job].moved_bytes >= moved]
    return defaultdict(list, on)


def may_be_slow(victim: Profile, tracks: Tracks, settings: Settings) -> bool:
    """Whether it is worth looking at its neighbours: of late it is slower than in most of its history, somewhere.

    A stream that has been slow for most of the history, and unnoticed, is not found any more. That is the price for
    not comparing thousands of healthy streams with thousands of jobs.
    """
    def fraction(targets: Collection[str]) -> float:
        rates = tracks.rates(targets, victim.job)
        learnt = tracks.learnt_rates(targets, victim.job)
        usual = max(mostly(rates), mostly(learnt)) if learnt else mostly(rates)
        return middle(sorted(rates[-settings.least_windows:])) / usual if usual else 1.0

    if fraction(victim.by_target) <= settings.enter_steady + 0.01:
        return True
    return len(victim.by_target) > 1 and any(fraction([target]) < settings.enter for target in victim.by_target)


def mostly(rates: Sequence[float]) -> float:
    """What a stream gets when it is well: its median, or nearly its third quartile; 0 where nothing is known.

    >>> mostly([]), mostly([10.0, 10.0, 100.0, 100.0])
    (0.0, 97.0)
    """
    ordered = sorted(rates)
    return max(middle(ordered), 0.97 * ordered[3 * len(ordered) // 4]) if ordered else 0.0


def middle(ordered: Sequence[float]) -> float:
    """The median of what is in order already; some thousand are asked for in each cycle.

    >>> middle([1.0, 2.0, 4.0]), middle([1.0, 2.0, 4.0, 5.0])
    (2.0, 3.0)
    """
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def slowed(course: Series, held: bool, settings: Settings) -> bool:
    """Whether the victim has been slow in most windows of late, against what it got just before the other came.

    Of late is the second half of the other's stay: noise may build up, as when a directory fills.
    """
    quiet, contended = course.quiet, course.contended
    if len(quiet) < settings.least_windows or len(contended) < settings.least_windows:
        return False
    if course.learnt and course.contended_seconds < LIKE_SECONDS:
        return False
    usual, edge = course.usual(settings.before_windows), threshold(quiet[course.learnt_quiet:], held, settings)
    if course.learnt and fmean(course.own.contended) > edge * usual:
        return False  # single windows may be slow by chance: what they are compared with are means
    if course.now(settings.least_windows) > edge * usual:
        return False
    limit = min(edge * usual, lower_edge(quiet, edge))
    late = contended[-max(settings.least_windows, len(contended) // 2):]
    if fmean(late) > edge * course.usual_mean(settings.before_windows):
        return False  # a call more or less in a window makes a median, and of few windows it tells nothing
    if sum(rate <= limit for rate in late) < settings.slow_windows * len(late):
        return False
    return len(contended) < 2 * settings.least_windows or dose_fits(course, usual)


def threshold(quiet: Sequence[float], held: bool, settings: Settings) -> float:
    """Fraction of its usual throughput below which this stream is slow: the steadier it is by itself, the higher.

    >>> threshold([100.0] * 8, False, Settings()), threshold([80.0, 100.0, 90.0, 120.0], False, Settings())
    (0.94, 0.85)
    """
    if len(quiet) < TELLING:
        return settings.leave if held else settings.enter
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
