"""Two readings of counters make a window. Counters restart: a job that comes back begins at zero."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from tierd.model import JobLoad, NamespaceLoad, Window
from tierd.sense.counters import JobCounters
from tierd.sense.ost_load import DATA, FREE, quick

__all__ = ("JobCounters", "Reading", "window")

UNKNOWN_RECOVERY = "recovery not to be seen"
"""The condition of a target of which nobody says that it is not in recovery: debugfs is closed to whoever looks."""
FULL_FRACTION = 0.05
"""Below this share of free space an OST allocates slowly, and its speed says nothing about neighbours."""

IMPLAUSIBLE = "counters that make no sense"
"""The condition of a target whose counters differ by no number, by less than nothing, or by more than can be."""
MOST_BYTES, MOST_OPERATIONS = 1e13, 1e8
"""What one job could do on one target in a second, and more."""

MOST_NAME = 256
"""Characters of a job id, of which a kernel gives 64 bytes at the most."""

_CLOCK_SLACK_SECONDS = 5.0
"""A server's clock and ours may differ by this much without a new entry being taken for an old one."""


@dataclass(frozen=True, slots=True)
class ChangelogState:
    """What an MDT says of its changelog (``mdd.*.changelog_users``)."""

    last_index: int | None
    """Of the last record written."""
    users: frozenset[str]
    """Registered readers, without the names they were registered with: ``cl1``."""
    recorded: frozenset[str] | None = None
    """Types of records that are written, as Lustre prints them (``CREAT``); None where nobody shows the mask."""


def number_of(user: str) -> str:
    """A user without the name it was registered with.

    >>> number_of("cl1-tierd")
    'cl1'
    """
    return user.partition("-")[0]


@dataclass(frozen=True, slots=True)
class Reading:
    """What one look at the counters of a file system gave."""

    time: float
    jobs: Mapping[tuple[str, str], JobCounters]
    """By (full target name, job), OSTs and MDTs alike."""
    targets: frozenset[str]
    """Targets that were read, those without any job too."""
    conditions: Mapping[str, str] = field(default_factory=dict)
    hides_idle: bool = False
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
        elif counters.stood_still(earlier):
            continue  # most jobs on most targets are idle: that is seen quickly
        elif is_ost(target) and len(job) <= MOST_NAME and (load := quick(
                target, job, earlier, counters, MOST_OPERATIONS * seconds, MOST_BYTES * seconds)):
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
    """Whether an entry that was not there in the reading before tells nothing about the time since."""
    # overlooked last time, so its age says nothing about this window
    return began_before(new.start, before.time - _CLOCK_SLACK_SECONDS) or (
        after.hides_idle and not new.start)  # new, or back after hours with the counts of a life: the next will tell


def between(before: JobCounters | None, after: JobCounters, job: str, seconds: float) -> JobCounters | str | None:
    """What a job did; None for nothing, or the condition of the target where its counters make no sense."""
    if before is not None and before.samples == after.samples:
        return None
    done = difference(before, after)
    if done is after and before is not None and before.start and before.start == after.start:
        return IMPLAUSIBLE  # an entry that did not begin anew, and counts less than before
    if not any(done.samples.values()):
        return None
    return done if len(job) <= MOST_NAME and plausible(done, seconds) else IMPLAUSIBLE


def plausible(done: JobCounters, seconds: float) -> bool:
    """Whether a job could have done this. An exporter may lie: what is no number compares with nothing."""
    return (within(done.samples.values(), MOST_OPERATIONS * seconds)
            and within(done.sums.values(), MOST_BYTES * seconds)
            and within(done.sizes.values(), MOST_OPERATIONS * seconds))


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
        target, job,
        read_bytes=done.sums.get("read_bytes", 0.0), write_bytes=done.sums.get("write_bytes", 0.0),
        reads=samples.get("read_bytes") or samples.get("read", 0.0),
        writes=samples.get("write_bytes") or samples.get("write", 0.0),
        other_operations=sum(n for name, n in samples.items() if name not in DATA and name not in FREE),
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
    other = sum(count for name, count in total.items() if name not in (*known, *DATA))
    return NamespaceLoad(job, total["open"], total["close"], total["mknod"], total["unlink"], other)
