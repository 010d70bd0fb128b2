"""Selects the suspects to blame: those that caused most of the load increase on the victim's targets.

The increase of device time decides, not the total: a job with the same load as before did not slow the victim. Several
suspects together may cause what none causes alone, such as the tasks of an array job, each with its own job id. Then
the few that cause most of the increase are named, and small ones are not.

>>> blamed_jobs({"n.2": 0.3, "m.1": 0.7}, (), 0.25), blamed_jobs({"m.1": 0.1, "n.2": 0.1}, (), 0.25)
(['m.1', 'n.2'], [])
>>> len(blamed_jobs({f"task.{n}": 0.1 for n in range(8)}, (), 0.25))
7

A neighbour can cost a stream only as much time as its operations cost the disks: three operations per second cannot
halve a stream. In recordings of a real file system (``tests/tapes``) an operation cost the neighbour 8 to 11 ms; in
simulations up to 74 ms, since all stripes of a stream may wait for the slowest (``docs/evaluation.md``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import fmean

from tierd.detect.device_time import TargetTime
from tierd.detect.noisy_neighbour.pairs import HEAVY_SHARE, SlowdownView
from tierd.detect.noisy_neighbour.slowdown import Slowdown

BYTE_COST = 4.0
"""Cost of a byte of a small file in bytes of a stream, at the most: a RAID reads and writes whole stripes."""


def most_taken(operations_per_second: float, bytes_per_second: float, usual: float, operation_seconds: float) -> float:
    """Largest fraction of a stream's usual throughput (bytes per second) that a neighbour with this load can cost.

    >>> round(most_taken(1.6, 50e3, 26e6, 0.1), 3), most_taken(40.0, 5e6, 50e6, 0.1)
    (0.168, 1.0)
    """
    return min(1.0, operations_per_second * operation_seconds + BYTE_COST * bytes_per_second / usual) if usual else 0.0


NAMED_SHARE = 0.8
"""Suspects are named, largest first, until they cause this share of all suspects' increase."""


def blamed(at: SlowdownView, slowed: Sequence[Slowdown], known: Collection[tuple[str, str]],
           load_share: float) -> Iterator[Slowdown]:
    """Slowdowns whose suspects caused the load increase. ``known`` are active pairs of aggressor and victim."""
    for victim, group in groupby(slowed, key=lambda slow: slow.victim.job):
        mine = list(group)
        parts = {slow.other.job: share_of_increase(
            slow, rates(at, slow.targets), rates_before(at, slow), at.device_times(slow.targets)) for slow in mine}
        names = blamed_jobs(parts, [job for job, of in known if of == victim], load_share)
        yield from (slow for slow in mine if slow.other.job in names)


def blamed_jobs(parts: Mapping[str, float], known: Collection[str], load_share: float) -> Sequence[str]:
    """Suspects of one victim to name, sorted, by each suspect's share of the load increase on the targets.

    Together they must have caused ``load_share`` of it. A suspect named before stays named while its share is fair.
    """
    names = {job for job, part in parts.items() if part >= load_share}
    together = sum(parts.values())
    if together < load_share:
        return sorted(names)
    done = 0.0
    for job, part in sorted(parts.items(), key=lambda each: (-each[1], each[0])):
        if done >= NAMED_SHARE * together:
            break
        names.add(job)
        done += part
    return sorted(names | {job for job in known if parts.get(job, 0.0) >= HEAVY_SHARE * together})


Rates = Mapping[str, tuple[float, float]]
"""Job to its operations and bytes per second."""


def rates(at: SlowdownView, targets: Collection[str]) -> Rates:
    """Recent rates of each job on the targets."""
    totals: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for target in targets:
        for profile in at.on.get(target, ()):
            load = profile.by_target[target]
            totals[profile.job][0] += load.operations
            totals[profile.job][1] += load.moved_bytes
    seconds = sum(window.seconds for window in at.recent) or 1.0
    return {job: (operations / seconds, moved / seconds) for job, (operations, moved) in totals.items()}


def rates_before(at: SlowdownView, slow: Slowdown) -> Rates:
    """Rates of the same jobs on the targets, in as many windows just before the suspect came."""
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


def share_of_increase(slow: Slowdown, now: Rates, before: Rates, times: Sequence[TargetTime]) -> float:
    """Suspect's share of the increase of other jobs' load on the targets, by the device time it takes.

    ``times`` are the targets whose costs of service are known. While not all are, the share is the mean of those of
    operations and of bytes.
    """
    def part(load: Callable[[str, tuple[float, float]], float]) -> float:
        more = {job: max(0.0, load(job, rate) - load(job, before.get(job, (0.0, 0.0)))) for job, rate in now.items()
                if job != slow.victim.job}
        total = sum(more.values())
        return more.get(slow.other.job, 0.0) / total if total else 0.0

    if len(times) < len(slow.targets):
        return (part(lambda _, rate: rate[0]) + part(lambda _, rate: rate[1])) / 2
    read_cost, write_cost, operation_cost = map(fmean, zip(*[time.costs.seconds for time in times], strict=True))
    byte_cost = (read_cost + write_cost) / 2

    def counted(rate: tuple[float, float]) -> float:
        return operation_cost * rate[0] + byte_cost * rate[1]

    taken = {job: sum([time.taken.get(job, 0.0) for time in times]) for job in now}
    """With the commits and destroys that rates do not show."""
    return part(lambda job, rate: taken[job] * counted(rate) / (counted(now[job]) or 1.0))
