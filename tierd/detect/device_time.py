"""What each job takes of the device time of each target, by the costs of service: for status, metrics and evidence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import nlargest
from math import sqrt

import numpy as np

from tierd.detect.columns import RecentWork
from tierd.detect.costs import DIFFERENCES, DeviceCosts, Vector, vector
from tierd.loads import Ints, JobTable, texts


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


def mean_share(times: Collection[TargetTime], job: str) -> DeviceTimeShare:
    """What a job takes of the device time of these targets; at least one."""
    shares = [time.device_time(job) for time in times]
    return DeviceTimeShare(sum(each.share for each in shares) / len(shares),
                           sum(each.error for each in shares) / len(shares))
