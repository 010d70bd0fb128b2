"""What each job takes of the device time of each target, by the costs of service, and where streams wait for others.

A stream has its next request ready when one is done. On a target that is busy all the time, every second of service
for others is a second in which the stream waits. Where the targets of a stream are clearly idle for a part of the time,
the stream waits for something else, and idle time costs it nothing.

The times are the costs of :mod:`tierd.detect.costs`. While the costs of a pool are not known, a byte takes as long as
in the fastest half minute of any of its targets: a target can do what it, or a similar one, has done. Then the streams
there count as held up, because nothing shows that they are not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nlargest
from math import sqrt

import numpy as np

from tierd.detect.columns import JobKinds, RecentWork
from tierd.detect.costs import (
    DIFFERENCES,
    DISK_OPERATION_SECONDS,
    FLASH_OPERATION_SECONDS,
    SATURATED,
    DeviceCosts,
    Vector,
    vector,
)
from tierd.detect.groups import grouped
from tierd.loads import Ints, JobTable, texts
from tierd.model import Facts, StreamedTarget, StreamedTargets


@dataclass(frozen=True, slots=True)
class DeviceTimeShare:
    """Part of the service time of a target that a job takes."""

    share: float
    error: float
    """Standard error."""


class JobWork(JobTable[Vector]):
    """Work by job, as rows of numbers: few of the jobs of a large file system are ever looked up."""

    @classmethod
    def of(cls, work: Mapping[str, Vector]) -> JobWork:
        return work if isinstance(work, JobWork) else cls(
            texts([*work]), np.array([*work.values()], float).reshape(-1, 3))

    def value(self, row: int) -> Vector:
        return vector(self.numbers[row])


@dataclass(frozen=True)
class TargetTime:
    """What the jobs on one target took of its service time lately."""

    target: str
    costs: DeviceCosts
    work: Mapping[str, Vector]
    """By job, each second: bytes read, bytes written, operations."""

    @cached_property
    def total(self) -> Vector:
        return vector(JobWork.of(self.work).numbers.sum(axis=0))

    @cached_property
    def utilisation(self) -> float:
        """Share of the time in which the target is busy, by what its pool has been seen to do; more than 1 is error.

        A disk that is slower than its pool looks idle here: what it does costs more than the pool's costs say.
        """
        return self.costs.busy(self.total)

    @cached_property
    def utilisation_error(self) -> float:
        """Standard error of :attr:`utilisation`.

        What an operation costs differs from job to job. The sum over the jobs of a target is what was fitted, so these
        differences are not an error of it.
        """
        differences = [difference * cost * amount for difference, cost, amount
                       in zip(DIFFERENCES, self.costs.seconds, self.total, strict=True)]
        return sqrt(max(self.costs.busy_error(self.total)**2 - sum(each**2 for each in differences), 0.0))

    def device_time(self, job: str) -> DeviceTimeShare:
        """Part of the service time that a job takes by the costs, with the error of the costs (first-order
        propagation). All shares sum to 1.
        """
        busy = self.utilisation
        if busy <= 0 or job not in self.work:
            return DeviceTimeShare(0.0, 0.0)
        of, read = self.work[job], self.total
        share = written = min(self.costs.busy(of) / busy, 1.0)
        difference = (of[0] - written * read[0], of[1] - written * read[1], of[2] - written * read[2])
        return DeviceTimeShare(share, min(self.costs.busy_error(difference) / busy, 1.0))

    def top(self, count: int) -> list[tuple[str, float]]:
        busy, work = self.utilisation, JobWork.of(self.work)
        seconds = (work.numbers @ np.array(self.costs.seconds)).tolist()
        most = nlargest(count, zip(seconds, work.keys_by_row(), strict=True)) if busy > 0 else []
        return [(job, min(seconds / busy, 1.0)) for seconds, job in most if seconds > 0]


def device_times(recent: RecentWork, names_of_targets: list[str], names_of_jobs: list[str], pool: Ints,
                 pools: list[str], costs: Mapping[str, DeviceCosts]) -> dict[str, TargetTime]:
    """Service time of the targets whose pool's costs are known."""
    has = np.array([name in costs for name in pools] + [False])[pool[recent.target]]
    target, job, work = recent.target[has], texts(names_of_jobs)[recent.job[has]], recent.work[has]
    some, begins = np.unique(target, return_index=True)  # the rows are in order of their targets
    ends = [*begins[1:].tolist(), len(target)][:len(some)]
    return {names_of_targets[one]: TargetTime(names_of_targets[one], costs[pools[pool[one]]], JobWork(
        job[begin:end], work[begin:end])) for one, begin, end in zip(
            some.tolist(), begins.tolist(), ends, strict=True)}


CLEARLY_IDLE = SATURATED / 2
"""Utilisation, less its error, up to which no target of a stream holds it up, even if its disk is half as fast as its
pool: such a disk looks half as busy as it is."""


class StreamWatch:
    """Finds the targets where further work would slow a stream, and remembers the highest rate of each target."""

    def __init__(self, flash: Collection[str] = ()) -> None:
        self._flash = frozenset(flash)
        self.fastest: dict[str, float] = {}
        """Bytes per second of each target."""

    def targets(self, recent: RecentWork, kinds: JobKinds, jobs: Sequence[str], targets: Sequence[str], *,
                device_time: Mapping[str, TargetTime], facts: Facts) -> StreamedTargets:
        """The targets of the streams that may wait for one of theirs. Unknown costs do not prove that they do not."""
        moved = recent.work[:, 0] + recent.work[:, 1]
        for target, rate in zip(targets, np.bincount(recent.target, moved, len(targets)).tolist(), strict=True):
            if rate:
                self.fastest[target] = max(self.fastest.get(target, 0.0), rate)
        idle = np.array([target in device_time and device_time[target].utilisation
                         + device_time[target].utilisation_error <= CLEARLY_IDLE for target in targets], bool)
        streams = kinds.stream[recent.job] & (moved > 0)
        rows = streams & np.isin(recent.job, recent.job[streams & ~idle[recent.target]])
        names = grouped((targets[target], jobs[job]) for target, job in zip(
            recent.target[rows].tolist(), recent.job[rows].tolist(), strict=True))
        assumed = self._assumed(facts) if names else {}
        return StreamedTargets({
            target: StreamedTarget(tuple(sorted(those)), *(device_time[target].costs.seconds if target in device_time
                                                           else assumed[facts.pool_of(target) or target]))
            for target, those in names.items()}, facts.pools)

    def _assumed(self, facts: Facts) -> Mapping[str, Vector]:
        """By pool, or by target without a pool: seconds for a byte, and the most of an operation, while costs are
        not known.
        """
        fastest: dict[str, float] = {}
        for target, rate in self.fastest.items():
            key = facts.pool_of(target) or target  # of several pools, the smallest says most
            fastest[key] = max(fastest.get(key, 0.0), rate)
        return {key: (1 / rate, 1 / rate, FLASH_OPERATION_SECONDS if key in self._flash else DISK_OPERATION_SECONDS)
                for key, rate in fastest.items()}
