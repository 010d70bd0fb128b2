"""The windows that are kept, and the newest as columns of numbers for the model of interference.

The last minutes are kept as measured, earlier windows as sums of half minutes. Negligible loads are dropped: with 5,000
jobs on 400 targets a window may hold 50,000 loads, most of them a thousandth of their target's load. A job with such a
load slows no other job, and tierd cannot measure whether it is slowed. Windows that are too old for profiles of jobs
lose the sizes of RPCs, which are two thirds of their numbers.

Columns (numpy) have a row for each job on each target, with targets and jobs as small integers. Each step of the model
is then one operation on tens of thousands of rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, log, sqrt

import numpy as np

from tierd.detect.groups import totals
from tierd.detect.profile import MIN_FILES, SMALL_SHARE, STEADY_SHARE, Classes
from tierd.loads import (
    BUSY_USEC,
    CLOSES,
    OTHERS,
    Bools,
    Floats,
    Ints,
    Loads,
    Names,
    NamespaceLoads,
    Numbers,
    distinct,
    names_together,
    sums,
    together,
)
from tierd.model import UNSEEN, EarlierWork, Facts, Window

LITTLE_UNEVEN = 0.05
"""Difference of a span to its window that costs of service need not count: they are known to about 10%. With every span
counted, rates vary less, and one more innocent job of forty was acted on."""
MIN_SMALL_RPCS = 10
"""Small RPCs of the newest window, if they are most there, that end a stream, whatever it did before. A choice."""
COMMIT_IOS = 1.5
"""I/Os of a commit of the journal (jbd2) for each change that waits for it.

A commit is two I/Os, one after the other: the changed blocks, then the commit record. A change alone takes both; two
that wait at the same time take one each. In ``tests/tapes/noisy-random-4k`` a disk held to 40 I/Os a second did 11.5
writes of 4 KiB and 7.3 RPCs of a stream: 1.2 to 1.9 more I/Os for each write, as an RPC takes two I/Os or one.
"""
OTHER_IOS = 1.5
"""I/Os of an operation that is neither a read nor a write: the commit that a sync waits for, or the journal and the
place of what a punch or setattr changes."""


LEAST_ALONE_SECONDS, STEADY_SECONDS = 10.0, 180.0
"""What a stream moved before the first window shows its usual rate if its counters are not older than the second, as
it may have paused, and if it was alone for the first. Choices: files are opened within a second, and inputs are read in
minutes."""
BEFORE_ERROR, BESIDE_ERROR = 0.05, 0.1
"""Relative error of a mean rate since the start of a job: of streams in the recordings, half a minute differs by 2% to
5%; and of what it moved beside a younger job, which the rate of one window stands for."""


def level_before(own: EarlierWork, others: Sequence[EarlierWork | None], rate: float, exposure: Floats, *, mean: Floats,
                 variance: Floats, drift: float) -> tuple[float, float] | None:
    """Logarithm of the mean rate of a stream without younger jobs and without its losses to older ones, and the error.
    None if there are no younger ones, if it was hardly alone, or got less then: it paused.

    ``exposure``, ``mean`` and ``variance`` are of the other jobs: D, and what is assumed of b. A job that began after
    the first window is None. ``rate`` is the logarithm of the present rate; ``drift`` the variance of its level, each
    second.

    >>> stream = EarlierWork(1000.0, 100.0, 80.0, moved_bytes=60 * 20e6 + 40 * 15e6)
    >>> new, D = EarlierWork(1050.0, 50.0, 40.0, 3e6), np.array([0.2])
    >>> level, error = level_before(stream, [new], log(15e6), D, mean=D, variance=D, drift=1e-4)
    >>> f"{exp(level) / 1e6:.1f} MB/s, {error:.0%}"
    '20.0 MB/s, 13%'
    >>> level_before(stream, [new], log(30e6), D, mean=D, variance=D, drift=1e-4)
    """
    younger = np.array([each is None or each.at > own.at for each in others]) & (exposure > 0)
    beside = max((each.worked_seconds for each, new in zip(others, younger, strict=True) if new and each), default=0.0)
    alone, moved = own.seconds - beside, own.moved_bytes - exp(rate) * beside
    if not (younger.any() and 0 < own.seconds <= STEADY_SECONDS and alone >= LEAST_ALONE_SECONDS and moved > 0):
        return None
    before, older = log(moved / alone), exposure * ~younger
    error = hypot(BEFORE_ERROR, 1 / alone, BESIDE_ERROR * beside / alone)
    if before < rate - 2 * error:
        return None
    return before + float(older @ mean), sqrt(error**2 + drift * own.seconds + float(older**2 @ variance))


@dataclass(frozen=True, slots=True, eq=False)
class WindowColumns:
    """One window. Loads have a row for each job on each target, in order of both; the namespace one for each job."""

    start: float
    end: float
    target: Ints
    job: Ints
    loads: Floats
    """Bytes read, bytes written, read RPCs, write RPCs, other operations, small RPCs; sums over the window."""
    namespace_job: Ints
    namespace: Floats
    """Closes, creates, unlinks."""
    unseen: Ints
    """Targets without new counters, among those with a number."""

    @property
    def seconds(self) -> float:
        return self.end - self.start


def window_columns(window: Window, targets: Numbers[str], jobs: Names, small_rpc_bytes: int) -> WindowColumns:
    """The columns of a window. New names get numbers.

    Loads have the same rates in the seconds of the window, except for spans that differ little from it.
    """
    loads, done = Loads.of(window.loads), NamespaceLoads.of(window.namespace)
    target, job = targets.of(loads.target.tolist(), len(loads)), jobs.of(loads.job.tolist(), len(loads))
    order = np.argsort(target << 32 | job, kind="stable")  # ordered rows are merged faster than others are sorted
    target = target[order]
    part = np.ones(len(targets))
    for name, span in window.spans.items():
        if name in targets and abs(span - window.seconds) > LITTLE_UNEVEN * window.seconds:
            part[targets[name]] = window.seconds / span
    return WindowColumns(
        window.start, window.end, target, job[order],
        np.multiply(np.column_stack((loads.numbers[:, :BUSY_USEC], loads.small_rpcs(small_rpc_bytes)))[order],
                    part[target, None], order="F"),  # it is read column by column
        namespace_job=jobs.of(done.keys_by_row(), len(done)), namespace=done.numbers[:, CLOSES:OTHERS],
        unseen=np.array([targets[name] for name in window.unseen if name in targets], np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class JobKinds:
    """What each job is, by its number, from its recent windows. The rules are those of :mod:`tierd.detect.profile`."""

    stream: Bools
    suspect: Bools
    """Small files, small I/O, or RPCs in between: what can slow a stream other than by sharing its bandwidth."""
    waits_for_commits: Bools
    destroys_per_change: Floats
    """Deleted files for each write or other change: the OSTs destroy their objects later and count that for no job."""

    def work(self, window: WindowColumns) -> Floats:
        """Bytes read, bytes written and I/Os of the device, each second, for each row of a window.

        RPCs of a stream do not count as I/Os: they are large and sequential, so their cost is that of their bytes.
        """
        job, loads = window.job, window.loads
        changes = loads[:, 3] + loads[:, 4]
        ios = ((loads[:, 2] + loads[:, 3]) * ~self.stream[job] + OTHER_IOS * loads[:, 4]
               + self.destroys_per_change[job] * changes
               + COMMIT_IOS * loads[:, 3] * self.waits_for_commits[job])
        found = np.column_stack((loads[:, 0], loads[:, 1], ios))
        return np.divide(found, window.seconds, out=found)


def kinds_of_jobs(windows: Iterable[WindowColumns], count: int, classes: Classes) -> JobKinds:
    """Kinds of ``count`` jobs, as far as they are active in these windows."""
    total, names = np.zeros((count, 6)), np.zeros((count, 3))
    closing, active, newest = np.zeros(count), np.zeros(count), total
    for window in windows:
        newest = sums(window.job, window.loads, count)
        total += newest
        present = np.bincount(window.job, minlength=count) > 0
        active += present
        here = present[window.namespace_job]
        at, done = window.namespace_job[here], window.namespace[here]
        names[at] += done  # each job has one row
        closing[at] += done[:, 0] > 0
    moved, rpcs = total[:, 0] + total[:, 1], total[:, 2] + total[:, 3]
    closes, creates, unlinks = names.T
    files = np.where(closes >= 0.3 * creates, np.maximum(closes, creates), 0.0)
    small_files = (closing >= STEADY_SHARE * active) & (moved > 0) & (files >= MIN_FILES) & (
        moved <= classes.small_file_bytes * files)
    turned = (newest[:, 5] >= MIN_SMALL_RPCS) & (newest[:, 5] >= SMALL_SHARE * (newest[:, 2] + newest[:, 3]))
    small_io = turned | ((rpcs > 0) & (total[:, 5] >= SMALL_SHARE * rpcs))
    large = (moved >= classes.stream_rpc_bytes * rpcs) & (moved > 0) & ~turned
    stream = large & ~small_files
    changes = total[:, 3] + total[:, 4]
    destroys = np.divide(np.minimum(unlinks, creates), changes, out=np.zeros(count), where=changes > 0)
    return JobKinds(stream, ((moved > 0) | small_io) & ~stream, ~large & ~small_files & small_io, destroys)


@dataclass(frozen=True, slots=True, eq=False)
class RecentWork:
    """What each job did on each target lately, each second. One row for each pair that was active."""

    target: Ints
    job: Ints
    work: Floats
    """Bytes read, bytes written, I/Os."""


def recent_work(windows: Collection[WindowColumns], kinds: JobKinds, jobs: int) -> RecentWork:
    """The mean over these windows. ``jobs``: how many there are."""
    seconds = sum(window.seconds for window in windows)
    key = np.concatenate([window.target * jobs + window.job for window in windows])
    work = np.concatenate([kinds.work(window) * (window.seconds / seconds) for window in windows])
    pairs, row = distinct(key)
    return RecentWork(pairs // jobs, pairs % jobs, sums(row, work, len(pairs)))


class RecentWindows:
    """The windows of the last seconds, as columns."""

    def __init__(self, seconds: float, classes: Classes) -> None:
        self.targets, self.jobs = Numbers[str](), Names()
        self.windows: deque[WindowColumns] = deque()
        self.seconds = seconds
        self.classes = classes

    def add(self, window: Window) -> WindowColumns:
        """Add the newest window; older ones leave."""
        if self.windows and window.end <= self.windows[-1].end:
            self.windows.clear()  # the clock went back
        new = window_columns(window, self.targets, self.jobs, self.classes.small_rpc_bytes)
        self.windows.append(new)
        while len(self.windows) > 1 and self.windows[0].end <= new.end - self.seconds:
            self.windows.popleft()
        return new

    def kinds(self) -> JobKinds:
        return kinds_of_jobs(self.windows, len(self.jobs.by_number), self.classes)

    def forget_jobs(self, known: Collection[int]) -> None:
        """Forget jobs that are in none of the windows, and not known elsewhere by these numbers."""
        numbers = [column for window in self.windows for column in (window.job, window.namespace_job)]
        self.jobs.keep_only({*known, *np.unique(np.concatenate(numbers)).tolist()})


def pool_numbers(targets: Iterable[str], facts: Facts) -> tuple[list[str], Ints]:
    """Names of the pools, and the number of the smallest pool of each target; -1 for a target in none."""
    numbers = {"": -1} | {name: number for number, name in enumerate(facts.pools)}
    return [*facts.pools], np.array([numbers[facts.pool_of(target)] for target in targets], np.int64)


SPAN_SECONDS = 30.0
"""Length of a long window."""
LONG_WITH_SIZES = 4
"""Number of the newest half minutes that keep the sizes of RPCs, for profiles of jobs."""
SHORT_SECONDS, LEAST_SHORT_SECONDS = 300.0, 30.0
"""Short windows are kept for this long if there are few loads, and at least for the second."""
MAX_SHORT_LOADS, MAX_LONG_LOADS = 40_000, 100_000
"""Maximum number of loads in all short and in all long windows. With very many loads the history is shorter."""
CROWDED_JOBS = 16
"""A target with at most this many jobs keeps all its loads."""
MIN_SHARE = 0.02
"""Share of a crowded target's operations or bytes below which a load is dropped."""


class History:
    """Keeps windows without negligible loads: long windows, then short windows, oldest first."""

    def __init__(self, history_seconds: float, recent_seconds: float = 30.0) -> None:
        self._history_seconds = history_seconds
        self.recent_seconds = recent_seconds
        """Period from which profiles of jobs are made in every cycle. Its windows keep the sizes of RPCs."""
        self._begin()

    def _begin(self) -> None:
        self._long: deque[Window] = deque()
        self._short: deque[Window] = deque()
        self._parts: list[Window] = []
        """Of the next long window."""

    @property
    def half_minutes(self) -> Sequence[Window]:
        """Complete long windows, oldest first."""
        return tuple(self._long)

    @property
    def windows(self) -> Sequence[Window]:
        """All windows, oldest first."""
        begun = self._short[0].start if self._short else float("inf")
        return (*(w for w in self._long if w.end <= begun), *self._short)

    @property
    def recent(self) -> Sequence[Window]:
        """Windows of the last ``recent_seconds``, oldest first."""
        begun = self._short[-1].end - self.recent_seconds if self._short else 0.0
        return [window for window in self._short if window.end > begun]

    def add(self, window: Window) -> bool:
        """Add a window. Returns whether a long window is now complete. After a gap a new long window begins."""
        if self._short and window.end <= self._short[-1].end:
            self._begin()  # the clock went back: drop the history
        window = thinned(window)
        if self._parts and window.start != self._parts[-1].end:  # summed windows must follow each other
            self._parts = []
        self._parts.append(window)
        self._short.append(window)
        for at, each in enumerate(self._short):
            if each.end <= window.end - self.recent_seconds and Loads.of(each.loads).sizes.names:
                self._short[at] = without_sizes(each)
        complete = window.end - self._parts[0].start >= SPAN_SECONDS
        if complete:
            self._long.append(thinned(summed(self._parts)))
            self._parts = []
            if len(self._long) > LONG_WITH_SIZES:
                self._long[-LONG_WITH_SIZES - 1] = without_sizes(self._long[-LONG_WITH_SIZES - 1])
        self._forget(window.end)
        return complete

    def _forget(self, now: float) -> None:
        """Remove old long windows, and short windows that are old or too many, up to the end of a long one or a gap."""
        while len(self._long) > 1 and (self._long[0].end < now - self._history_seconds
                                       or sum(len(each.loads) for each in self._long) > MAX_LONG_LOADS):
            self._long.popleft()
        ends = {w.end for w in self._long}
        oldest = now - min(SHORT_SECONDS, self._history_seconds)
        while self._short[0].end < now - LEAST_SHORT_SECONDS and (
                self._short[0].end < oldest or sum(len(each.loads) for each in self._short) > MAX_SHORT_LOADS):
            while len(self._short) > 1:
                end = self._short.popleft().end
                if end in ends or end != self._short[0].start:
                    break


def summed(parts: Sequence[Window]) -> Window:
    """Windows that follow each other as one. A target that was seen last was seen, in its own seconds."""
    last = parts[-1]
    conditions = {name: why for part in parts for name, why in part.conditions.items() if why != UNSEEN or part is last}
    return Window(parts[0].start, last.end, together([Loads.of(part.loads) for part in parts]),
                  names_together([NamespaceLoads.of(part.namespace) for part in parts]), conditions,
                  storage_work=last.storage_work, spans=totals(each for part in parts for each in part.spans.items()))


def without_sizes(window: Window) -> Window:
    return replace(window, loads=Loads.of(window.loads).without_sizes())


def thinned(window: Window) -> Window:
    """The window without negligible loads on crowded targets, and metadata loads of jobs that have no others."""
    loads, targets = Loads.of(window.loads), Numbers[str]()
    at = targets.of(loads.target.tolist(), len(loads))
    crowded = (np.bincount(at, minlength=1) > CROWDED_JOBS)[at]
    if not crowded.any():
        return replace(window, loads=loads, namespace=NamespaceLoads.of(window.namespace))

    def least(amount: Floats) -> Floats:
        return np.where(crowded, MIN_SHARE * np.bincount(at, amount)[at], 0.0)

    operations, moved = loads.operations, loads.moved_bytes
    kept = loads.rows((operations >= least(operations)) | ((moved >= least(moved)) & (moved > 0)))
    done, jobs = NamespaceLoads.of(window.namespace), set(kept.job.tolist())
    # a thousandth of all metadata operations
    some = done.jobs_among(jobs) | (done.operations >= 0.001 * done.operations.sum())
    return replace(window, loads=kept, namespace=done.rows(some))
