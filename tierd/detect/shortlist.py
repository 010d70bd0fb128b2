"""Whom a closer look is worth: streams slower of late than before, and others that do enough to slow somebody."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from tierd.detect.profile import Profile
from tierd.detect.thresholds import Settings
from tierd.detect.tracks import Tracks

FEW, HEAVY_SHARE = 4, 0.05
"""On a target with more such jobs than that, those that do less than this share of what they all do slow nobody."""


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
