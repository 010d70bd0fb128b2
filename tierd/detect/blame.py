"""Whom of the suspects to blame: those that made most of the load that came upon the targets the victim got slow on.

What came decides, not what was there: jobs that ask for no more than before did not make the victim slower than then.
Several suspects may do together what none does alone: tasks of an array, each of which has a job id of its own. Then
the few that make most of it are named, and a trickle beside them is not.

>>> sorted(named({"m.1": 0.9, "n.2": 0.1}, (), 0.25)), sorted(named({"m.1": 0.1, "n.2": 0.1}, (), 0.25))
(['m.1'], [])
>>> len(named({f"task.{n}": 0.1 for n in range(8)}, (), 0.25))
7
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby

from tierd.detect.scene import Scene
from tierd.detect.shortlist import HEAVY_SHARE
from tierd.detect.slowdown import Slowdown

MOST = 0.8
"""Of what the suspects of a victim ask for together: those that do so much of it are named."""


def blamed(at: Scene, slowed: Sequence[Slowdown], known: Collection[tuple[str, str]],
           load_share: float) -> Iterator[Slowdown]:
    """Those of the slowdowns whose suspects made the load. ``known``: pairs of aggressor and victim told before."""
    for victim, group in groupby(slowed, key=lambda slow: slow.victim.job):
        mine = list(group)
        parts = {slow.other.job: part_of(slow, rates(at, slow.targets), rates_before(at, slow)) for slow in mine}
        names = named(parts, [job for job, of in known if of == victim], load_share)
        yield from (slow for slow in mine if slow.other.job in names)


def named(parts: Mapping[str, float], known: Collection[str], load_share: float) -> Collection[str]:
    """Suspects of one victim to be named, by each one's part of what came upon the targets.

    Together they must have made ``load_share`` of it; who was named before stays so while it does a fair part.
    """
    names = {job for job, part in parts.items() if part >= load_share}
    together = sum(parts.values())
    if together < load_share:
        return names
    done = 0.0
    for job, part in sorted(parts.items(), key=lambda each: (-each[1], each[0])):
        if done >= MOST * together:
            break
        names.add(job)
        done += part
    return names | {job for job in known if parts.get(job, 0.0) >= HEAVY_SHARE * together}


Rates = Mapping[str, tuple[float, float]]
"""Job to its operations and bytes per second."""


def rates(at: Scene, targets: Collection[str]) -> Rates:
    """What each job asked of the targets of late."""
    totals: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for target in targets:
        for profile in at.on.get(target, ()):
            load = profile.by_target[target]
            totals[profile.job][0] += load.operations
            totals[profile.job][1] += load.moved_bytes
    seconds = sum(window.seconds for window in at.recent) or 1.0
    return {job: (operations / seconds, moved / seconds) for job, (operations, moved) in totals.items()}


def rates_before(at: Scene, slow: Slowdown) -> Rates:
    """The same of the same jobs, in as many windows just before the suspect came."""
    windows = at.tracks.windows
    last = bisect_left([window.end for window in windows], slow.course.onset_end)
    span = slice(max(0, last - len(at.recent)), last)
    seconds = sum(window.seconds for window in windows[span]) or 1.0
    found = {}
    for job in {profile.job for target in slow.targets for profile in at.on.get(target, ())}:
        tracks = [at.tracks.of(target, job) for target in slow.targets]
        found[job] = (sum(sum(operations[span]) for _, operations in tracks) / seconds,
                      sum(sum(moved[span]) for moved, _ in tracks) / seconds)
    return found


def part_of(slow: Slowdown, now: Rates, before: Rates) -> float:
    """Suspect's part of what came upon the targets since it came: mean of its parts of operations and of bytes."""
    def part(of: int) -> float:
        more = {job: max(0.0, rate[of] - before.get(job, (0.0, 0.0))[of]) for job, rate in now.items()
                if job != slow.victim.job}
        total = sum(more.values())
        return more.get(slow.other.job, 0.0) / total if total else 0.0

    return (part(0) + part(1)) / 2
