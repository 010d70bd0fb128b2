"""Readings of job counters, and the window of job loads between two readings.

Counters restart: Lustre drops the entry of an idle job, and a new entry of that job begins at zero.

A reading of a large file system has tens of thousands of entries, one for each job and target. The names of counters
are therefore stored once for all entries, and the numbers of an entry as packed bytes: this takes a seventh of the
memory of mappings. Entries without change have equal bytes. ``fast_ost_load`` computes most loads of OSTs from the
numbers alone, and ``regular_loads`` those of many entries at once, with the C module (``_readings.c``, optional) if it
is there. An irregular entry (other counters than before, a counter that fell, NaN, an impossible increase) takes the
slower path of ``between``. All paths give the same result for a regular entry.

>>> before, after = JobCounters({"read": 3.0}, {"read": 70.0}), JobCounters({"read": 5.0}, {"read": 90.0})
>>> before.shape is after.shape, after.samples, after.sums, after.sizes
(True, {'read': 5.0}, {'read': 90.0}, {})
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import inf, isnan
from operator import add, itemgetter, sub
from struct import Struct
from typing import NamedTuple

from lustre.formats.job_stats import MAX_JOB_ID_BYTES
from tierd.model import NO_SIZES, UNSEEN, JobLoad, NamespaceLoad, Service, StorageWork, Window

_NAN, _MINUS_NAN = 0x7F, 0xFF
"""Every packed NaN has one of these bytes. Few other numbers have one."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Names of the counters of an entry. Its packed numbers are samples, then sums, then sizes."""

    samples: tuple[str, ...]
    sums: tuple[str, ...]
    sizes: tuple[int, ...]
    sums_at: int
    """Index of the first sum."""
    sizes_at: int
    """Index of the first size."""
    numbers: Struct


@lru_cache(maxsize=4096)  # bounded: a faulty exporter may invent names
def shape_of(samples: tuple[str, ...], sums: tuple[str, ...], sizes: tuple[int, ...]) -> Shape:
    """The shape for these names in this order. Equal names give the same object."""
    sizes_at = len(samples) + len(sums)
    return Shape(samples, sums, sizes, len(samples), sizes_at, Struct(f"{sizes_at + len(sizes)}d"))


class JobCounters:
    """Values of the counters of one job on one target at one time."""

    __slots__ = ("numbers", "shape", "start")

    def __init__(self, samples: Mapping[str, float], sums: Mapping[str, float], sizes: Mapping[int, float] = NO_SIZES,
                 start: str = "") -> None:
        self.shape = shape_of(tuple(samples), tuple(sums), tuple(sizes))
        self.numbers = self.shape.numbers.pack(*samples.values(), *sums.values(), *sizes.values())
        self.start = start
        """Start time of the entry, as the kernel printed it; empty if unknown."""

    def is_unchanged_since(self, before: JobCounters) -> bool:
        """Whether all counters are equal to the counters of an earlier entry. NaN is not equal to NaN."""
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
        """Samples by operation. Samples of ``read_bytes`` and ``write_bytes`` count bulk RPCs."""
        return dict(zip(self.shape.samples, self.values, strict=False))

    @property
    def sums(self) -> dict[str, float]:
        """Sums by operation: bytes for ``…_bytes``, microseconds for others."""
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

    __hash__ = None  # type: ignore[assignment] # never a key; and 0.0 equals -0.0 with other bytes

    def __repr__(self) -> str:
        return f"JobCounters({self.samples}, {self.sums}, {self.sizes}, {self.start!r})"


DATA_OPERATIONS = frozenset({"read", "write", "read_bytes", "write_bytes"})
MEMORY_OPERATIONS = frozenset({"statfs", "get_info", "set_info", "quotactl", "prealloc", "getattr"})
"""OST operations that the server answers from memory. They cause no disk seek and do not count as load."""
_make = partial(tuple.__new__, JobLoad)
_ABSENT = -1
"""Index of the zero that ``fast_ost_load`` appends after the numbers."""


@dataclass(frozen=True, slots=True)
class _Positions:
    """Index of each number of a load among the numbers of a shape."""

    read_bytes: int
    write_bytes: int
    reads: int
    writes: int
    read_calls: int
    write_calls: int
    others: Sequence[int]
    """Of all other operations."""
    get_others: Callable[[Sequence[float]], Sequence[float]]
    """Returns the numbers of all other operations."""
    read_usec: int
    write_usec: int


@lru_cache(maxsize=4096)
def _positions(shape: Shape) -> _Positions:
    def at(names: Sequence[str], name: str, first: int = 0) -> int:
        return first + names.index(name) if name in names else _ABSENT

    samples, sums, first = shape.samples, shape.sums, shape.sums_at
    others = [i for i, name in enumerate(samples) if name not in DATA_OPERATIONS and name not in MEMORY_OPERATIONS]
    return _Positions(
        at(sums, "read_bytes", first), at(sums, "write_bytes", first), at(samples, "read_bytes"),
        at(samples, "write_bytes"), at(samples, "read"), at(samples, "write"), others, _getter(others),
        at(sums, "read", first), at(sums, "write", first),
    )


def _getter(places: Sequence[int]) -> Callable[[Sequence[float]], Sequence[float]]:
    """Returns the numbers at these indexes. ``itemgetter`` is fastest, but gives no sequence for a single index."""
    return itemgetter(*places) if len(places) > 1 else lambda numbers: [numbers[place] for place in places]


def regular_increases(before: JobCounters, after: JobCounters, max_operations: float,
                      max_bytes: float) -> list[float] | None:
    """Increases of all numbers of an entry, in the order of its shape, for regular entries only.

    None if the entry has other counters than before, restarted, did not change, or rose by more than ``max_operations``
    or ``max_bytes``. Such an entry needs ``between``.
    """
    shape = after.shape
    if before.shape is not shape or (before.start != after.start and before.start and after.start):
        return None
    numbers = shape.numbers.unpack
    more = list(map(sub, numbers(after.numbers), numbers(before.numbers)))
    if not more or not sum(more) < inf or min(more) < 0:
        return None
    sums_at, sizes_at = shape.sums_at, shape.sizes_at
    if not 0 < sum(more[:sums_at]) <= max_operations or sum(more[sums_at:sizes_at]) > max_bytes or (
            sum(more[sizes_at:]) > max_operations):
        return None
    return more


def operations_by_name(shape: Shape, numbers: Sequence[float]) -> dict[str, float]:
    """Operations that were done, by name, from numbers in the order of a shape."""
    return {name: count for name, count in zip(shape.samples, numbers, strict=False) if count}


def fast_ost_load(target: str, job: str, before: JobCounters, after: JobCounters, max_operations: float,
                  max_bytes: float) -> JobLoad | None:
    """The load of a job on an OST between two entries; None if the entry is not regular."""
    more = regular_increases(before, after, max_operations, max_bytes)
    if more is None:
        return None
    shape = after.shape
    sizes = more[shape.sizes_at:]
    more.append(0.0)
    at = _positions(shape)
    # 2.12 and 2.13 print no `read` and `write`; there the samples of the byte counters are the RPCs.
    # `or 0.0` saves memory: most numbers of most loads are zero, and all share this one
    return _make((
        target, job, more[at.read_bytes] or 0.0, more[at.write_bytes] or 0.0,
        more[at.reads] or more[at.read_calls] or 0.0, more[at.writes] or more[at.write_calls] or 0.0,
        sum(at.get_others(more)) or 0.0, more[at.read_usec] + more[at.write_usec] or 0.0,
        {upper: count for upper, count in zip(shape.sizes, sizes, strict=True) if count} if sizes else NO_SIZES,
    ))


Changed = tuple[tuple[str, str], JobCounters, JobCounters]
"""Target and job, and an earlier and a later entry with the same names of counters."""
AT_ONCE = 256
"""Number of entries whose numbers ``regular_loads`` unpacks at a time. They fit into the processor cache."""


try:
    from tierd.sense import _readings
except ImportError:
    AVAILABLE = False
else:
    AVAILABLE = True
MAX_NUMBERS = 1024
"""Numbers of an entry, at the most, for the C module. Lustre has some 60."""


def regular_loads(changed: Sequence[Changed], max_operations: float, max_bytes: float) -> list[JobLoad | None]:
    """The results of ``fast_ost_load`` for entries of one shape, in a third of the time; in C, a tenth."""
    shape = changed[0][2].shape
    width = shape.sizes_at + len(shape.sizes)
    if not AVAILABLE or width > MAX_NUMBERS:
        return loads_by_columns(changed, max_operations, max_bytes)
    at = _positions(shape)
    return _readings.loads(
        list(changed), (width, shape.sums_at, shape.sizes_at),
        (at.read_bytes, at.write_bytes, at.reads, at.writes, at.read_calls, at.write_calls, at.read_usec,
         at.write_usec), tuple(at.others), shape.sizes, max_operations, max_bytes, {}, (JobLoad, NO_SIZES))


def loads_by_columns(changed: Sequence[Changed], max_operations: float, max_bytes: float) -> list[JobLoad | None]:
    """The results of ``fast_ost_load`` for entries of one shape, many at once."""
    found: list[JobLoad | None] = []
    known: KnownSizes = {}
    for first in range(0, len(changed), AT_ONCE):
        some = changed[first:first + AT_ONCE]
        found += _loads_by_column(some, max_operations, max_bytes, known) or [
            fast_ost_load(target, job, before, after, max_operations, max_bytes)
            for (target, job), before, after in some]
    return found


def _loads_by_column(changed: Sequence[Changed], max_operations: float, max_bytes: float,
                     known: KnownSizes) -> list[JobLoad | None] | None:
    """Loads of OSTs from entries of one shape; None if a limit may be exceeded, so that each needs its own check.

    No number may have fallen. The limits apply to the sums of all these entries, which are no less than each one.
    """
    shape = changed[0][2].shape
    if not shape.samples:
        return None
    earlier = array("d", b"".join([before.numbers for _, before, _ in changed]))
    later = array("d", b"".join([after.numbers for _, _, after in changed]))
    more = list(map(sub, later, earlier))
    if not sum(more) < inf or min(more) < 0:
        return None
    width = len(more) // len(changed)
    columns = [more[number::width] for number in range(width)]
    samples, sums, sizes = columns[:shape.sums_at], columns[shape.sums_at:shape.sizes_at], columns[shape.sizes_at:]
    if (sum(map(sum, samples)) > max_operations or sum(map(sum, sums)) > max_bytes
            or sum(map(sum, sizes)) > max_operations):
        return None
    at, zeros = _positions(shape), [0.0] * len(changed)
    columns.append(zeros)  # at `_ABSENT`
    targets, jobs = zip(*[key for key, _, _ in changed], strict=True)
    by_size = _shared_sizes(shape.sizes, list(zip(*sizes, strict=True)), known) or [NO_SIZES] * len(changed)
    # `or 0.0` as in `fast_ost_load`
    made = map(_make, zip(
        targets, jobs,
        [each or 0.0 for each in columns[at.read_bytes]], [each or 0.0 for each in columns[at.write_bytes]],
        _first_of(columns[at.reads], columns[at.read_calls]), _first_of(columns[at.writes], columns[at.write_calls]),
        [sum(each) or 0.0 for each in zip(*[columns[other] for other in at.others], strict=True)] or zeros,
        [reads + writes or 0.0 for reads, writes in zip(columns[at.read_usec], columns[at.write_usec], strict=True)],
        by_size, strict=True))
    return [load if any(done) else None for load, done in zip(made, zip(*samples, strict=True), strict=True)]


KnownSizes = dict[tuple[float, ...], Mapping[int, float]]
"""Sizes of RPCs by their counts, in the order of a shape."""


def _shared_sizes(uppers: Sequence[int], each: Sequence[tuple[float, ...]],
                  known: KnownSizes) -> Sequence[Mapping[int, float]]:
    """Sizes of RPCs of each load. Equal ones are one object, to save memory: small counts are frequent."""
    for counts in set(each).difference(known):
        known[counts] = {upper: count for upper, count in zip(uppers, counts, strict=True) if count}
    return [known[counts] for counts in each]


def _first_of(counts: Sequence[float], others: Sequence[float]) -> list[float]:
    """The first counts, or the others where they are 0."""
    return [count or other or 0.0 for count, other in zip(counts, others, strict=True)]


__all__ = ("JobCounters", "Reading", "window")
UNKNOWN_RECOVERY = "recovery status unknown"
"""Condition of a target whose recovery status cannot be read, for example because debugfs is closed."""
FULL_FRACTION = 0.05
"""An OST with a smaller share of free space allocates slowly. Its throughput proves nothing about neighbours."""
IMPLAUSIBLE = "implausible counters"
"""Condition of a target with a counter that is NaN, that fell without a restart, or that rose impossibly fast."""
MAX_BYTES, MAX_OPERATIONS = 1e13, 1e8
"""Upper limits, per second, of what one job can do on one target. No real job reaches them."""
MAX_JOB_ID_CHARACTERS = 4 * MAX_JOB_ID_BYTES + 8
"""Maximum length of a job id: each byte as ``\\xHH``, and the number that lustre-exporter appends to equal names."""
_CLOCK_SLACK_SECONDS = 5.0
"""Clock difference of a server that does not make a new entry look old."""


@dataclass(frozen=True, slots=True)
class ChangelogState:
    """State of the changelog of an MDT (``mdd.*.changelog_users``)."""

    last_index: int | None
    """Index of the last record written; None if unknown."""
    users: frozenset[str]
    """Registered users by number, such as ``cl1``, without their names."""
    recorded: frozenset[str] | None = None
    """Record types in the mask, as Lustre prints them (``CREAT``); None if the mask is unknown."""
    kept_records: int | None = None
    """Records that the slowest user has not cleared; None if unknown. Opening the device walks them."""


def number_of(user: str) -> str:
    """The number of a changelog user, without its name.

    >>> number_of("cl1-tierd")
    'cl1'
    """
    return user.partition("-")[0]


@dataclass(frozen=True, slots=True)
class ServiceCounters:
    """Counters of the service for metadata requests (``mds.MDS.mdt``), and its threads."""

    threads: float = 0.0
    threads_max: float = 0.0
    requests: float = 0.0
    wait_usec: float = 0.0
    active: float = 0.0
    """Sum of the requests in progress, sampled at the start of each request."""
    queued: float = 0.0
    """Sum of the requests in the queue, sampled in the same way."""


class Stamp(NamedTuple):
    """When the counters of a target were read, by the clock of its server."""

    clock: str
    """Names the server, and how often its clock was set. Times of different clocks are never compared."""
    seconds: float


LONGEST_SECONDS, LONGEST_WINDOWS = 30.0, 3.0
"""A span longer than both (in seconds, and in windows) is a gap: its mean says nothing about the last seconds."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of the counters of a file system."""

    time: float
    """When it was asked for, by this node's clock."""
    jobs: Mapping[tuple[str, str], JobCounters]
    """By full target name and job, for OSTs and MDTs."""
    targets: frozenset[str]
    """Targets that were read, including targets without jobs."""
    conditions: Mapping[str, str] = field(default_factory=dict)
    omits_idle_jobs: bool = False
    """Whether the source omits idle jobs. A job that returns then has all its counts, as in lustre-exporter."""
    changelogs: Mapping[str, ChangelogState] = field(default_factory=dict)
    """By full MDT name, for MDTs whose state is known."""
    is_flash: Mapping[str, bool] = field(default_factory=dict)
    """Whether the device of a target does not rotate, by full target name, for targets whose server reports it."""
    data_limits: Mapping[str, int] = field(default_factory=dict)
    """Maximum bytes of a new component with data on an MDT, by full target name, for MDTs whose server reports it."""
    storage_work: Mapping[str, StorageWork] = field(default_factory=dict)
    """By full target name, for targets whose storage rebuilds or rebalances."""
    services: Mapping[str, ServiceCounters] = field(default_factory=dict)
    """The service for metadata requests of each MDS, by the origin of the counters."""
    stamps: Mapping[str, Stamp] = field(default_factory=dict)
    """By full target name. Targets without a stamp were read at ``time``."""


def restarted(before: JobCounters, after: JobCounters) -> bool:
    """Whether Lustre dropped the entry and began a new one between the two readings."""
    if before.start and after.start and before.start != after.start:
        return True
    now = after.samples
    return any(now.get(name, 0.0) < count for name, count in before.samples.items())


def difference(before: JobCounters | None, after: JobCounters) -> JobCounters:
    """Increases between two entries, without counters that did not change. A new or restarted entry counts in full."""
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


def spans_between(before: Reading, after: Reading) -> dict[str, float]:
    """Seconds between two readings of each target, by its own clock. Targets whose rates are unknown are left out.

    These are targets that only one of the readings has, that were not read again or long ago, and whose clock was set.
    """
    nominal = after.time - before.time
    longest = max(LONGEST_SECONDS, LONGEST_WINDOWS * nominal)
    spans = {}
    for target in before.targets & after.targets:
        first, last = before.stamps.get(target), after.stamps.get(target)
        if first is None or last is None:
            seconds = nominal if first is last else 0.0
        else:
            seconds = last.seconds - first.seconds if first.clock == last.clock else 0.0
        if 0.0 < seconds <= longest:
            spans[target] = seconds
    return spans


def window(before: Reading, after: Reading) -> Window:
    """The loads between two readings. Raises ValueError if the second is not later than the first.

    Loads of a target arose in its own span. A target without one has no loads, and the condition ``UNSEEN``.
    """
    if after.time <= before.time:
        raise ValueError(f"readings out of order: {before.time} then {after.time}")
    spans = spans_between(before, after)
    seconds = max(spans.values(), default=after.time - before.time)
    max_operations, max_bytes = MAX_OPERATIONS * seconds, MAX_BYTES * seconds
    loads: dict[tuple[str, str], JobLoad] = {}
    metadata: defaultdict[str, list[Mapping[str, float]]] = defaultdict(list)
    services: defaultdict[str, list[JobCounters]] = defaultdict(list)
    totals: dict[tuple[str, Shape], list[float]] = {}
    conditions = {**after.conditions, **dict.fromkeys((before.targets | after.targets) - spans.keys(), UNSEEN)}
    changed = changed_entries(before, after, spans)
    regular = regular_ost_loads(changed, max_operations, max_bytes)
    for key, earlier, counters in changed:
        load = regular.get(key)
        if load is not None:
            loads[key] = load
            continue
        target, job = key
        if (earlier is not None and not is_ost(target) and len(job) <= MAX_JOB_ID_CHARACTERS
                and (more := regular_increases(earlier, counters, max_operations, max_bytes))):
            metadata[job].append(operations_by_name(counters.shape, more))
            known = totals.get((target, counters.shape))
            totals[target, counters.shape] = more if known is None else list(map(add, known, more))
            continue
        done = between(earlier, counters, job, seconds)
        if isinstance(done, str):
            conditions[target] = done
        elif done is not None and is_ost(target):
            loads[key] = job_load(target, job, done)
        elif done is not None:
            metadata[job].append(done.samples)
            services[target].append(done)
    for (target, shape), numbers in totals.items():
        services[target].append(JobCounters(dict(zip(shape.samples, numbers, strict=False)),
                                            dict(zip(shape.sums, numbers[shape.sums_at:], strict=False))))
    namespace = {job: namespace_load(job, parts) for job, parts in metadata.items()}
    return Window(before.time, after.time, loads, namespace, conditions,
                  metadata={target: service_of(parts) for target, parts in services.items()},
                  data_limits=after.data_limits, storage_work=after.storage_work,
                  spans=spans if after.stamps else {})


def changed_entries(before: Reading, after: Reading,
                    targets: Collection[str]) -> list[tuple[tuple[str, str], JobCounters | None, JobCounters]]:
    """Entries of these targets that changed or are new, with the earlier entry. Most jobs are idle on most targets.

    If the earlier reading lacks a target, an entry that seems new may be hours old: such targets must be left out.
    """
    found: list[tuple[tuple[str, str], JobCounters | None, JobCounters]] = []
    earlier_of = before.jobs.get
    for key, counters in after.jobs.items():
        if key[0] in targets:
            earlier = earlier_of(key)
            if not (has_unknown_start(counters, before, after) if earlier is None
                    else counters.is_unchanged_since(earlier)):
                found.append((key, earlier, counters))
    return found


def regular_ost_loads(changed: Iterable[tuple[tuple[str, str], JobCounters | None, JobCounters]],
                      max_operations: float, max_bytes: float) -> dict[tuple[str, str], JobLoad]:
    """Loads of OSTs by target and job, of all regular entries."""
    by_shape: defaultdict[Shape, list[Changed]] = defaultdict(list)
    for key, earlier, counters in changed:
        if (earlier is not None and earlier.shape is counters.shape
                and (earlier.start == counters.start or not earlier.start or not counters.start)
                and is_ost(key[0]) and len(key[1]) <= MAX_JOB_ID_CHARACTERS):
            by_shape[counters.shape].append((key, earlier, counters))
    return {each[0]: load for alike in by_shape.values()
            for each, load in zip(alike, regular_loads(alike, max_operations, max_bytes), strict=True)
            if load is not None}


def service_of(parts: Iterable[JobCounters]) -> dict[str, Service]:
    """Operations on one MDT and their service time. Releases before 2.14 report no times, and give nothing.

    >>> service_of([JobCounters({"open": 2.0, "read_bytes": 1.0}, {"open": 900.0, "read_bytes": 4096.0})])
    {'open': Service(operations=2.0, usec=900.0)}
    """
    found: dict[str, Service] = {}
    for done in parts:
        samples = done.samples
        for name, usec in done.sums.items():
            if name not in DATA_OPERATIONS and samples.get(name):
                known = found.get(name, Service(0.0, 0.0))
                found[name] = Service(known.operations + samples[name], known.usec + usec)
    return found


def has_unknown_start(new: JobCounters, before: Reading, after: Reading) -> bool:
    """Whether counts of an entry that the earlier reading lacks may be older than that reading.

    Such an entry began before the reading, or came back after hours with all its counts. It is used from the next
    reading on.
    """
    return began_before(new.start, before.time - _CLOCK_SLACK_SECONDS) or (after.omits_idle_jobs and not new.start)


def between(before: JobCounters | None, after: JobCounters, job: str, seconds: float) -> JobCounters | str | None:
    """What a job did in the meantime; None for nothing. For impossible counters, the condition of the target."""
    if before is not None and before.samples == after.samples:
        return None
    done = difference(before, after)
    if done is after and before is not None and before.start and before.start == after.start:
        return IMPLAUSIBLE  # a counter fell, and the entry did not restart
    if not any(done.samples.values()):
        return None
    return done if len(job) <= MAX_JOB_ID_CHARACTERS and plausible(done, seconds) else IMPLAUSIBLE


def plausible(done: JobCounters, seconds: float) -> bool:
    """Whether a job can have done this. A faulty exporter may send anything, NaN included."""
    return (within(done.samples.values(), MAX_OPERATIONS * seconds)
            and within(done.sums.values(), MAX_BYTES * seconds)
            and within(done.sizes.values(), MAX_OPERATIONS * seconds))


def within(values: Collection[float], most: float) -> bool:
    """Whether no value is negative and their sum is at most ``most``. False if a value is NaN."""
    return not values or (min(values) >= 0 and sum(values) <= most)


def began_before(start: str, time: float) -> bool:
    """Whether an entry began before a time. True if its start cannot be parsed, False if it has none."""
    try:
        return bool(start) and not float(start) >= time
    except ValueError:
        return True


def job_load(target: str, job: str, done: JobCounters) -> JobLoad:
    """Load of one job on one OST from the differences of its counters."""
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


def namespace_load(job: str, parts: Iterable[Mapping[str, float]]) -> NamespaceLoad:
    """Load of one job on all MDTs, from its operations by name on each."""
    total: defaultdict[str, float] = defaultdict(float)
    for done in parts:
        for name, count in done.items():
            total[name] += count
    known = ("open", "close", "mknod", "unlink")
    other = sum(count for name, count in total.items() if name not in (*known, *DATA_OPERATIONS))
    return NamespaceLoad(job, total["open"], total["close"], total["mknod"], total["unlink"], other)
