"""Windows as columns of numbers: one row for each job on each target, with targets and jobs as small integers.

The model of interference looks at tens of thousands of rows in a cycle. As columns (numpy) each step is one operation
on all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tierd.detect.profile import MIN_FILES, SMALL_SHARE, STEADY_SHARE, Classes
from tierd.model import JobLoad, Window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

COMMIT_IOS = 1.5
"""I/Os of a commit of the journal (jbd2) for each change that waits for it.

A commit is two I/Os, one after the other: the changed blocks, then the commit record. A change alone takes both; two
that wait at the same time take one each. In ``tests/tapes/noisy-random-4k`` a disk held to 40 I/Os a second did 11.5
writes of 4 KiB and 7.3 RPCs of a stream: 1.2 to 1.9 more I/Os for each write, as an RPC takes two I/Os or one.
"""
OTHER_IOS = 1.5
"""I/Os of an operation that is neither a read nor a write: the commit that a sync waits for, or the journal and the
place of what a punch or setattr changes."""


class Names(dict[str, int]):
    """Numbers of names, in order of appearance. A name that is looked up gets the next number."""

    def __missing__(self, name: str) -> int:
        self[name] = number = len(self)
        return number


def sums(index: Ints, values: Floats, count: int) -> Floats:
    """The sums of the rows of some values that have the same index, for each index below ``count``."""
    found = np.empty((count, values.shape[1]))
    for column in range(values.shape[1]):
        found[:, column] = np.bincount(index, values[:, column], count)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class WindowColumns:
    """One window. The rows of loads are one for each job on each target, those of the namespace one for each job."""

    start: float
    end: float
    target: Ints
    job: Ints
    loads: Floats
    """Bytes read, bytes written, read RPCs, write RPCs, other operations, small RPCs; sums over the window."""
    namespace_job: Ints
    namespace: Floats
    """Closes, creates, unlinks."""

    @property
    def seconds(self) -> float:
        """Length of the window."""
        return self.end - self.start


def window_columns(window: Window, targets: Names, jobs: Names, small_rpc_bytes: int) -> WindowColumns:
    """The columns of a window. New names get numbers."""
    loads = list(window.even_loads)
    count = len(loads)
    numbers = np.fromiter((number for load in loads for number in (
        load.read_bytes, load.write_bytes, load.reads, load.writes, load.other_operations)), float, 5 * count)
    small = np.fromiter((small_rpcs(load, small_rpc_bytes) for load in loads), float, count)
    done = window.namespace
    return WindowColumns(
        window.start, window.end,
        np.fromiter((targets[load.target] for load in loads), np.int64, count),
        np.fromiter((jobs[load.job] for load in loads), np.int64, count),
        np.column_stack((numbers.reshape(-1, 5), small)),
        np.fromiter((jobs[job] for job in done), np.int64, len(done)),
        np.array([(each.closes, each.creates, each.unlinks) for each in done.values()], float).reshape(-1, 3))


def small_rpcs(load: JobLoad, small_rpc_bytes: int) -> float:
    """RPCs of at most so many bytes, from the kernel's size histogram, or else by their mean size."""
    if load.sizes:
        return sum([count for upper, count in load.sizes.items() if upper <= small_rpc_bytes])
    rpcs = load.reads + load.writes
    return rpcs if load.moved_bytes <= small_rpc_bytes * rpcs else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class JobKinds:
    """What each job is, by its number, from its recent windows. The rules are those of :mod:`tierd.detect.profile`."""

    stream: Bools
    suspect: Bools
    """Small files, small I/O, or RPCs in between: what can slow a stream other than by sharing its bandwidth."""
    in_between: Bools
    waits_for_commits: Bools
    destroys_per_change: Floats
    """Deleted files for each write or other change: the OSTs destroy their objects later and count that for no job."""

    def work(self, window: WindowColumns) -> Floats:
        """Bytes read, bytes written and I/Os of the device, each second, for each row of a window."""
        job, loads = window.job, window.loads
        changes = loads[:, 3] + loads[:, 4]
        ios = (loads[:, 2] + loads[:, 3] + OTHER_IOS * loads[:, 4] + self.destroys_per_change[job] * changes
               + COMMIT_IOS * loads[:, 3] * self.waits_for_commits[job])
        return np.column_stack((loads[:, 0], loads[:, 1], ios)) / window.seconds


def kinds_of_jobs(windows: Iterable[WindowColumns], count: int, classes: Classes) -> JobKinds:
    """Kinds of ``count`` jobs, as far as they are active in these windows."""
    total, names = np.zeros((count, 6)), np.zeros((count, 3))
    closing, active = np.zeros(count), np.zeros(count)
    for window in windows:
        total += sums(window.job, window.loads, count)
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
    small_io = (rpcs > 0) & (total[:, 5] >= SMALL_SHARE * rpcs)
    large = (moved >= classes.stream_rpc_bytes * rpcs) & (moved > 0)
    stream = large & ~small_files
    in_between = (moved > 0) & ~large & ~small_files & ~small_io
    changes = total[:, 3] + total[:, 4]
    destroys = np.divide(np.minimum(unlinks, creates), changes, out=np.zeros(count), where=changes > 0)
    return JobKinds(stream, (small_files | small_io | in_between) & ~stream, in_between,
                    ~large & ~small_files & small_io, destroys)


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
    pairs, row = np.unique(key, return_inverse=True)
    return RecentWork(pairs // jobs, pairs % jobs, sums(row, work, len(pairs)))


class RecentWindows:
    """The windows of the last seconds, as columns."""

    def __init__(self, seconds: float, classes: Classes) -> None:
        self.targets, self.jobs = Names(), Names()
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
        """Kinds of all jobs."""
        return kinds_of_jobs(self.windows, len(self.jobs), self.classes)


def pool_numbers(targets: Mapping[str, int], pools: Mapping[str, Collection[str]]) -> tuple[list[str], Ints]:
    """Names of the pools, and the number of the smallest pool of each target; -1 for a target in none."""
    names = sorted(pools, key=lambda name: -len(pools[name]))
    found = np.full(len(targets), -1, np.int64)
    for number, name in enumerate(names):
        for target in pools[name]:
            if target in targets:
                found[targets[target]] = number
    return names, found

