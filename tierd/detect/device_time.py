"""How much of each target's device time each job takes, from counters that every server shows.

A target is one server with one queue. By the utilisation law (Denning and Buzen, "The Operational Analysis of Queueing
Network Models", ACM Computing Surveys 10(3), 1978), the time it is busy is the sum over jobs of the work done for
each job times its cost: ``U = sum(X_i * S_i) <= 1``. Lustre shows the work (``job_stats``), not its cost. Three
costs are fitted for each pool, because its targets are alike: seconds for a byte read, for a byte written, and for an
operation of any size (a seek, a commit of the journal, the update of a parity). An operation is one I/O of the disk, as
far as counters show them: changes that wait for a commit of the journal count with it (:data:`COMMIT_IOS`).

What can be known:

* A stream has the next request ready when one is done, so its targets are busy all the time: ``sum(X_i * S_i) = 1``.
  Pauses, and work that no counter shows, such as a checkpoint of the journal, lower the sum of a window; nothing
  raises it. So windows above the fit weigh more (expectile regression: Newey and Powell, "Asymmetric Least Squares
  Estimation and Testing", Econometrica 55(4), 1987). Windows far below the fit are left out: there a stream paused for
  long, or a disk was slow.
* How the bytes of such windows fall as other operations rise shows what an operation costs. The stripes of a stream go
  in step, so the mean of its targets is compared. While the operations hardly vary, the cost is that of a disk, within
  a factor of two. In no window can an operation have cost more than the whole time, and at most half of this bound is
  assumed. If a target does more operations than one disk could, it is not a single disk: then the error is as large.
* The costs show what other jobs lose to a job: its share by the costs. A device with a limit of I/Os beside that of
  bytes works longer for small I/Os than others lose to them, while the I/O limit is full
  (:meth:`TargetTime.device_time`).
* Below saturation, throughput shows only an upper bound of the costs. A pool without a stream, or whose streams mostly
  wait for something else, has no costs here, and its targets have no shares: not knowing is not zero.

The I/O times of ``brw_stats`` are not used. In recordings of a real file system they add up to 3% to 40% of the time in
which a throttled disk was saturated, since writes waited in the commit of the journal, which they leave out.

>>> alone = [Work(0.0, 90e6, 10.0)] * 20
>>> beside = [Work(0.0, 100e6 * (1 - 0.01 * n), float(n)) for n in range(10, 40)]
>>> costs = fit([*alone, *beside])
>>> f"{costs.seconds.write_bytes * 1e8:.2f} s for 100 MB, {costs.seconds.operations * 1e3:.0f} ms an operation"
'1.00 s for 100 MB, 10 ms an operation'
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import nlargest
from math import hypot, isfinite, sqrt
from statistics import fmean
from types import MappingProxyType
from typing import NamedTuple

from tierd.detect.profile import Profile
from tierd.model import JobLoad, NamespaceLoad, Window
from tierd.text import percent

NO_UNLINKS: Mapping[str, float] = MappingProxyType({})
UNKNOWN_LIMITS: Mapping[str, bool] = MappingProxyType({})


class Work(NamedTuple):
    """What is done on a target: by one job or by all, each second; or what a unit of each costs, in seconds."""

    read_bytes: float = 0.0
    write_bytes: float = 0.0
    operations: float = 0.0
    """I/Os, as far as counters show them: bulk RPCs, small operations such as a sync, commits that are waited for, and
    destroys of files that a job had made."""

    @property
    def moved_bytes(self) -> float:
        """Read and written."""
        return self.read_bytes + self.write_bytes


Vector = tuple[float, float, float]
Matrix = tuple[Vector, Vector, Vector]


@dataclass(frozen=True, slots=True)
class DeviceCosts:
    """What service costs on a target of one pool."""

    seconds: Work
    """For one byte read, one byte written, one operation."""
    covariance: Matrix
    """Of the errors of these three, in seconds squared."""
    observations: int
    """How many windows of targets they were fitted to."""

    def busy(self, work: Vector) -> float:
        """Share of a second that so much work a second keeps a target busy."""
        return sum([cost * amount for cost, amount in zip(self.seconds, work, strict=True)])

    def busy_error(self, work: Vector) -> float:
        """Standard error of :meth:`busy`. Work may be negative: a difference."""
        return sqrt(max(_quadratic(self.covariance, work), 0.0))


def costs_to_json(costs: Mapping[str, DeviceCosts]) -> str:
    """The costs of all pools, for the journal.

    >>> zero = (0.0, 0.0, 0.0)
    >>> known = {"hdd": DeviceCosts(Work(6e-8, 6e-8, 0.01), (zero, zero, zero), 90)}
    >>> costs_from_json(costs_to_json(known)) == known, costs_from_json('{"hdd": {"seconds": [1, 2]}}')
    (True, {})
    """
    return json.dumps({pool: {"seconds": each.seconds, "covariance": each.covariance, "observations": each.observations}
                       for pool, each in sorted(costs.items())})


def costs_from_json(text: str) -> dict[str, DeviceCosts]:
    """The costs of all pools as they were stored. Pools whose numbers make no sense are left out."""
    try:
        stored = json.loads(text)
        pools = stored.items()
    except (ValueError, AttributeError):
        return {}
    found = {}
    for pool, each in pools:
        try:
            seconds = Work(*(float(cost) for cost in each["seconds"]))
            covariance = _matrix([[float(value) for value in row] for row in each["covariance"]])
            numbers = [*seconds, *(value for row in covariance for value in row)]
            if len(each["seconds"]) == 3 and all(map(isfinite, numbers)) and min(seconds) >= 0:
                found[pool] = DeviceCosts(seconds, covariance, int(each["observations"]))
        except (KeyError, IndexError, TypeError, ValueError):
            continue
    return found


def _quadratic(matrix: Matrix, vector: Vector) -> float:
    return sum([a * row[j] * b for a, row in zip(vector, matrix, strict=True) for j, b in enumerate(vector)])


@dataclass(frozen=True, slots=True)
class CostPrior:
    """What is assumed before the first window."""

    operation_seconds: float = 0.015
    """A disk of 7,200 rpm needs some 12 ms for a seek and half a revolution. Command queues save up to half of it; a
    commit of the journal adds to it."""
    operation_error: float = 0.0075
    read_write_difference: float = 0.25
    """Relative standard deviation of the cost of a byte written from that of a byte read. A full stripe of eight data
    and two parity disks costs a quarter more to write than to read."""
    learned: DeviceCosts | None = None
    """Costs of an earlier run. Its pool may have changed, so they count with twice their error."""


FLASH_PRIOR = CostPrior(operation_seconds=0.0002, operation_error=0.0002)
"""Flash has no seeks. A write and its commit take some 0.1 to 0.5 ms."""
EXPECTILE = 0.6
"""Weight of windows above the fit; those below it have 1 minus that."""
SATURATED = 0.7
"""Windows with less than this share of the device time do not count as saturated."""
SPREAD = 0.05
"""Least relative standard deviation of a window: counters are read at slightly different times."""
DEPENDENCE = 4.0
"""Windows that follow each other count as one of so many: a stall takes several, and stripes stall together."""
DIFFERENCES = (0.1, 0.1, 0.3)
"""Relative standard deviation of what bytes read, bytes written and operations cost from job to job.

There is one cost for all of them. A write of 4 KiB, one of 64 KiB and a commit cost a disk about the same.
"""
LEARNED_WIDENING = 2.0
"""Factor on the errors of an earlier run: its pool may have changed."""
RIDGE = 1e-9
"""Keeps the equations solvable where all windows are the same."""
FEW_BYTES = 0.85
"""In windows with less than this share of the usual bytes, something else took the time."""
ROUNDS = 8


def fit(observed: Sequence[Work], prior: CostPrior | None = None) -> DeviceCosts:
    """Costs from windows of targets on which streams were at work.

    Raises ValueError if no window moved a byte.
    """
    usable = [work for work in observed if work.moved_bytes > 0]
    if not usable:
        raise ValueError("no window with a stream")
    prior = _possible(prior or CostPrior(), usable)
    # in units of the usual, all costs are about 1
    moved = sorted(work.moved_bytes for work in usable)
    byte_unit, operation_unit = moved[int(0.95 * (len(moved) - 1))], 1 / prior.operation_seconds
    units = (byte_unit, byte_unit, operation_unit)
    points = [(work[0] / byte_unit, work[1] / byte_unit, work[2] / operation_unit) for work in usable]
    costs: Vector = (1.0, 1.0, _operation_bound(points))
    variance = SPREAD**2
    assumed = _assumed(prior, units)
    for _ in range(ROUNDS):
        weights = _weights(points, costs)
        normal, right = _normal_equations(points, weights, assumed, variance)
        costs = _not_negative(normal, right)
        variance = max(_variance(points, weights, costs), SPREAD**2)
    inverse = _inverse(normal)
    covariance = [[variance * inverse[i][j] / (units[i] * units[j]) for j in range(3)] for i in range(3)]
    for i, difference in enumerate(DIFFERENCES):
        covariance[i][i] += (difference * costs[i] / units[i])**2
    return DeviceCosts(Work(*(cost / unit for cost, unit in zip(costs, units, strict=True))),
                       _matrix(covariance), len(usable))


def _possible(prior: CostPrior, observed: Sequence[Work]) -> CostPrior:
    """The prior, or half of what an operation can cost at the most, if the prior is more.

    The relative error stays while a disk can do as many operations: one of the least assumed cost after the other.
    """
    rates = sorted(work.operations for work in observed)
    fastest = rates[int(0.95 * (len(rates) - 1))]
    if prior.learned is not None or fastest * prior.operation_seconds <= 0.5:
        return prior
    half = 0.5 / fastest
    is_disk = fastest * (prior.operation_seconds - prior.operation_error) <= 1.0
    relative = prior.operation_error / prior.operation_seconds if is_disk else 1.0
    return replace(prior, operation_seconds=half, operation_error=half * relative)


def _matrix(rows: Sequence[Sequence[float]]) -> Matrix:
    first, second, third = ((row[0], row[1], row[2]) for row in rows)
    return first, second, third


def _operation_bound(points: Sequence[Vector]) -> float:
    """Where the fit begins: in each window an operation costs at most ``(1 - x) / y``, if bytes cost 1.

    A window that was not busy all the time gives a higher bound. So the first third of the bounds is a fair guess.
    """
    bounds = sorted((1 - read - written) / operations for read, written, operations in points
                    if operations > 0.02 and read + written < FEW_BYTES)
    return bounds[len(bounds) // 3] if bounds else 1.0


def _weights(points: Sequence[Vector], costs: Vector) -> list[float]:
    read_cost, write_cost, operation_cost = costs
    used = [read_cost * read + write_cost * written + operation_cost * operations
            for read, written, operations in points]
    return [EXPECTILE if each >= 1.0 else 1 - EXPECTILE if each >= SATURATED else 0.0 for each in used]


def _assumed(prior: CostPrior, units: Vector) -> tuple[Matrix, Vector]:
    """The prior as precision and precision times mean, in these units."""
    learned = prior.learned
    if learned is not None:
        variances = [[LEARNED_WIDENING**2 * learned.covariance[i][j] * units[i] * units[j] for j in range(3)]
                     for i in range(3)]
        for i in range(3):
            variances[i][i] = variances[i][i] * (1 + RIDGE) + 1e-6
        precision = _inverse(_matrix(variances))
        mean = tuple(cost * unit for cost, unit in zip(learned.seconds, units, strict=True))
        right = [sum(precision[i][j] * mean[j] for j in range(3)) for i in range(3)]
        return precision, (right[0], right[1], right[2])
    alike = 1 / prior.read_write_difference**2
    trust = (prior.operation_seconds / prior.operation_error)**2
    return ((alike, -alike, 0.0), (-alike, alike, 0.0), (0.0, 0.0, trust)), (0.0, 0.0, trust)


def _normal_equations(points: Sequence[Vector], weights: Sequence[float], assumed: tuple[Matrix, Vector],
                      variance: float) -> tuple[Matrix, Vector]:
    """Of weighted least squares for ``costs * work = 1``, and the prior."""
    rr = ww = oo = rw = ro = wo = r = w = o = 0.0
    for (read, written, operations), weight in zip(points, weights, strict=True):
        if weight:
            read_part, write_part, operation_part = weight * read, weight * written, weight * operations
            rr += read_part * read
            ww += write_part * written
            oo += operation_part * operations
            rw += read_part * written
            ro += read_part * operations
            wo += write_part * operations
            r += read_part
            w += write_part
            o += operation_part
    precision, mean = assumed
    data, right = ((rr, rw, ro), (rw, ww, wo), (ro, wo, oo)), (r, w, o)
    normal = [[data[i][j] / DEPENDENCE + variance * precision[i][j] for j in range(3)] for i in range(3)]
    for i in range(3):
        normal[i][i] = normal[i][i] * (1 + RIDGE) + RIDGE
    sums = [right[i] / DEPENDENCE + variance * mean[i] for i in range(3)]
    return _matrix(normal), (sums[0], sums[1], sums[2])


def _not_negative(normal: Matrix, right: Vector) -> Vector:
    """Least squares without negative costs: what would be negative is 0, and the others are solved again."""
    free = [0, 1, 2]
    while free:
        some = _solve([[normal[i][j] for j in free] for i in free], [right[i] for i in free])
        if min(some) >= 0:
            costs = [0.0, 0.0, 0.0]
            for i, cost in zip(free, some, strict=True):
                costs[i] = cost
            return costs[0], costs[1], costs[2]
        del free[some.index(min(some))]
    return 0.0, 0.0, 0.0


def _solve(rows: list[list[float]], right: list[float]) -> list[float]:
    """Gauss-Jordan elimination of a positive definite matrix, scaled to a diagonal of ones (Jacobi preconditioning).

    The scaled matrix has eigenvalues of at least :data:`RIDGE`, a million times what floats lose in the elimination.
    Without the scaling, windows of a byte beside windows of a terabyte lose the ridge to rounding.
    """
    scales = [1 / sqrt(row[i]) for i, row in enumerate(rows)]
    table = [[*(value * scale * other for value, other in zip(row, scales, strict=True)), last * scale]
             for row, last, scale in zip(rows, right, scales, strict=True)]
    for i, pivot in enumerate(table):
        for n, row in enumerate(table):
            if n != i:
                factor = row[i] / pivot[i]
                table[n] = [a - factor * b for a, b in zip(row, pivot, strict=True)]
    return [row[-1] / row[i] * scale for i, (row, scale) in enumerate(zip(table, scales, strict=True))]


def _inverse(matrix: Matrix) -> Matrix:
    rows = [list(row) for row in matrix]
    columns = [_solve(rows, [float(i == n) for i in range(3)]) for n in range(3)]
    return _matrix([[columns[j][i] for j in range(3)] for i in range(3)])


def _variance(points: Sequence[Vector], weights: Sequence[float], costs: Vector) -> float:
    read_cost, write_cost, operation_cost = costs
    squares = [weight * (1 - read_cost * read - write_cost * written - operation_cost * operations)**2
               for (read, written, operations), weight in zip(points, weights, strict=True)]
    total = sum(weights)
    return sum(squares) / total if total else 0.0


@dataclass(frozen=True)
class TargetTime:
    """What the jobs on one target took of its service time."""

    target: str
    costs: DeviceCosts
    work: Mapping[str, Vector]
    """By job, each second: bytes read, bytes written, operations. Plain tuples, as there are ten thousands."""
    seconds: float = 1.0
    """Time that the loads cover."""
    loads: Sequence[JobLoad] = ()
    """Loads of the jobs that ``work`` was made of."""
    committing: Collection[str] = ()
    """Jobs whose changes wait for commits."""
    io_limited: bool | None = None
    """Whether the device has a limit of I/Os beside that of bytes; None if it is not known."""

    @cached_property
    def total(self) -> Work:
        """Of all jobs."""
        reads, writes, operations = zip(*self.work.values(), strict=True) if self.work else ((), (), ())
        return Work(sum(reads), sum(writes), sum(operations))

    @cached_property
    def utilisation(self) -> float:
        """Share of the time in which the target is busy, by what its pool has been seen to do; more than 1 is error.

        A disk that is slower than its pool looks idle here: what it does costs more than the pool's costs say.
        """
        return self.costs.busy(self.total)

    @property
    def utilisation_error(self) -> float:
        """Standard error of :attr:`utilisation`.

        What an operation costs differs from job to job. The sum over the jobs of a target is what was fitted, so these
        differences are no error of it.
        """
        differences = [difference * cost * amount for difference, cost, amount
                       in zip(DIFFERENCES, self.costs.seconds, self.total, strict=True)]
        return sqrt(max(self.costs.busy_error(self.total)**2 - sum([each**2 for each in differences]), 0.0))

    @cached_property
    def taken(self) -> dict[str, float]:
        """Seconds of service that each job takes each second."""
        read_cost, write_cost, operation_cost = self.costs.seconds
        return {job: read_cost * read + write_cost * written + operation_cost * operations
                for job, (read, written, operations) in self.work.items()}

    def work_of(self, jobs: Collection[str]) -> Work:
        """Of some jobs together."""
        mine = [self.work[job] for job in jobs if job in self.work]
        return Work(sum([work[0] for work in mine]), sum([work[1] for work in mine]), sum([work[2] for work in mine]))

    def share(self, jobs: Collection[str]) -> float:
        """Part of the service time that these jobs take together by the costs; 0 where nobody takes any.

        All shares sum to 1. Other jobs lose this part to them, on a device with an I/O limit too.
        """
        busy, taken = self.utilisation, self.taken
        return min(sum([taken[job] for job in jobs if job in taken]) / busy, 1.0) if busy > 0 else 0.0

    def share_error(self, jobs: Collection[str]) -> float:
        """Standard error of :meth:`share`, from those of the costs (first-order propagation)."""
        busy, share = self.utilisation, self.share(jobs)
        if busy <= 0:
            return 0.0
        mine, total = self.work_of(jobs), self.total
        difference = (mine[0] - share * total[0], mine[1] - share * total[1], mine[2] - share * total[2])
        return min(self.costs.busy_error(difference) / busy, 1.0)

    def certain_share(self, jobs: Collection[str]) -> DeviceTimeShare:
        """Part of all time that other jobs lose to these on each kind of device; at most :meth:`share`.

        On a device with an I/O limit they lose what the costs say as far as this limit is full (:attr:`io_bound`),
        otherwise only bytes. Time that the costs do not explain is nobody's: a disk may have become slow.
        """
        share, error = self.share(jobs), self.share_error(jobs)
        if self.io_limited is not False:
            read_cost, write_cost, _ = self.costs.seconds
            mine, total = self.work_of(jobs), self.total
            moving = read_cost * total[0] + write_cost * total[1]
            by_bytes = (read_cost * mine[0] + write_cost * mine[1]) / moving if moving > 0 else 0.0
            share -= (1 - self.io_bound) * max(share - by_bytes, 0.0)
            error *= self.io_bound
        busy = min(self.utilisation, 1.0)
        return DeviceTimeShare(busy * share, busy * error)

    @cached_property
    def ios(self) -> dict[str, float]:
        """I/Os of the device for each job, each second.

        A commit of the journal writes the changes of all jobs, whoever waits for it. So all write RPCs share it.
        """
        ios = {job: work[2] for job, work in self.work.items()}
        writes = {load.job: load.writes for load in self.loads}
        asked = {load.job: _commit_ios(load.writes, load.other_operations, load.job in self.committing)
                 for load in self.loads}
        written = sum(writes.values())
        if written:
            each = sum(asked.values()) / written
            for job, written_here in writes.items():
                ios[job] += (each * written_here - asked[job]) / self.seconds
        return ios

    @cached_property
    def io_bound(self) -> float:
        """How far the I/O limit of the device is what its jobs wait for, if it has one: between 0 and 1.

        While the byte limit is full, small I/Os cost streams nothing, within the error of a window. If they cost
        streams much, the I/O limit is full.
        """
        busy, cost = self.utilisation, self.costs.seconds.operations
        if busy <= 0 or self.io_limited is False:
            return 0.0
        small = cost * sum([operations for read, written, operations in self.work.values()
                            if read + written < SMALL_IO_BYTES * operations]) / busy
        return min(max((small - SPREAD) / (IO_BOUND - SPREAD), 0.0), 1.0)

    def device_time(self, job: str) -> DeviceTimeShare:
        """Part of the device's busy time in which it works for a job.

        A device with one queue works for as long as the costs say. One with an I/O limit works as long for a small I/O
        as for a large one while this limit is full. Both kinds can show the same counters. If it is not known which
        kind it is, the share is the middle, and the error reaches to both.
        """
        share = self.device_time_shares.get(job, 0.0)
        more = abs(share - self.share([job]))
        doubt = 1.0 if self.io_limited is None else LIMIT_DOUBT
        return DeviceTimeShare(share, min(hypot(self.share_error([job]), doubt * more), 1.0))

    @cached_property
    def device_time_shares(self) -> dict[str, float]:
        """By job: the share of :meth:`device_time`."""
        busy = self.utilisation
        if busy <= 0:
            return dict.fromkeys(self.work, 0.0)
        by_costs = {job: min(seconds / busy, 1.0) for job, seconds in self.taken.items()}
        part = self.io_bound / 2 if self.io_limited is None else self.io_bound
        if not part:
            return by_costs
        ios = self.ios
        total = sum(ios.values())
        return {job: share + part * (ios[job] / total - share) for job, share in by_costs.items()}

    def top(self, count: int) -> list[tuple[str, float]]:
        """The jobs that take most device time, and their shares."""
        most = nlargest(count, [(share, job) for job, share in self.device_time_shares.items()])
        return [(job, share) for share, job in most if share > 0]


@dataclass(frozen=True, slots=True)
class DeviceTimeShare:
    """Mean part of the service time of some targets that a job takes."""

    share: float
    error: float
    """Standard error."""

    def __str__(self) -> str:
        return f"device time ({percent(self.share)} ±{percent(self.error)})"


def mean_share(times: Collection[TargetTime], job: str) -> DeviceTimeShare:
    """What a job takes of the device time of these targets; at least one."""
    shares = [time.device_time(job) for time in times]
    return DeviceTimeShare(fmean([each.share for each in shares]), fmean([each.error for each in shares]))


@dataclass(frozen=True, slots=True)
class Gain:
    """What a stream would get on some targets without other jobs, as a multiple of what it gets."""

    expected: float
    low: float
    high: float
    """Low and high are one standard error away."""
    certain: float
    """Low, from what is certain on each kind of device (:meth:`TargetTime.certain_share`)."""


def gain_without(targets: Iterable[TargetTime], victim: str, suspects: Collection[str]) -> Gain:
    """How much faster a stream would be on these targets if the suspects were gone.

    The jobs that stay share the freed service time in proportion to what they take now, as closed loops do that wait
    for one server (asymptotic bounds: Lazowska and others, "Quantitative System Performance", 1984, chapter 5). A
    stream over several targets waits for its slowest stripe. So the fullest of its targets shows whether it is held up:
    if even that one is not busy all the time, the stream could have had the rest and did not take it. The others are
    less busy because it waits. The smallest gain counts for ``low`` and ``certain``, the mean for ``expected``. The
    errors of share and utilisation are independent, and their squares add up.
    """
    mine = [time for time in targets if victim in time.work]
    if not mine:
        return Gain(1.0, 1.0, 1.0, 1.0)
    saturation = max(saturated(time.utilisation) for time in mine)
    doubt = saturation - max(saturated(time.utilisation - time.utilisation_error) for time in mine)
    expected, low, high, certain = [], [], [], []
    for time in mine:
        share, error = time.share(suspects), time.share_error(suspects)
        expected.append(1 + saturation * freed(share))
        low.append(1 + _low_gain(share, error, saturation, doubt))
        high.append(1 + freed(share + error))
        surely = time.certain_share(suspects)
        certain.append(1 + _low_gain(surely.share, surely.error, saturation, doubt))
    return Gain(fmean(expected), max(min(low), 1.0), max(high), max(min(certain), 1.0))


def _low_gain(share: float, error: float, saturation: float, doubt: float) -> float:
    """Gain, one standard error lower than expected."""
    gain = freed(share)
    return saturation * gain - hypot(saturation * (gain - freed(share - error)), doubt * gain)


def freed(share: float) -> float:
    """Gain of the other jobs on a busy target if the jobs with a share of its time are gone; 0 is none.

    >>> freed(0.5), freed(-0.1), round(freed(2.0))
    (1.0, 0.0, 19)
    """
    return 1 / (1 - min(max(share, 0.0), 0.95)) - 1


def saturated(utilisation: float) -> float:
    """How sure it is that the jobs of a target wait for it: 0 up to :data:`SATURATED`, 1 where it is busy all the time.

    >>> saturated(0.7), saturated(0.8), saturated(1.1)
    (0.0, 0.5, 1.0)
    """
    return round(min(max((utilisation - SATURATED) / (0.9 - SATURATED), 0.0), 1.0), 9)


def account(loads: Collection[JobLoad], seconds: float, pool_of: Mapping[str, str], costs: Mapping[str, DeviceCosts],
            unlinks: Mapping[str, float] = NO_UNLINKS, committing: Collection[str] = (),
            io_limited: Mapping[str, bool] = UNKNOWN_LIMITS) -> dict[str, TargetTime]:
    """Service time of the targets whose pool's costs are known. ``loads`` are those of ``seconds``, each pair once.

    ``unlinks`` are the files that each job made and deleted in the same time (:func:`own_unlinks`). ``committing`` are
    the jobs whose changes wait for commits (:func:`tierd.detect.profile.waits_for_commits`). ``io_limited`` are the
    pools of which it is known whether their devices have a limit of I/Os.
    """
    known = {target: pool for target, pool in pool_of.items() if pool in costs}
    if not known:
        return {}
    works: dict[str, dict[str, Vector]] = {target: {} for target in known}
    loads_of: dict[str, list[JobLoad]] = {target: [] for target in known}
    places = {target: (works[target], loads_of[target].append) for target in known}
    destroys = _destroys_per_change(loads, unlinks)
    for load in loads:
        target, job, read_bytes, write_bytes, reads, writes, others, _, _ = load  # of ten thousands: not by name
        place = places.get(target)
        if place is not None:
            works_here, append = place
            append(load)
            operations = reads + writes
            if others:
                operations += OTHER_IOS * others
            if job in destroys:
                operations += (writes + others) * destroys[job]
            if job in committing:
                operations += COMMIT_IOS * writes
            works_here[job] = read_bytes / seconds, write_bytes / seconds, operations / seconds
    return {target: TargetTime(target, costs[known[target]], work, seconds, loads_of[target], committing,
                               io_limited.get(known[target]))
            for target, work in works.items() if work}


def _commit_ios(writes: float, others: float, waits: bool) -> float:
    """I/Os of commits that a job asked for, as its operations count them."""
    return OTHER_IOS * others + (COMMIT_IOS * writes if waits else 0.0)


def own_unlinks(done: Iterable[NamespaceLoad | Profile]) -> dict[str, float]:
    """Files that each job deleted, as far as it made as many. Where it had other files is not known.

    The OSTs destroy the objects later and count that for no job.
    """
    return {each.job: min(each.unlinks, each.creates) for each in done if each.unlinks and each.creates}


COMMIT_IOS = 1.5
"""I/Os of a commit of the journal (jbd2) for each change that waits for it.

A commit is two I/Os, one after the other: the changed blocks, then the commit record. A change alone takes both; two
that wait at the same time take one each. In ``tests/tapes/noisy-random-4k`` a disk held to 40 I/Os a second did 11.5
writes of 4 KiB and 7.3 RPCs of a stream: 1.2 to 1.9 more I/Os for each write, as an RPC takes two I/Os or one.
"""
OTHER_IOS = 1.5
"""I/Os of an operation that is neither a read nor a write: the commit that a sync waits for, or the journal and the
place of what a punch or setattr changes."""


def _destroys_per_change(loads: Iterable[JobLoad], unlinks: Mapping[str, float]) -> dict[str, float]:
    """Destroys of each job for each of its writes and other changes: its objects are where it makes changes."""
    changes = dict.fromkeys(unlinks, 0.0)
    if unlinks:
        for _, job, _, _, _, writes, others, _, _ in loads:
            if job in changes:
                changes[job] += writes + others
    return {job: unlinks[job] / done for job, done in changes.items() if done}


SMALL_IO_BYTES = 256 << 10
"""Bytes for each operation below which a job does small I/O: less than a stream moves in an RPC."""
IO_BOUND = 0.25
"""Share of the service time for small I/O, by the costs, from which the I/O limit of a device that has one is full.

Below, part of the costs is what a disk would take, assumed while operations hardly vary.
"""
LIMIT_DOUBT = 0.3
"""Relative standard error of the difference that an I/O limit makes: it is full for a part of a window, and jobs differ
in how many commits they cause."""
STREAM_SHARE = 0.02
"""Part of a target's bytes that streams must move in a window for the target to count as busy. A neighbour of large
files leaves a stream little."""


MIXED_SHARE = 0.2
"""Part of a target's operations that other jobs than streams must do for a window to count as mixed."""


def observations(loads: Collection[JobLoad], seconds: float, streams: Collection[str],
                 unlinks: Mapping[str, float] = NO_UNLINKS,
                 committing: Collection[str] = ()) -> dict[str, tuple[Work, bool]]:
    """By target: what all jobs together got done each second of one window, where streams were at work.

    With it, whether other jobs did a fair part of the operations. The stripes of a stream go in step: each waits for
    the slowest. So its bytes on a target do not show the operations of that target, but those of all its targets, and
    the work is the mean of these.
    """
    totals: dict[str, list[float]] = {}
    streaming: defaultdict[str, list[str]] = defaultdict(list)
    destroys = _destroys_per_change(loads, unlinks)
    for target, job, read_bytes, write_bytes, reads, writes, others, _, _ in loads:
        total = totals.get(target)
        if total is None:
            total = totals[target] = [0.0, 0.0, 0.0, 0.0, 0.0]
        operations = reads + writes + OTHER_IOS * others
        if job in destroys:
            operations += (writes + others) * destroys[job]
        if job in committing:
            operations += COMMIT_IOS * writes
        total[0] += read_bytes
        total[1] += write_bytes
        total[2] += operations
        if job in streams:
            total[3] += read_bytes + write_bytes
            streaming[target].append(job)
        else:
            total[4] += operations
    stripes: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for target, (read, written, _, streamed, _) in totals.items():
        if streamed > 0 and streamed >= STREAM_SHARE * (read + written):
            stripes[tuple(sorted(streaming[target]))].append(target)
    found = {}
    for targets in stripes.values():
        for alike in _in_step({target: totals[target][3] for target in targets}):
            amounts = zip(*[totals[target] for target in alike], strict=True)
            read, written, operations, _, others = (fmean(each) for each in amounts)
            work = Work(read / seconds, written / seconds, operations / seconds)
            found.update(dict.fromkeys(alike, (work, others >= MIXED_SHARE * operations)))
    return found


IN_STEP = 0.9
"""Least rate of a stripe, as a share of the fastest: a window begins and ends within an RPC."""


def _in_step(streamed: Mapping[str, float]) -> Iterable[Sequence[str]]:
    """Targets on which streams have the same rate, together; each other target alone."""
    fastest = max(streamed.values())
    alike = [target for target, moved in streamed.items() if moved >= IN_STEP * fastest]
    yield alike
    yield from ([target] for target in streamed if streamed[target] < IN_STEP * fastest)


KEPT = 128
"""Windows of targets kept of a pool, of each of two sorts: mixed, and with streams alone."""
KEPT_OF_WINDOW = 16
"""Most that one window adds to each sort, so that a large pool does not forget within seconds."""
MIN_WINDOWS = 3
"""Costs fitted from fewer windows with streams are not used. Their error shows how few they are."""
OUTDONE_BY = 8
"""Windows of targets that must have done more before a window counts as outdone: two of four targets, since a reading
may be late."""
OUTDONE_SECONDS = 3600.0
"""After so long with nothing else, the pool counts as changed, and its costs are learned anew."""
MOST = 0.5
"""Share of the windows with streams that must be saturated. Otherwise the streams wait for something else than the
targets, and throughput shows no costs: those of before stay."""


@dataclass(slots=True)
class _Kept:
    """Windows of the targets of one pool."""

    alone: deque[Work] = field(default_factory=lambda: deque(maxlen=KEPT))
    mixed: deque[Work] = field(default_factory=lambda: deque(maxlen=KEPT))
    outdone: deque[Work] = field(default_factory=lambda: deque(maxlen=KEPT))
    """Far less work than windows of the other two sorts: the fit leaves them out."""
    were_outdone: deque[bool] = field(default_factory=lambda: deque(maxlen=3 * KEPT))
    """Of the last windows of all sorts, whether each was outdone."""
    outdone_seconds: float = 0.0
    """Time since the last window that was not outdone."""

    @property
    def usable(self) -> list[Work]:
        """Windows for a fit."""
        return [*self.alone, *self.mixed]

    def add(self, works: Iterable[Work], mixed: bool) -> bool:
        """Keep windows; returns whether each of them was outdone."""
        usable, all_outdone = self.usable, True
        for work in works:
            outdone = is_outdone(work, usable)
            all_outdone = all_outdone and outdone
            self.were_outdone.append(outdone)
            (self.outdone if outdone else self.mixed if mixed else self.alone).append(work)
        return all_outdone

    def saturated_share(self, costs: DeviceCosts) -> float:
        """Share of the last windows in which the target was saturated, by these costs.

        The sorts forget at different rates. So each counts with its share of the last windows, not of those kept: where
        targets are mostly idle, far more windows are outdone than are kept.
        """
        outdone = sum(self.were_outdone) / len(self.were_outdone)
        return round(sum([part * fmean([costs.busy(work) >= SATURATED for work in works])
                          for part, works in ((1 - outdone, self.usable), (outdone, self.outdone)) if works]), 9)


def is_outdone(work: Work, others: Iterable[Work]) -> bool:
    """Whether the pool has done far more bytes and far more operations than this.

    What a device has done, it can also do in part (free disposal: Deprins, Simar and Tulkens, "Measuring Labor
    Efficiency in Post Offices", 1984). So whatever the costs are, a target was idle for a part of such a window, or it
    was slow. A window with expensive operations is not outdone: it has more operations than the windows with more
    bytes.

    >>> busy = [Work(0.0, 50e6, 40.0)] * 20
    >>> is_outdone(Work(0.0, 25e6, 20.0), busy), is_outdone(Work(0.0, 25e6, 60.0), busy)
    (True, False)
    """
    least_bytes, least_operations = work.moved_bytes / SATURATED, work.operations / SATURATED
    more = sum([other[0] + other[1] >= least_bytes and other[2] >= least_operations for other in others])
    return more >= OUTDONE_BY


class CostLearner:
    """Learns the costs of each pool from window after window.

    Mixed windows are kept apart from those with streams alone, so that hours with streams only do not make it forget
    what an operation costs. Windows in which disks are slow for everything are left out (:func:`is_outdone`): beside
    streams alone from before, they would look as if operations had become expensive. ``learned`` are the costs of an
    earlier run. One pool is fitted in each window, so the time it takes does not grow with their number.
    """

    def __init__(self, learned: Mapping[str, DeviceCosts] | None = None, flash: Collection[str] = ()) -> None:
        """``flash`` are the pools of flash."""
        self._priors = {**dict.fromkeys(flash, FLASH_PRIOR),
                        **{pool: CostPrior(learned=costs) for pool, costs in (learned or {}).items()}}
        self._kept: dict[str, _Kept] = {}
        self._taught: Counter[str] = Counter()
        """Number of windows by pool that had observations."""
        self._due: dict[str, None] = {}
        """Pools with new observations, the longest waiting first."""
        self._windows = 0
        self.costs: Mapping[str, DeviceCosts] = dict(learned or {})
        """By pool, as of the last fit."""

    def learn(self, loads: Collection[JobLoad], seconds: float, streams: Collection[str], pool_of: Mapping[str, str],
              unhealthy: Collection[str] = (), unlinks: Mapping[str, float] = NO_UNLINKS,
              committing: Collection[str] = ()) -> None:
        """Learn from a window. Targets that are degraded, in recovery or full (``unhealthy``) are left out."""
        seen: dict[tuple[str, bool], list[Work]] = {}
        for target, (work, mixed) in observations(loads, seconds, streams, unlinks, committing).items():
            pool = pool_of.get(target)
            if pool is not None and target not in unhealthy:
                seen.setdefault((pool, mixed), []).append(work)
        self._windows += 1
        outdone: dict[str, bool] = {}
        for (pool, mixed), found in seen.items():
            step = -(-len(found) // KEPT_OF_WINDOW)
            some = found[self._windows % step::step]
            outdone[pool] = self._kept.setdefault(pool, _Kept()).add(some, mixed) and outdone.get(pool, True)
        for pool in sorted(outdone):
            kept = self._kept[pool]
            kept.outdone_seconds = kept.outdone_seconds + seconds if outdone[pool] else 0.0
            if kept.outdone_seconds >= OUTDONE_SECONDS:
                self._kept[pool], self._taught[pool] = _Kept(), 0
                self._due.pop(pool, None)
                continue
            self._taught[pool] += 1
            if self._taught[pool] >= MIN_WINDOWS:
                self._due.setdefault(pool)
        if self._due:
            pool = next(iter(self._due))
            del self._due[pool]
            costs = fit(self._kept[pool].usable, self._priors.get(pool))
            if self._kept[pool].saturated_share(costs) >= MOST:
                self.costs = {**self.costs, pool: costs}


def costs_of_history(windows: Iterable[Window], streams: Collection[str], pool_of: Mapping[str, str],
                     flash: Collection[str], committing: Collection[str] = ()) -> Mapping[str, DeviceCosts]:
    """Costs from windows of Prometheus' history, in which all bytes count as written, and no small operations.

    A byte read then costs as much as one written, within the error that the prior allows. ``streams`` are the jobs that
    stream now, ``committing`` those whose writes wait for commits.
    """
    learner = CostLearner(flash=flash)
    for window in windows:
        learner.learn(window.loads.values(), window.seconds, streams, pool_of, committing=committing)
    return learner.costs
