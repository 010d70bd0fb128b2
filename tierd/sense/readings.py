"""Readings of job counters, and the window of job loads between two readings.

Counters restart: an entry of a job that comes back begins at zero. A large file system has tens of thousands of
entries (job and target) in each reading, so the names of the counters are stored once for all entries, and the
numbers of an entry as one packed string: a seventh of the memory of mappings. Entries without change compare equal at
once. Most loads of OSTs come from the numbers alone (``fast_ost_load``). Whatever is odd (other counters than before,
one that fell, NaN, more than is possible) takes the longer way, which gives the same result where nothing is odd.

>>> before, after = JobCounters({"read": 3.0}, {"read": 70.0}), JobCounters({"read": 5.0}, {"read": 90.0})
>>> before.shape is after.shape, after.samples, after.sums, after.sizes
(True, {'read': 5.0}, {'read': 90.0}, {})
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import inf, isnan
from operator import itemgetter, sub
from struct import Struct

from tierd.model import NO_SIZES, JobLoad, NamespaceLoad, Window

_NAN, _MINUS_NAN = 0x7F, 0xFF
"""One of these bytes is in what is no number, and rarely in another."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Which counters there are, and how their numbers are kept: samples, sums and sizes one after the other."""

    samples: tuple[str, ...]
    sums: tuple[str, ...]
    sizes: tuple[int, ...]
    sums_at: int
    """Where the sums begin."""
    sizes_at: int
    """Where the sizes begin."""
    numbers: Struct


@lru_cache(maxsize=4096)  # an exporter may make names up
def shape_of(samples: tuple[str, ...], sums: tuple[str, ...], sizes: tuple[int, ...]) -> Shape:
    """The one of these names, in this order."""
    sizes_at = len(samples) + len(sums)
    return Shape(samples, sums, sizes, len(samples), sizes_at, Struct(f"{sizes_at + len(sizes)}d"))


class JobCounters:
    """The counters of one job on one target, as they stood."""

    __slots__ = ("numbers", "shape", "start")

    def __init__(self, samples: Mapping[str, float], sums: Mapping[str, float], sizes: Mapping[int, float] = NO_SIZES,
                 start: str = "") -> None:
        self.shape = shape_of(tuple(samples), tuple(sums), tuple(sizes))
        self.numbers = self.shape.numbers.pack(*samples.values(), *sums.values(), *sizes.values())
        self.start = start
        """When the entry began, as the kernel printed it; empty where it is not known."""

    def is_unchanged_since(self, before: JobCounters) -> bool:
        """Whether nothing has happened since. What is no number has no equal, as ever."""
        numbers = self.numbers
        if self.shape is not before.shape or numbers != before.numbers:
            return False
        return not ((_NAN in numbers or _MINUS_NAN in numbers) and any(map(isnan, self.values)))

    @property
    def values(self) -> tuple[float, ...]:
        """All numbers, in the order of the shape."""
        return self.shape.numbers.unpack(self.numbers)

    @property
    def samples(self) -> dict[str, float]:
        """By operation, ``read_bytes`` and ``write_bytes`` among them (their samples are bulk RPCs)."""
        return dict(zip(self.shape.samples, self.values, strict=False))

    @property
    def sums(self) -> dict[str, float]:
        """Bytes for ``…_bytes``, microseconds for the others."""
        return dict(zip(self.shape.sums, self.values[self.shape.sums_at:], strict=False))

    @property
    def sizes(self) -> dict[int, float]:
        """Bulk RPCs by upper bound of their size in bytes."""
        return dict(zip(self.shape.sizes, self.values[self.shape.sizes_at:], strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JobCounters):
            return NotImplemented
        return (self.samples, self.sums, self.sizes, self.start) == (other.samples, other.sums, other.sizes,
                                                                     other.start)

    __hash__ = None  # type: ignore[assignment] # nobody looks for counters, and 0.0 and -0.0 are kept as two

    def __repr__(self) -> str:
        return f"JobCounters({self.samples}, {self.sums}, {self.sizes}, {self.start!r})"


DATA_OPERATIONS = frozenset({"read", "write", "read_bytes", "write_bytes"})
MEMORY_OPERATIONS = frozenset({"statfs", "get_info", "set_info", "quotactl", "prealloc", "getattr"})
"""OST operations that are answered from memory: they make no disk seek and are no load."""
_make = partial(tuple.__new__, JobLoad)
_ABSENT = -1
"""Behind all numbers stands a zero."""


@dataclass(frozen=True, slots=True)
class _Positions:
    """Where the numbers of a load stand in those of a shape."""

    read_bytes: int
    write_bytes: int
    reads: int
    writes: int
    read_calls: int
    write_calls: int
    others: Callable[[Sequence[float]], Sequence[float]]
    """Takes the numbers of all other operations out."""
    read_usec: int
    write_usec: int


@lru_cache(maxsize=4096)
def _positions(shape: Shape) -> _Positions:
    def at(names: Sequence[str], name: str, first: int = 0) -> int:
        return first + names.index(name) if name in names else _ABSENT

    samples, sums, first = shape.samples, shape.sums, shape.sums_at
    return _Positions(
        at(sums, "read_bytes", first), at(sums, "write_bytes", first), at(samples, "read_bytes"),
        at(samples, "write_bytes"), at(samples, "read"), at(samples, "write"),
        _getter([i for i, name in enumerate(samples) if name not in DATA_OPERATIONS and name not in MEMORY_OPERATIONS]),
        at(sums, "read", first), at(sums, "write", first),
    )


def _getter(places: Sequence[int]) -> Callable[[Sequence[float]], Sequence[float]]:
    """Several at once are taken out quickest; a single one would not come as a sequence."""
    return itemgetter(*places) if len(places) > 1 else lambda numbers: [numbers[place] for place in places]


def fast_ost_load(target: str, job: str, before: JobCounters, after: JobCounters, max_operations: float,
          max_bytes: float) -> JobLoad | None:
    """The load, or None where more must be asked: what more than ``most_…`` is cannot be."""
    shape = after.shape
    if before.shape is not shape or (before.start != after.start and before.start and after.start):
        return None
    numbers = shape.numbers.unpack
    more = list(map(sub, numbers(after.numbers), numbers(before.numbers)))
    if not more or not sum(more) < inf or min(more) < 0:
        return None
    sums_at, sizes_at = shape.sums_at, shape.sizes_at
    operations, sizes = sum(more[:sums_at]), more[sizes_at:]
    if not 0 < operations <= max_operations or sum(more[sums_at:sizes_at]) > max_bytes or (
            sum(sizes) > max_operations):
        return None
    more.append(0.0)
    at = _positions(shape)
    # 2.12 and 2.13 print no `read` and `write`; there the samples of the byte counters are the RPCs.
    # `or 0.0` is the same zero for all of them: most numbers of most loads are none
    return _make((
        target, job, more[at.read_bytes] or 0.0, more[at.write_bytes] or 0.0,
        more[at.reads] or more[at.read_calls] or 0.0, more[at.writes] or more[at.write_calls] or 0.0,
        sum(at.others(more)) or 0.0, more[at.read_usec] + more[at.write_usec] or 0.0,
        {upper: count for upper, count in zip(shape.sizes, sizes, strict=True) if count} if sizes else NO_SIZES,
    ))


__all__ = ("JobCounters", "Reading", "window")
UNKNOWN_RECOVERY = "recovery not to be seen"
"""The condition of a target whose recovery status cannot be read, as debugfs is closed."""
FULL_FRACTION = 0.05
"""Below this share of free space an OST allocates slowly, and its throughput is no evidence about neighbours."""
IMPLAUSIBLE = "counters that make no sense"
"""The condition of a target whose counters differ by no number, by less than nothing, or by more than can be."""
MAX_BYTES, MAX_OPERATIONS = 1e13, 1e8
"""What one job could do on one target in a second, and more."""
MAX_JOB_ID_CHARACTERS = 256
"""Characters of a job id, of which a kernel gives 64 bytes at the most."""
_CLOCK_SLACK_SECONDS = 5.0
"""Clock difference of a server up to which a new entry is not taken for an old one."""


@dataclass(frozen=True, slots=True)
class ChangelogState:
    """State of the changelog of an MDT (``mdd.*.changelog_users``)."""

    last_index: int | None
    """Of the last record written."""
    users: frozenset[str]
    """Registered readers, without the names they were registered with: ``cl1``."""
    recorded: frozenset[str] | None = None
    """Types of records that are written, as Lustre prints them (``CREAT``); None when the mask is unknown."""


def number_of(user: str) -> str:
    """A user without the name it was registered with.

    >>> number_of("cl1-tierd")
    'cl1'
    """
    return user.partition("-")[0]


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of the counters of a file system."""

    time: float
    jobs: Mapping[tuple[str, str], JobCounters]
    """By (full target name, job), OSTs and MDTs alike."""
    targets: frozenset[str]
    """Targets that were read, those without any job too."""
    conditions: Mapping[str, str] = field(default_factory=dict)
    omits_idle_jobs: bool = False
    """Whether jobs idle for long are left out and come back with all they ever did, as lustre-exporter has it."""
    changelogs: Mapping[str, ChangelogState] = field(default_factory=dict)
    """By full MDT name; of those that show it."""


def restarted(before: JobCounters, after: JobCounters) -> bool:
    """Whether the entry was dropped and began anew between the two."""
    if before.start and after.start and before.start != after.start:
        return True
    now = after.samples
    return any(now.get(name, 0.0) < count for name, count in before.samples.items())


def difference(before: JobCounters | None, after: JobCounters) -> JobCounters:
    """What happened between, without what stood still; everything, where the entry is new or restarted."""
    if before is None or restarted(before, after):
        return after
    samples, sums, sizes = before.samples, before.sums, before.sizes
    return JobCounters(
        {name: more for name, count in after.samples.items() if (more := count - samples.get(name, 0.0))},
        {name: more for name, total in after.sums.items() if (more := total - sums.get(name, 0.0)) > 0},
        {upper: more for upper, count in after.sizes.items() if (more := count - sizes.get(upper, 0.0)) > 0},
        after.start,
    )


def is_ost(target: str) -> bool:
    """Whether a full target name is an OST's."""
    return "-OST" in target


def window(before: Reading, after: Reading) -> Window:
    """The loads between two readings. Raises ValueError when time did not pass."""
    if after.time <= before.time:
        raise ValueError(f"readings out of order: {before.time} then {after.time}")
    seconds = after.time - before.time
    loads: dict[tuple[str, str], JobLoad] = {}
    metadata: defaultdict[str, list[JobCounters]] = defaultdict(list)
    conditions = dict(after.conditions)
    for key, counters in after.jobs.items():
        target, job = key
        if target not in before.targets:
            continue  # not read last time: what looks new may be hours old
        earlier = before.jobs.get(key)
        if earlier is None:
            if says_nothing(counters, before, after):
                continue
        elif counters.is_unchanged_since(earlier):
            continue  # most jobs on most targets are idle: that is seen quickly
        elif is_ost(target) and len(job) <= MAX_JOB_ID_CHARACTERS and (load := fast_ost_load(
                target, job, earlier, counters, MAX_OPERATIONS * seconds, MAX_BYTES * seconds)):
            loads[key] = load
            continue
        done = between(earlier, counters, job, seconds)
        if done is None:
            continue
        if isinstance(done, str):
            conditions[target] = done
        elif is_ost(target):
            loads[key] = job_load(target, job, done)
        else:
            metadata[job].append(done)
    namespace = {job: namespace_load(job, parts) for job, parts in metadata.items()}
    return Window(before.time, after.time, loads, namespace, conditions)


def says_nothing(new: JobCounters, before: Reading, after: Reading) -> bool:
    """Whether an entry that was not in the reading before gives no counts for the time since."""
    # overlooked last time, so its age says nothing about this window
    return began_before(new.start, before.time - _CLOCK_SLACK_SECONDS) or (
        after.omits_idle_jobs and not new.start
    )  # new, or back after hours with the counts of a life: the next will tell


def between(before: JobCounters | None, after: JobCounters, job: str, seconds: float) -> JobCounters | str | None:
    """What a job did; None for nothing, or the condition of the target where its counters make no sense."""
    if before is not None and before.samples == after.samples:
        return None
    done = difference(before, after)
    if done is after and before is not None and before.start and before.start == after.start:
        return IMPLAUSIBLE  # an entry that did not begin anew, and counts less than before
    if not any(done.samples.values()):
        return None
    return done if len(job) <= MAX_JOB_ID_CHARACTERS and plausible(done, seconds) else IMPLAUSIBLE


def plausible(done: JobCounters, seconds: float) -> bool:
    """Whether a job could have done this. An exporter may lie: what is no number compares with nothing."""
    return (within(done.samples.values(), MAX_OPERATIONS * seconds)
            and within(done.sums.values(), MAX_BYTES * seconds)
            and within(done.sizes.values(), MAX_OPERATIONS * seconds))


def within(values: Collection[float], most: float) -> bool:
    """Whether none is negative, and all together are no more than that. One that is no number makes the sum none."""
    return not values or (min(values) >= 0 and sum(values) <= most)


def began_before(start: str, time: float) -> bool:
    """Whether an entry began before a time; one whose beginning cannot be read did, for all we know."""
    try:
        return bool(start) and not float(start) >= time
    except ValueError:
        return True


def job_load(target: str, job: str, done: JobCounters) -> JobLoad:
    """Differences of one job on one OST, by what they cost the disk."""
    samples = done.samples
    # 2.12 and 2.13 print no `read` and `write`; there the samples of the byte counters are the RPCs
    return JobLoad(
        target,
        job,
        read_bytes=done.sums.get("read_bytes", 0.0),
        write_bytes=done.sums.get("write_bytes", 0.0),
        reads=samples.get("read_bytes") or samples.get("read", 0.0),
        writes=samples.get("write_bytes") or samples.get("write", 0.0),
        other_operations=sum(
            n for name, n in samples.items() if name not in DATA_OPERATIONS and name not in MEMORY_OPERATIONS
        ),
        busy_usec=done.sums.get("read", 0.0) + done.sums.get("write", 0.0),
        sizes={upper: count for upper, count in done.sizes.items() if count},
    )


def namespace_load(job: str, parts: Iterable[JobCounters]) -> NamespaceLoad:
    """Differences of one job on the MDTs, summed."""
    total: defaultdict[str, float] = defaultdict(float)
    for done in parts:
        for name, count in done.samples.items():
            total[name] += count
    known = ("open", "close", "mknod", "unlink")
    other = sum(count for name, count in total.items() if name not in (*known, *DATA_OPERATIONS))
    return NamespaceLoad(job, total["open"], total["close"], total["mknod"], total["unlink"], other)
