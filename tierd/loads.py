"""Loads of a window as columns of numbers: a row for each job on each target, or for each job.

A large file system has tens of thousands of loads in a window. As columns (numpy) a step is one operation on all of
them. A single load is made when it is looked up: to a reader, columns are a mapping like any other.

>>> load = JobLoad("l-OST0001", "j.1", write_bytes=5e6, writes=5.0, sizes={1 << 20: 5.0})
>>> few = Loads.of({("l-OST0001", "j.1"): load})
>>> few["l-OST0001", "j.1"] == load, len(few), few.get(("l-OST0001", "j.2"))
(True, 1, None)
>>> together([few, few])["l-OST0001", "j.1"].sizes
{1048576: 10.0}
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count, repeat
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Texts = NDArray[np.object_]
"""Names. Equal ones are one object, so that a row costs a pointer."""
Rows = Ints | Bools | Sequence[int]
"""Which rows: their numbers, or one truth for each row."""
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Array = TypeVar("Array", NDArray[np.int64], NDArray[np.float64])
Pair = tuple[str, str]
"""Target and job."""
NO_SIZES: Mapping[int, float] = MappingProxyType({})


class JobLoad(NamedTuple):
    """Load of one job on one OST during a window: differences of its ``job_stats`` counters.

    It is a tuple, which is made in a third of the time: a large file system has ten thousands per window.
    """

    target: str
    job: str
    read_bytes: float = 0.0
    write_bytes: float = 0.0
    reads: float = 0.0
    """Bulk RPCs, not system calls."""
    writes: float = 0.0
    other_operations: float = 0.0
    """sync, destroy, create, punch, setattr, …: small operations that need seeks."""
    busy_usec: float = 0.0
    """Service time of the bulk RPCs."""
    sizes: Mapping[int, float] = NO_SIZES
    """Bulk RPCs by upper bound of their size in bytes (Lustre 2.16 and newer; empty before)."""

    @property
    def moved_bytes(self) -> float:
        return self.read_bytes + self.write_bytes

    @property
    def bulk_operations(self) -> float:
        return self.reads + self.writes

    @property
    def operations(self) -> float:
        """All operations of the target for the job."""
        return self.reads + self.writes + self.other_operations


@dataclass(frozen=True, slots=True)
class NamespaceLoad:
    """Load of one job on the metadata targets during a window."""

    job: str
    opens: float = 0.0
    closes: float = 0.0
    creates: float = 0.0
    unlinks: float = 0.0
    other_operations: float = 0.0

    @property
    def operations(self) -> float:
        return self.opens + self.closes + self.creates + self.unlinks + self.other_operations


class Numbers(defaultdict[Key, int], Generic[Key]):
    """Numbers of names, in order of appearance. A name that is looked up gets the next number."""

    def __init__(self, known: Iterable[tuple[Key, int]] = ()) -> None:
        super().__init__(None, known)
        self.default_factory = count(len(self)).__next__

    def of(self, names: Iterable[Key], count: int) -> Ints:
        """The numbers of ``count`` names. New ones get the next numbers."""
        return np.fromiter(map(self.__getitem__, names), np.int64, count)


class Names(Numbers[str]):
    """Numbers of names, and the names by number. The number of a forgotten name is given to a new one."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        super().__init__()
        self.by_number: list[str] = []
        """Empty for a number that is free."""
        self._free: list[int] = []
        for name in names:
            self[name]

    def __missing__(self, name: str) -> int:
        if not self._free:
            self.by_number.append(name)
            return super().__missing__(name)
        self[name] = number = self._free.pop()
        self.by_number[number] = name
        return number

    def keep_only(self, numbers: Collection[int]) -> None:
        """Forget the names that do not have one of these numbers."""
        for name, number in [(name, number) for name, number in self.items() if number not in numbers]:
            del self[name]
            self.by_number[number] = ""
            self._free.append(number)


def distinct(values: Array) -> tuple[Array, Ints]:
    """The different ones of some values, in order, and for each value the index of its own among them.

    With ``return_index`` numpy sorts stably. Its vectorised sort of indexes is wrong on processors that QEMU 7.2
    emulates, as in virtual test systems. So all sorts of indexes are stable.

    >>> [each.tolist() for each in distinct(np.array([7, 3, 7]))]
    [[3, 7], [1, 0, 1]]
    """
    found, _, index = np.unique(values, return_index=True, return_inverse=True)
    return found, index


def found_in(some: Ints, values: Ints) -> tuple[Ints, Bools]:
    """Where each value is among some that are in order, and whether it is there; any place for the others."""
    at = np.minimum(np.searchsorted(some, values), len(some) - 1)
    return at, some[at] == values


def largest(group: Array, values: Floats) -> Floats:
    """The largest of these values in the group of each, at least 0."""
    groups, of = distinct(group)
    found = np.zeros(len(groups))
    np.maximum.at(found, of, values)
    return found[of]


def sums(index: Ints, values: Floats, count: int) -> Floats:
    """The sums of the rows of some values that have the same index, for each index below ``count``."""
    found = np.empty((count, values.shape[1]))
    for column in range(values.shape[1]):
        found[:, column] = np.bincount(index, values[:, column], count)
    return found


def texts(names: Sequence[str]) -> Texts:
    found = np.empty(len(names), object)
    found[:] = names
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Columns(Generic[Key]):
    """Numbers by row, and by the name of their column. What has no column is 0."""

    names: tuple[Key, ...]
    numbers: Floats

    def __getitem__(self, name: Key) -> Floats:
        found: Floats = (self.numbers[:, self.names.index(name)] if name in self.names else np.zeros(len(self.numbers)))
        return found

    def rows(self, which: Rows) -> Columns[Key]:
        return Columns(self.names, self.numbers[which])

    def aligned(self, names: tuple[Key, ...]) -> Floats:
        """The numbers in the columns of these names; of all own names that are among them."""
        if names == self.names:
            return self.numbers
        found = np.zeros((len(self.numbers), len(names)))
        place = {name: at for at, name in enumerate(names)}
        own = [at for at, name in enumerate(self.names) if name in place]
        found[:, [place[self.names[at]] for at in own]] = self.numbers[:, own]
        return found

    def row(self, row: int) -> dict[Key, float]:
        """The numbers of a row by name, without zeros."""
        return {name: number for name, number in zip(self.names, self.numbers[row].tolist(), strict=True) if number}


def names_of(each: Iterable[Columns[Key]]) -> tuple[Key, ...]:
    """The names of all columns, in order of appearance."""
    return tuple(dict.fromkeys(name for columns in each for name in columns.names))


def columns_of(rows: Sequence[Mapping[Key, float]]) -> Columns[Key]:
    """Columns from rows of numbers by name."""
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    return Columns(names, np.array([[row.get(name, 0.0) for name in names] for row in rows], float).reshape(
        len(rows), len(names)))


class Table(Mapping[Key, Value], Generic[Key, Value]):
    """A read-only mapping with a row of numbers for each key."""

    job: Texts
    """Job of each row."""

    def __len__(self) -> int:
        return len(self.job)

    @abstractmethod
    def keys_by_row(self) -> Iterable[Key]:
        """The key of each row."""

    @abstractmethod
    def value(self, row: int) -> Value:
        """The value of a row."""

    @cached_property
    def row_of(self) -> Mapping[Key, int]:
        return dict(zip(self.keys_by_row(), range(len(self)), strict=True))

    def jobs_among(self, jobs: Collection[str]) -> Bools:
        return np.fromiter(map(jobs.__contains__, self.job.tolist()), bool, len(self))

    def __getitem__(self, key: Key) -> Value:
        return self.value(self.row_of[key])

    def __contains__(self, key: object) -> bool:
        return key in self.row_of

    def __iter__(self) -> Iterator[Key]:
        return iter(self.keys_by_row())


class PairTable(Table[Pair, Value], Generic[Value]):
    """A table with a row for each job on each target."""

    def __init__(self, target: Texts, job: Texts) -> None:
        self.target, self.job = target, job

    def keys_by_row(self) -> Iterable[Pair]:
        return zip(self.target.tolist(), self.job.tolist(), strict=True)

    def targets_that(self, holds: Callable[[str], bool]) -> Bools:
        """Which rows are of targets of which something holds."""
        numbers: Numbers[str] = Numbers()
        at = numbers.of(self.target.tolist(), len(self))
        return np.array([holds(target) for target in numbers], bool)[at]


READ_BYTES, WRITE_BYTES, READS, WRITES, OTHER_OPERATIONS, BUSY_USEC = range(6)
"""Columns of :attr:`Loads.numbers`."""
_NO_SIZES: tuple[int, ...] = ()


class Loads(PairTable[JobLoad]):
    """Loads by target and job."""

    def __init__(self, target: Texts, job: Texts, numbers: Floats, sizes: Columns[int] | None = None) -> None:
        """``numbers`` have six columns, ``sizes`` one for each upper bound of the size of an RPC."""
        super().__init__(target, job)
        self.numbers = numbers
        self.sizes = sizes or Columns(_NO_SIZES, np.empty((len(target), 0)))

    @classmethod
    def of(cls, loads: Mapping[Pair, JobLoad]) -> Loads:
        if isinstance(loads, Loads):
            return loads
        each = loads.values()
        return cls(texts([load.target for load in each]), texts([load.job for load in each]),
                   np.array([load[2:8] for load in each], float).reshape(-1, 6),
                   columns_of([load.sizes for load in each]))

    def value(self, row: int) -> JobLoad:
        return JobLoad._make((self.target[row], self.job[row], *self.numbers[row].tolist(),
                              self.sizes.row(row) if self.sizes.names else NO_SIZES))

    def values_by_row(self) -> Iterator[JobLoad]:
        """The load of each row, in half the time."""
        sizes = map(self.sizes.row, range(len(self))) if self.sizes.names else repeat(NO_SIZES)
        return (JobLoad._make((target, job, *numbers, by_size)) for target, job, numbers, by_size in zip(
            self.target.tolist(), self.job.tolist(), self.numbers.tolist(), sizes, strict=False))

    def rows(self, which: Rows) -> Loads:
        return Loads(self.target[which], self.job[which], self.numbers[which], self.sizes.rows(which))

    def without_sizes(self) -> Loads:
        """The same without the sizes of RPCs."""
        return Loads(self.target, self.job, self.numbers)

    def by_job(self) -> Loads:
        """The sums over the targets of each job."""
        jobs = Numbers[str]()
        at = jobs.of(self.job.tolist(), len(self))
        return Loads(texts([""] * len(jobs)), texts(list(jobs)), sums(at, self.numbers, len(jobs)),
                     Columns(self.sizes.names, sums(at, self.sizes.numbers, len(jobs))))

    @property
    def operations(self) -> Floats:
        found: Floats = self.numbers[:, READS:BUSY_USEC].sum(axis=1)
        return found

    @property
    def moved_bytes(self) -> Floats:
        found: Floats = self.numbers[:, READ_BYTES] + self.numbers[:, WRITE_BYTES]
        return found

    def moved_by_job(self, seconds_of: Callable[[str], float]) -> dict[str, float]:
        """Bytes per second of each job. ``seconds_of`` is the time in which a target counted its loads."""
        targets, jobs = Numbers[str](), Numbers[str]()
        on, at = targets.of(self.target.tolist(), len(self)), jobs.of(self.job.tolist(), len(self))
        rates = self.moved_bytes / np.array([seconds_of(target) for target in targets], float)[on]
        return dict(zip(jobs, np.bincount(at, rates, len(jobs)).tolist(), strict=True))

    def small_rpcs(self, small_rpc_bytes: int) -> Floats:
        """RPCs of at most this size, from the kernel's size histogram, or else by their mean size."""
        rpcs = self.numbers[:, READS] + self.numbers[:, WRITES]
        by_mean = np.where(self.moved_bytes <= small_rpc_bytes * rpcs, rpcs, 0.0)
        small = [upper <= small_rpc_bytes for upper in self.sizes.names]
        known = self.sizes.numbers.any(axis=1)
        return np.where(known, self.sizes.numbers[:, small].sum(axis=1), by_mean)


def together(each: Sequence[Loads]) -> Loads:
    """The sums of several loads by target and job."""
    if len(each) == 1:
        return each[0]
    targets, jobs, count = Numbers[str](), Numbers[str](), sum(map(len, each))
    target = targets.of(chain.from_iterable(loads.target.tolist() for loads in each), count)
    job = jobs.of(chain.from_iterable(loads.job.tolist() for loads in each), count)
    _, first, pair = np.unique(target * len(jobs) + job, return_index=True, return_inverse=True)
    first, rank = distinct(first)  # in order of appearance
    at = rank[pair]
    uppers = names_of(loads.sizes for loads in each)
    none = np.empty((0, 6 + len(uppers)))
    found = sums(at, np.concatenate([none, *(
        np.column_stack((loads.numbers, loads.sizes.aligned(uppers))) for loads in each)]), len(first))
    return Loads(texts(list(targets))[target[first]], texts(list(jobs))[job[first]],
                 found[:, :6].copy(), Columns(uppers, found[:, 6:].copy()))


OPENS, CLOSES, CREATES, UNLINKS, OTHERS = range(5)
"""Columns of :attr:`NamespaceLoads.numbers`."""


class JobTable(Table[str, Value], Generic[Value]):
    """A table with a row for each job."""

    def __init__(self, job: Texts, numbers: Floats) -> None:
        self.job, self.numbers = job, numbers

    def keys_by_row(self) -> Iterable[str]:
        found: list[str] = self.job.tolist()
        return found


class NamespaceLoads(JobTable[NamespaceLoad]):
    """Metadata operations by job."""

    @classmethod
    def of(cls, namespace: Mapping[str, NamespaceLoad]) -> NamespaceLoads:
        if isinstance(namespace, NamespaceLoads):
            return namespace
        return cls(texts(list(namespace)), np.array([(each.opens, each.closes, each.creates, each.unlinks,
                                               each.other_operations) for each in namespace.values()],
                                             float).reshape(-1, 5))

    def value(self, row: int) -> NamespaceLoad:
        return NamespaceLoad(self.job[row], *self.numbers[row].tolist())

    def rows(self, which: Rows) -> NamespaceLoads:
        return NamespaceLoads(self.job[which], self.numbers[which])

    @property
    def operations(self) -> Floats:
        found: Floats = self.numbers.sum(axis=1)
        return found


def names_together(each: Sequence[NamespaceLoads]) -> NamespaceLoads:
    """The sums of several by job."""
    jobs: Numbers[str] = Numbers()
    at = jobs.of((job for names in each for job in names.keys_by_row()), sum(map(len, each)))
    numbers = np.concatenate([np.empty((0, 5)), *(names.numbers for names in each)])
    return NamespaceLoads(texts(list(jobs)), sums(at, numbers, len(jobs)))
