"""Readings of the counters of a file system, and the window of loads between two of them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import NamedTuple

import numpy as np

from lustre.formats.job_stats import MAX_JOB_ID_BYTES
from tierd.loads import Bools, Loads, NamespaceLoads, Numbers, Pair, sums, texts
from tierd.model import UNSEEN, EarlierWork, Service, StorageWork, Window
from tierd.sense.counters import CounterTable, Increases, JobEntry, increases

DATA_OPERATIONS = frozenset({"read", "write", "read_bytes", "write_bytes"})
MEMORY_OPERATIONS = frozenset({"statfs", "get_info", "set_info", "quotactl", "prealloc", "getattr"})
"""OST operations that the server answers from memory. They cause no disk seek and do not count as load."""
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
    mdts: frozenset[str] = frozenset()
    """The MDTs of the same server, by full name."""


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
    jobs: Mapping[Pair, JobEntry]
    """By full target name and job, for OSTs and MDTs. Sources give a :class:`CounterTable`."""
    targets: frozenset[str]
    """Targets that were read, including targets without jobs."""
    conditions: Mapping[str, str] = field(default_factory=dict)
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
    complete: frozenset[str] = frozenset()
    """Targets of which ``jobs`` has all. An entry that one such reading lacks is new in the next one."""


def is_ost(target: str) -> bool:
    return "-OST" in target


def of_filesystem(reading: Reading, fsname: str) -> Reading:
    """What is about one file system: servers may serve several. ``a-b-OST0000`` is no target of ``a``."""
    return without_targets(reading, {target for target in reading.targets if target.rpartition("-")[0] != fsname})


def without_targets(reading: Reading, others: Set[str]) -> Reading:
    """The reading without these targets, and without all that is about them."""
    if not others:
        return reading
    counters = CounterTable.of(reading.jobs)
    return replace(reading, jobs=counters.rows(~counters.targets_that(others.__contains__)),
                   targets=reading.targets - others, complete=reading.complete - others,
                   conditions={target: why for target, why in reading.conditions.items() if target not in others},
                   data_limits={mdt: most for mdt, most in reading.data_limits.items() if mdt not in others},
                   services={origin: replace(one, mdts=one.mdts - others) for origin, one in reading.services.items()
                             if not one.mdts or one.mdts - others})


def condition(degraded: float | None, recovering: bool | None, size_bytes: float | None,
              avail_bytes: float | None) -> str:
    """Why the throughput of a target cannot be compared now; "" if it is healthy. None: unknown, or not of an OST."""
    if degraded:
        return "degraded"
    if recovering is None:
        return UNKNOWN_RECOVERY
    if recovering:
        return "in recovery"
    full = size_bytes and avail_bytes is not None and avail_bytes < FULL_FRACTION * size_bytes
    return "full" if full else ""


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
            seconds = nominal if first is last else 0.0  # with one stamp only, the span is not known
        else:
            seconds = last.seconds - first.seconds if first.clock == last.clock else 0.0
        if 0.0 < seconds <= longest:
            spans[target] = seconds
    return spans


def window(before: Reading, after: Reading, lost: dict[str, float] | None = None) -> Window:
    """The loads between two readings. Raises ValueError if the second is not later than the first. Loads of a target
    arose in its own span. A target without one has no loads, and the condition ``UNSEEN``. ``lost`` keeps from one call
    to the next when each target last lost an entry.
    """
    if after.time <= before.time:
        raise ValueError(f"readings out of order: {before.time} then {after.time}")
    spans = spans_between(before, after)
    seconds = max(spans.values(), default=after.time - before.time)
    earlier, later = CounterTable.of(before.jobs), CounterTable.of(after.jobs)
    done = increases(earlier, later)
    # if the earlier reading lacks a target, an entry that seems new may be hours old: it has no span
    usable = done.active() & later.targets_that(spans.__contains__) & ~of_unknown_start(
        later, done, before, after, {} if lost is None else lost)
    sound = done.plausible(MAX_OPERATIONS * seconds, MAX_BYTES * seconds) & (
        np.fromiter(map(len, later.job.tolist()), np.int64, len(later)) <= MAX_JOB_ID_CHARACTERS)
    conditions = {**after.conditions, **dict.fromkeys((before.targets | after.targets) - spans.keys(), UNSEEN),
                  **dict.fromkeys(later.target[usable & ~sound].tolist(), IMPLAUSIBLE)}
    of_ost = later.targets_that(is_ost)
    return Window(before.time, after.time, ost_loads(later, done, usable & sound & of_ost),
                  namespace_loads(later, done, usable & sound & ~of_ost), conditions,
                  metadata=services_of(later, done, usable & sound & ~of_ost),
                  data_limits=after.data_limits, storage_work=after.storage_work,
                  spans=spans if after.stamps else {})  # without stamps, all have the same span


def earlier_work(reading: Reading, seen: Window) -> dict[str, EarlierWork]:
    """What each job did on all object targets before the first reading of a window, by the oldest of its counters."""
    counters = CounterTable.of(reading.jobs)
    counters = counters.rows(counters.targets_that(is_ost))
    done = ost_loads(counters, increases(CounterTable.of({}), counters), np.ones(len(counters), bool)).by_job()
    now = Loads.of(seen.loads).by_job()
    rates = dict(zip(now.job.tolist(), (now.operations / seen.seconds).tolist(), strict=True))
    began: dict[str, tuple[float, float]] = {}
    for (target, job), start in zip(counters.keys_by_row(), counters.start.tolist(), strict=True):
        at, stamp = seconds_of(start) or 0.0, reading.stamps.get(target)
        began[job] = min(began.get(job, (inf, 0.0)), (at, (reading.time if stamp is None else stamp.seconds) - at))
    return {job: EarlierWork(*began[job], worked_seconds=min(operations / rates[job], began[job][1]), moved_bytes=moved)
            for job, operations, moved in zip(done.job.tolist(), done.operations.tolist(), done.moved_bytes.tolist(),
                                              strict=True) if rates.get(job)}


def ost_loads(counters: CounterTable, done: Increases, which: Bools) -> Loads:
    samples, totals = done.samples, done.sums
    # one column after the other: all of them at once take new memory
    others = sum([samples[name][which] for name in samples.names
                  if name not in DATA_OPERATIONS and name not in MEMORY_OPERATIONS], np.zeros(int(which.sum())))
    # 2.12 and 2.13 print no `read` and `write`; there the samples of the byte counters are the RPCs
    reads, writes = (np.where(samples[f"{name}_bytes"] > 0, samples[f"{name}_bytes"], samples[name])[which]
                     for name in ("read", "write"))
    return Loads(counters.target[which], counters.job[which], np.column_stack((
        totals["read_bytes"][which], totals["write_bytes"][which], reads, writes, others,
        totals["read"][which] + totals["write"][which])), done.sizes.rows(which))


NAMED = ("open", "close", "mknod", "unlink")


def namespace_loads(counters: CounterTable, done: Increases, which: Bools) -> NamespaceLoads:
    """Loads of jobs on all MDTs together."""
    samples, jobs = done.samples.rows(which), Numbers[str]()
    others = [name not in NAMED and name not in DATA_OPERATIONS for name in samples.names]
    each = np.column_stack((*(samples[name] for name in NAMED), samples.numbers[:, others].sum(axis=1)))
    at = jobs.of(counters.job[which].tolist(), len(each))
    return NamespaceLoads(texts(list(jobs)), sums(at, each, len(jobs)))


def services_of(counters: CounterTable, done: Increases, which: Bools) -> dict[str, dict[str, Service]]:
    """Operations on each MDT and their service time. Releases before 2.14 report no times, and give nothing."""
    targets = Numbers[str]()
    at = targets.of(counters.target[which].tolist(), int(which.sum()))
    samples, usec = (sums(at, each.numbers[which], len(targets)) for each in (done.samples, done.sums))
    timed = [(name, done.samples.names.index(name), column) for column, name in enumerate(done.sums.names)
             if name in done.samples.names and name not in DATA_OPERATIONS]
    return {target: {name: Service(float(samples[row, count]), float(usec[row, column]))
                     for name, count, column in timed if samples[row, count] and usec[row, column]}
            for target, row in targets.items()}


def of_unknown_start(counters: CounterTable, done: Increases, before: Reading, after: Reading,
                     lost: dict[str, float]) -> Bools:
    """Which new entries may be older than the earlier reading, which lacks them. They count from now on. Exporters omit
    idle jobs. The kernel before 2.17 skips entries while it drops others, and an old one may get another name: so an
    entry without a start, as all have before 2.15, is new only if its target lost none lately.
    """
    lost.update(dict.fromkeys(done.lost & after.targets, after.time))
    whole = before.complete & after.complete - {
        target for target, time in lost.items() if before.time - LONGEST_SECONDS <= time <= after.time}
    found: Bools = done.is_new & ((counters.start != "") | ~counters.targets_that(whole.__contains__))
    found[found] = [began_before(start, before.time) for start in counters.start[found].tolist()]
    return found


def began_before(start: str, time: float) -> bool:
    """Whether an entry may have begun before a time. True if it has no start, or one that cannot be parsed."""
    seconds = seconds_of(start)
    return seconds is None or seconds < time - _CLOCK_SLACK_SECONDS


def seconds_of(start: str) -> float | None:
    """The start of an entry; None if it is not known."""
    try:
        seconds = float(start)
    except ValueError:
        return None
    return seconds if isfinite(seconds) else None
