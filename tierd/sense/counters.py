"""Counters of jobs as columns of numbers: a row for each job on each target, a column for each counter.

A reading of a large file system has tens of thousands of rows. :func:`increases` is the one way to subtract two.

Counters restart: Lustre drops the entry of an idle job, and a new entry of that job begins at zero. A counter that is
missing is 0.

>>> before = CounterTable.of({("l-OST0001", "j.1"): JobEntry({"read": 3.0}, {"read": 70.0})})
>>> after = CounterTable.of({("l-OST0001", "j.1"): JobEntry({"read": 5.0}, {"read": 90.0})})
>>> done = increases(before, after)
>>> done.samples["read"].tolist(), done.sums["read"].tolist()
([2.0], [20.0])
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tierd.loads import Bools, Columns, Floats, Ints, Numbers, Pair, PairTable, Rows, Texts, columns_of, names_of, texts


class JobEntry(NamedTuple):
    """Counters of one job on one target."""

    samples: Mapping[str, float]
    """Samples by operation. Samples of ``read_bytes`` and ``write_bytes`` count bulk RPCs."""
    sums: Mapping[str, float]
    """Sums by operation: bytes for ``…_bytes``, microseconds for others."""
    sizes: Mapping[int, float] = MappingProxyType({})
    """Bulk RPCs by upper bound of their size in bytes."""
    start: str = ""
    """Start time of the entry, as the kernel printed it; empty if unknown."""


class CounterTable(PairTable[JobEntry]):
    """Counters of all jobs on all targets at one time."""

    __slots__ = ("samples", "sizes", "start", "sums")

    def __init__(self, target: Texts, job: Texts, start: Texts, samples: Columns[str], sums: Columns[str],
                 sizes: Columns[int]) -> None:
        super().__init__(target, job)
        self.start, self.samples, self.sums, self.sizes = start, samples, sums, sizes

    @classmethod
    def of(cls, entries: Mapping[Pair, JobEntry]) -> CounterTable:
        if isinstance(entries, CounterTable):
            return entries
        each = list(entries.values())
        return cls(texts([target for target, _ in entries]), texts([job for _, job in entries]),
                   texts([entry.start for entry in each]), columns_of([entry.samples for entry in each]),
                   columns_of([entry.sums for entry in each]), sizes=columns_of([entry.sizes for entry in each]))

    def value(self, row: int) -> JobEntry:
        """The counters of a row, without zeros."""
        return JobEntry(self.samples.row(row), self.sums.row(row), self.sizes.row(row), self.start[row])

    def rows(self, which: Rows) -> CounterTable:
        return CounterTable(self.target[which], self.job[which], self.start[which], self.samples.rows(which),
                            self.sums.rows(which), sizes=self.sizes.rows(which))


def joined_tables(tables: list[CounterTable]) -> CounterTable:
    """One table of several without common rows. There must be one."""
    if len(tables) == 1:
        return tables[0]

    def columns(each: list[Columns[Any]]) -> Columns[Any]:
        names = names_of(each)
        return Columns(names, np.concatenate([one.aligned(names) for one in each]))

    return CounterTable(np.concatenate([one.target for one in tables]), np.concatenate([one.job for one in tables]),
                        np.concatenate([one.start for one in tables]), columns([one.samples for one in tables]),
                        columns([one.sums for one in tables]), sizes=columns([one.sizes for one in tables]))


MAX_NUMBERS = 40_000_000
"""Maximum numbers in a table, 320 MB: 200,000 pairs of job and target with 200 counters. Lustre has about 120."""


class Cells:
    """Numbers as they are read, one by one, for :class:`Columns`."""

    __slots__ = ("_places", "_values", "names")

    def __init__(self) -> None:
        self.names: Numbers[Any] = Numbers()
        self._places = array("q")
        self._values = array("d")

    def put(self, row: int, name: Any, value: float) -> None:
        """The number of a row in a column."""
        self._places.extend((row, self.names[name]))
        self._values.append(value)

    def columns(self, rows: int, missing: float = 0.0) -> Columns[Any]:
        """All numbers. Raises ValueError if one was put twice, or if there are too many."""
        if rows * len(self.names) > MAX_NUMBERS:
            raise ValueError(f"{len(self.names)} counters of {rows} pairs of job and target")
        found = np.full((rows, len(self.names)), np.nan)
        row, column = np.frombuffer(self._places, np.int64).reshape(-1, 2).T
        found[row, column] = np.frombuffer(self._values)
        known = ~np.isnan(found)
        if known.sum() < len(self._values):
            twice = np.flatnonzero(np.bincount(column) > known.sum(axis=0))[0]
            raise ValueError(f"duplicate series ({list(self.names)[twice]})")
        return Columns(tuple(self.names), np.where(known, found, missing))


@dataclass(frozen=True, slots=True, eq=False)
class Increases:
    """What was counted between two readings, for each row of the later one."""

    samples: Columns[str]
    sums: Columns[str]
    sizes: Columns[int]
    is_new: Bools
    """Rows that the earlier one lacks. They count in full, as those that restarted do."""
    changed: Bools
    """Rows with another number of samples."""
    fell: Bools
    """Rows with a counter that fell, though the entry did not restart."""
    lost: Set[str]
    """Targets of rows that the later one lacks."""

    def rows(self, which: Rows) -> Increases:
        return Increases(self.samples.rows(which), self.sums.rows(which), self.sizes.rows(which), self.is_new[which],
                         self.changed[which], fell=self.fell[which], lost=self.lost)

    def active(self) -> Bools:
        """Rows with operations, and those that fell."""
        found: Bools = self.changed & (self.fell | (self.samples.numbers != 0).any(axis=1))
        return found

    def plausible(self, max_operations: float, max_bytes: float) -> Bools:
        """Rows that a job can have done. A faulty exporter may send anything, NaN included."""
        found: Bools = (within(self.samples.numbers, max_operations) & within(self.sums.numbers, max_bytes)
                        & within(self.sizes.numbers, max_operations) & ~self.fell)
        return found


def within(numbers: Floats, most: float) -> Bools:
    """Rows without a negative number whose sum is at most ``most``. False if one is NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        found: Bools = (numbers >= 0).all(axis=1) & (numbers.sum(axis=1) <= most)
    return found


def increases(before: CounterTable, after: CounterTable) -> Increases:
    """Increases of all counters. Only samples show a restart; other counters that fell did not increase."""
    row = rows_in(before, after)
    is_new = row < 0
    names = names_of((after.samples, before.samples))
    now, then = after.samples.aligned(names), _rows(before.samples, names, row)
    with np.errstate(invalid="ignore", over="ignore"):
        first, last = np.append(before.start, "")[row], after.start
        both = (first != "") & (last != "")
        less = (now < then).any(axis=1)
        from_zero = is_new | less | (both & (first != last))
        changed = (now != then).any(axis=1)
        then[from_zero] = 0
        np.subtract(now, then, out=then)
        return Increases(Columns(names, then), _risen(before.sums, after.sums, row, from_zero),
                         _risen(before.sizes, after.sizes, row, from_zero), is_new, changed,
                         fell=less & both & (first == last), lost={*np.delete(before.target, row[~is_new]).tolist()})


def rows_in(before: CounterTable, after: CounterTable) -> Ints:
    """For each row of ``after``, the number of the row of ``before`` with the same job and target; -1 without one."""
    targets, jobs, row = Numbers[str](), Numbers[str](), np.full(len(after), -1)
    first, second = (targets.of(each.target.tolist(), len(each)) << 32 | jobs.of(each.job.tolist(), len(each))
                     for each in (before, after))
    _, known, seen = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    row[seen] = known
    return row


def _rows(columns: Columns[Any], names: tuple[Any, ...], row: Ints) -> Floats:
    """Some rows of columns; zeros for the row -1."""
    found: Floats = columns.aligned(names)[row] if len(columns.numbers) else np.zeros((len(row), len(names)))
    found[row < 0] = 0
    return found


def _risen(before: Columns[Any], after: Columns[Any], row: Ints, from_zero: Bools) -> Columns[Any]:
    more = _rows(before, after.names, row)
    np.subtract(after.numbers, more, out=more)
    np.fmax(more, 0, out=more)
    more[from_zero] = after.numbers[from_zero]
    return Columns(after.names, more)
