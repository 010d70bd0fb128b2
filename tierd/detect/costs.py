"""What service costs on the targets of each pool, and how much of each target's device time each job takes.

A target is one server with one queue. By the utilisation law (Denning and Buzen, "The Operational Analysis of Queueing
Network Models", ACM Computing Surveys 10(3), 1978), the time it is busy is the sum over jobs of the work done for each
job times its cost: ``U = sum(X_i * S_i) <= 1``. Lustre shows the work (``job_stats``), not its cost. Three costs are
fitted for each pool, because its targets are alike: seconds for a byte read, for a byte written, and for an operation
of any size (a seek, a commit of the journal, the update of a parity). The RPCs of streams are not operations: they are
sequential, and cost only their bytes.

* A stream has the next request ready when one is done, so its targets are busy all the time: ``sum(X_i * S_i) = 1``.
  Pauses, and work that no counter shows, such as a checkpoint of the journal, lower the sum of a window. Windows far
  below the fit are left out: there a stream paused for long, or a disk was slow.
* How the bytes of such windows fall as other operations rise shows what an operation costs. The bytes are what varies,
  so their squares are lessened by what varies (errors in variables: Fuller, "Measurement Error Models", 1987);
  otherwise steady operations would seem to take all the time. The stripes of a stream go in step, so the mean of its
  targets is compared. While the operations hardly vary, the cost is between that of a disk and a tenth of it. In no
  window can an operation have cost more than the whole time.
* Below saturation, throughput shows only an upper bound of the costs. A pool without a stream, or whose streams mostly
  wait for something else, has no costs here, and its targets have no shares: not knowing is not zero.

>>> alone = [(0.0, 90e6, 10.0)] * 20
>>> beside = [(0.0, 100e6 * (1 - 0.01 * n), float(n)) for n in range(10, 40)]
>>> costs = fit(np.array([*alone, *beside]))
>>> f"{costs.seconds[1] * 1e8:.2f} s for 100 MB, {costs.seconds[2] * 1e3:.0f} ms an operation"
'1.00 s for 100 MB, 10 ms an operation'
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import chain, combinations
from math import inf, log, sqrt

import numpy as np

from tierd.detect.accelerators import SmallWrites
from tierd.detect.columns import JobKinds, WindowColumns
from tierd.loads import Array, Bools, Floats, Ints, distinct, largest, sums
from tierd.structs import decoded, json_text

Vector = tuple[float, float, float]
"""For bytes read, bytes written and operations."""
Matrix = tuple[Vector, Vector, Vector]


@dataclass(frozen=True, slots=True)
class DeviceCosts:
    """What service costs on a target of one pool."""

    seconds: Vector
    """For one byte read, one byte written, one operation."""
    covariance: Matrix
    """Of the errors of these three, in seconds squared."""

    def busy(self, work: Vector) -> float:
        """Share of a second that so much work a second keeps a target busy."""
        return float(np.dot(self.seconds, work))

    def busy_error(self, work: Vector) -> float:
        """Standard error of :meth:`busy`. Work may be negative: a difference."""
        return sqrt(max(float(np.dot(np.dot(work, self.covariance), work)), 0.0))


def costs_to_json(costs: Mapping[str, DeviceCosts]) -> str:
    """The costs of all pools, for the journal.

    >>> zero = (0.0, 0.0, 0.0)
    >>> known = {"hdd": DeviceCosts((6e-8, 6e-8, 0.01), (zero, zero, zero))}
    >>> costs_from_json(costs_to_json(known)) == known, costs_from_json('{"hdd": {"seconds": [1, 2]}}')
    (True, {})
    """
    return json_text({pool: asdict(each) for pool, each in sorted(costs.items())})


def costs_from_json(text: str) -> dict[str, DeviceCosts]:
    """The costs of all pools as they were stored; none if a number makes no sense."""
    with suppress(ValueError):
        found = decoded(text, dict[str, DeviceCosts])
        if all(0 <= each < inf for costs in found.values() for each in (*costs.seconds, *np.diag(costs.covariance))):
            return found
    return {}


def vector(values: Floats) -> Vector:
    first, second, third = values.tolist()
    return first, second, third


DISK_OPERATION_SECONDS = 0.025
"""Most that an operation costs. A disk of 7,200 rpm needs about 8 ms for a seek and 4 ms for half a turn (data sheets
of nearline disks), and a commit of the journal adds as much. A queue saves half of it, and the disks of a RAID group
work at the same time."""
FLASH_OPERATION_SECONDS = 0.0001
"""Flash has no seeks, and does many operations at the same time: 20,000 to 90,000 random writes a second (data sheets
of SATA SSDs for servers), so 0.01 to 0.05 ms each, and as much for a commit of the journal."""
RANGE = 10.0
"""The most that an operation may cost, as a multiple of the least. The logarithm of the cost is uniform in between."""
SATURATED = 0.7
"""Windows with less than this share of the device time do not count as saturated. A choice: a stream with pauses of a
third of its time is not held up by its targets."""
SPREAD = 0.05
"""Least relative standard deviation of a window: counters are read at slightly different times."""
DEPENDENCE = 8.0
"""This many consecutive windows count as one: a stall takes several, and stripes stall together. A choice."""
DIFFERENCES = (0.1, 0.1, 0.3)
"""Relative standard deviation of what bytes read, bytes written and operations cost from job to job.

There is one cost for all of them. A write of 4 KiB, one of 64 KiB and a commit cost a disk about the same.
"""
LEARNED_WIDENING = 2.0
"""Factor on the errors of an earlier run: its pool may have changed."""
RIDGE = 1e-9
"""Keeps the equations solvable where all windows are the same, as a part of their largest coefficient."""
BUSIEST = 0.95
"""The quantile of windows that stands for the most that targets do. A choice: a few readings are late."""
ROUNDS = 8
"""The fit changes by less than a percent after five."""
MOST_VARIED = 0.95
"""Part of what windows say in one direction that may be due to varying bytes. The rest keeps the equations solvable."""


def fit(work: Floats, most_operation_seconds: float = DISK_OPERATION_SECONDS,
        learned: DeviceCosts | None = None) -> DeviceCosts:
    """Costs from windows of targets on which streams were at work: bytes read, bytes written, operations a second.
    ``learned`` are those of an earlier run. Raises ValueError if no window moved a byte.
    """
    moved = work[:, :2].sum(axis=1)
    work, moved = work[moved > 0], moved[moved > 0]
    if not len(work):
        raise ValueError("no window with a stream")
    seconds, error = possible(most_operation_seconds, work)
    # in units of the usual, all costs are about 1
    byte_seconds = 1 / float(np.quantile(moved, BUSIEST, method="lower"))
    units = np.array((byte_seconds, byte_seconds, seconds))
    points = work * units
    # the prior as equations with an error of 1: a byte written costs as much as one read, give or take once more, as
    # RAID 6 reads and writes parity too
    rows, right = np.array(((1.0, -1.0, 0.0), (0.0, 0.0, seconds / error))), np.array((0.0, seconds / error))
    if learned is not None:
        errors = LEARNED_WIDENING * np.sqrt(np.diag(np.array(learned.covariance)))
        rows = np.diag(units / np.maximum(errors, 1e-3 * units))
        right = rows @ (np.array(learned.seconds) / units)
    costs, varied = np.ones(3), np.zeros((3, 3))
    variance = SPREAD**2
    for _ in range(ROUNDS):
        used = points @ costs
        weight = (used >= SATURATED) / DEPENDENCE
        normal = (points.T * weight) @ points + variance * rows.T @ rows
        part = float(np.linalg.eigvals(np.linalg.pinv(normal) @ varied).real.max())
        normal -= varied * min(1.0, MOST_VARIED / max(part, RIDGE))
        costs = least_not_negative(normal, points.T @ weight + variance * rows.T @ right)
        residual = 1 - points @ costs
        seen = float(weight @ residual**2) / max(float(weight.sum()), 1e-9)
        variance = max(seen, SPREAD**2)
        # the bytes of a stream vary, not the time: without this, what hardly varies would seem to take all of it
        by_bytes = points * (1.0, 1.0, 0.0) / np.maximum(points[:, :2] @ costs[:2], RIDGE)[:, None]
        varied = seen * (by_bytes.T * weight) @ by_bytes
    covariance = variance * np.linalg.pinv(normal + RIDGE * np.eye(3)) + np.diag((np.array(DIFFERENCES) * costs)**2)
    reads, writes, operations = map(vector, covariance * np.outer(units, units))
    return DeviceCosts(vector(costs * units), (reads, writes, operations))


def possible(most_operation_seconds: float, work: Floats) -> tuple[float, float]:
    """Seconds of an operation and their error, limited by what the targets can have done.

    In no window can an operation have cost more than the whole time.

    >>> [f"{1e3 * seconds:.1f}" for seconds in possible(0.025, np.array([(0.0, 1e8, 1.0)]))]
    ['9.8', '6.2']
    >>> [f"{1e3 * seconds:.2f}" for seconds in possible(0.025, np.array([(0.0, 1e8, 1000.0)]))]
    ['0.39', '0.25']
    """
    most = min(most_operation_seconds, 1 / max(float(np.quantile(work[:, 2], BUSIEST, method="lower")), 1e-9))
    mean = (1 - 1 / RANGE) / log(RANGE)
    return most * mean, most * sqrt((1 - RANGE**-2) / (2 * log(RANGE)) - mean**2)


def least_not_negative(normal: Floats, right: Floats) -> Floats:
    """The least squares solution of three variables that are not negative: the best of those with some of them 0."""
    ridge = RIDGE * max(1.0, float(normal.diagonal().max())) * np.eye(3)  # a singular matrix has a solution, too
    found = [np.zeros(3)]
    for free in chain.from_iterable(combinations(range(3), size) for size in (1, 2, 3)):
        costs = np.zeros(3)
        costs[[*free]] = np.linalg.solve((normal + ridge)[np.ix_(free, free)], right[[*free]])
        if costs.min() >= 0:
            found.append(costs)
    return min(found, key=lambda costs: float(costs @ normal @ costs - 2 * right @ costs))


LIMITED = 0.2
"""Probability that a device does small I/O at no cost to the stream. Volumes of a cloud with a limit of I/Os that is
not full do, and flash, and controllers with a write cache; disks and RAID groups alone do not. A choice
(docs/detection.md). The prior has the variance of a b that is 1 otherwise, not ``ELEVATOR`` of
:mod:`tierd.detect.interference`, so a finding begins with a probability of 0.31 or more: with 0.2, cold starts acted
on more innocents."""
LIMITED_DISKS = 0.05
"""This probability where small writes are seen to wait for the disks, so there is no write cache. A choice."""
LIMITED_CACHED = 0.8
"""This probability where only large writes are seen to wait: a cache writes small ones to the disks later, in an order
that suits the disks. A choice."""


@dataclass(frozen=True, slots=True, eq=False)
class CostTable:
    """Costs of all targets, by their numbers."""

    seconds: Floats
    """Of each target; zeros where they are not known."""
    covariances: Floats
    known: Bools
    """Targets with costs, whose speed means something."""
    unhealthy: Ints
    """Targets whose speed means nothing: not seen, degraded, in recovery or full."""
    limited: Floats
    """Probability that the device does small I/O at no cost to a stream."""
    request_msec: Floats
    """Mean duration of the disk I/O of a request, 0 where it is not known."""

    def taken(self, target: Ints, work: Floats) -> Floats:
        """Share of a second that each row of work takes."""
        found: Floats = np.einsum("ij,ij->i", work, self.seconds[target])
        return found

    def operation_errors(self, target: Ints) -> Floats:
        """Relative error of the cost of an operation, without differences between jobs: how much is learned of it."""
        variance = self.covariances[target, 2, 2]
        cost = np.maximum(self.seconds[target, 2], 1e-9)
        found: Floats = np.sqrt(np.maximum(variance / cost**2 - DIFFERENCES[2]**2, 0.0))
        return found

    def errors(self, target: Ints, work: Floats) -> Floats:
        """Standard error of :meth:`taken`, by the errors of the costs."""
        found: Floats = np.einsum("ni,nij,nj->n", work, self.covariances[target], work)
        return np.sqrt(np.maximum(found, 0.0))


SLOWEST = 0.5
"""Least duration of requests on targets that hold a stream up, as a part of that on the slowest of its targets: stripes
go in step, so a stream waits for the slowest. A choice: buckets of ``brw_stats`` are powers of two."""


def waited_for(stream: Array, request_msec: Floats) -> Bools:
    """Which rows are targets that hold their stream up: requests take about as long as on the slowest of its targets,
    or an unknown time.
    """
    found: Bools = (request_msec >= SLOWEST * largest(stream, request_msec)) | (request_msec == 0)
    return found


STREAM_SHARE = 0.02
"""Part of a target's bytes that streams must move in a window for the target to count as busy. A neighbour of large
files leaves a stream little."""
IN_STEP = 0.9
"""Least rate of a stripe, as a share of the fastest: a window begins and ends within an RPC."""
MIXED = 1.0
"""Operations a second that make a window of a target a mixed one. A choice: a disk does about 100."""
KEPT, KEPT_OF_WINDOW = 256, 16
"""Observations kept of a pool, of each of two sorts: mixed, and with streams alone; and how many of them one window
adds at the most, so that a large pool does not forget within seconds."""
MOST = 0.5
"""Share of the windows with streams that must be saturated. Otherwise the streams wait for something other than the
targets, and throughput shows no costs: earlier ones stay."""
MARK_FACTOR = 2654435761
"""Makes numbers of streams so different that sums of some are hardly ever alike: the golden ratio times 2^32 (Knuth,
"The Art of Computer Programming", volume 3, section 6.4)."""
FIRST_WINDOWS = 6
"""So early, only costs of an earlier run stay: a stream that worked in the first window alone is no measure. A choice.
"""


@dataclass(slots=True)
class _Kept:
    """Work of saturated targets of one pool. Hours with streams alone do not make it forget what operations cost."""

    alone: deque[Floats] = field(default_factory=lambda: deque(maxlen=KEPT))
    mixed: deque[Floats] = field(default_factory=lambda: deque(maxlen=KEPT))
    windows: int = 0

    def add(self, work: Floats) -> None:
        for row in work:
            (self.mixed if row[2] >= MIXED else self.alone).append(row)
        self.windows += 1


class CostLearner:
    """Learns the costs of each pool from window after window."""

    def __init__(self, learned: Mapping[str, DeviceCosts] | None = None) -> None:
        """``learned`` are the costs of an earlier run."""
        self._learned = dict(learned or {})
        self._kept: dict[str, _Kept] = {}
        self.costs: Mapping[str, DeviceCosts] = self._learned
        """By pool, as of the last fit."""

    def learn(self, window: WindowColumns, kinds: JobKinds, pool: Ints, names: list[str], unhealthy: Ints, *,
              flash: Collection[str] = (), request_msec: Floats) -> None:
        """Learn from a window. ``pool`` is the number of each target's pool in ``names``, -1 for none. Targets that are
        degraded, in recovery or full (``unhealthy``) are left out. ``flash`` are the pools of flash.
        """
        targets = len(pool)
        work, streaming = kinds.work(window), kinds.stream[window.job]
        total, streams = sums(window.target, work, targets), sums(window.target[streaming], work[streaming], targets)
        streamed = streams[:, :2].sum(axis=1)
        busy = (streamed > 0) & (streamed >= STREAM_SHARE * total[:, :2].sum(axis=1)) & (pool >= 0)
        busy[unhealthy] = False
        # which streams are on a target, as one number: targets with the same streams hold the same stripes
        marks = ((window.job[streaming, None] + 1)**2 * MARK_FACTOR % (1 << 40)).astype(float)
        alike = sums(window.target[streaming], marks, targets)[:, 0]
        for number in np.unique(pool[busy]).tolist():
            name = names[number]
            self._keep(name, np.flatnonzero(busy & (pool == number)), alike, streamed, total, request_msec=request_msec)
            self._fit(name, FLASH_OPERATION_SECONDS if name in flash else DISK_OPERATION_SECONDS)

    def _keep(self, pool: str, targets: Ints, alike: Floats, streamed: Floats, total: Floats,
              request_msec: Floats) -> None:
        kept = self._kept.setdefault(pool, _Kept())
        targets = targets[waited_for(alike[targets], request_msec[targets])]
        marks, of = distinct(alike[targets])
        in_step = streamed[targets] >= IN_STEP * largest(alike[targets], streamed[targets])
        rows = sums(of[in_step], total[targets[in_step]], len(marks)) / np.bincount(of[in_step])[:, None]
        step = -(-len(rows) // KEPT_OF_WINDOW)
        kept.add(rows[kept.windows % step::step])  # others in each window

    def _fit(self, pool: str, most_operation_seconds: float) -> None:
        kept = self._kept[pool]
        work = np.array([*kept.alone, *kept.mixed])
        costs = fit(work, most_operation_seconds, self._learned.get(pool))
        if np.mean(work @ np.array(costs.seconds) >= SATURATED) >= MOST:
            self.costs = {**self.costs, pool: costs}
        elif kept.windows <= FIRST_WINDOWS:
            remaining = {other: known for other, known in self.costs.items() if other != pool}
            self.costs = remaining | {name: known for name, known in self._learned.items() if name == pool}

    def table(self, pool: Ints, names: list[str], unhealthy: Ints, writes: Mapping[str, SmallWrites], *,
              request_msec: Floats) -> CostTable:
        """Costs of all targets. ``writes`` says how small writes of pools are done, where it is known."""
        seconds, covariances = np.zeros((len(pool), 3)), np.zeros((len(names) + 1, 3, 3))
        for number, name in enumerate(names):
            if name in self.costs:
                seconds[pool == number] = self.costs[name].seconds
                covariances[number] = self.costs[name].covariance
        known: Bools = seconds.max(axis=1, initial=0.0) > 0
        known[unhealthy] = False
        chance = {None: LIMITED, SmallWrites.WAIT: LIMITED_DISKS, SmallWrites.ABSORBED: LIMITED_CACHED}
        limited = np.array([chance[writes.get(name)] for name in (*names, "")])[pool]  # the last is for no pool
        return CostTable(seconds, covariances[pool], known, unhealthy, limited=limited, request_msec=request_msec)
