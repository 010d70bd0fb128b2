"""What one exporter shows, sorted by job and target: its job counters, and why a target's speed says nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from sys import intern
from typing import TypeVar

from tierd.sense.exposition import labels_of
from tierd.sense.readings import FULL_FRACTION, UNKNOWN_RECOVERY, ChangelogState, JobCounters, number_of

MOST_ENTRIES = 200_000
"""Jobs times targets. Beyond it a view is not to be afforded, and more likely a mistake."""
MOST_TAILS = 10_000
CONDITIONS = ("lustre_ost_degraded", "lustre_ost_recovering", "lustre_mdt_recovering", "lustre_ost_size_bytes",
              "lustre_ost_avail_bytes")
CHANGELOG_RECORDS, CHANGELOG_MASK = "lustre_changelog_records_total", "lustre_changelog_mask_info"
CHANGELOG_USERS = ("lustre_changelog_user_behind_records", "lustre_changelog_user_idle_seconds")
CHANGELOGS = (CHANGELOG_RECORDS, CHANGELOG_MASK, *CHANGELOG_USERS)
SUCCESS = "lustre_exporter_collector_success"
JOBID, OLD_JOBID = "jobid", "job"
"""Label of the Lustre job, now and in exporters of the version before. Servers are upgraded one by one."""
Key = TypeVar("Key", str, float)
Tail = tuple[str, str, float]
"""Operation, direction and upper bound; empty and 0 where a family has none."""
_NEEDED = ("jobs", "ost", "recovery")
"""Collectors of the exporter without which a view is not whole."""
_USEC = 1e6
_BYTES = {"lustre_job_read_bytes_total": "read_bytes", "lustre_job_write_bytes_total": "write_bytes"}


class Entry:
    """One job on one target, while it is being read."""

    __slots__ = ("buckets", "samples", "sums")

    def __init__(self) -> None:
        self.samples: dict[str, float] = {}
        self.sums: dict[str, float] = {}
        self.buckets: dict[str, dict[float, float]] = {}

    def put(self, name: str, tail: Tail, value: float) -> None:
        """Take one sample. Raises ValueError for one that came before; families not needed are left out."""
        operation, direction, upper = tail
        if name == "lustre_job_io_size_bytes_bucket":
            place = self.buckets.get(direction)
            if place is None:
                place = self.buckets[direction] = {}
            _once(place, upper, value, name)
        elif name == "lustre_job_operations_total":
            _once(self.samples, operation, value, name)
        elif name == "lustre_job_operation_seconds_total":
            _once(self.sums, operation, value * _USEC, name)
        elif name in _BYTES:
            _once(self.sums, _BYTES[name], value, name)
        elif name == "lustre_job_io_size_bytes_count":
            _once(self.samples, f"{direction}_bytes", value, name)

    def counters(self) -> JobCounters:
        """As the parameter files have it."""
        sizes: defaultdict[int, float] = defaultdict(float)
        for cumulative in self.buckets.values():
            below = 0.0
            for upper in sorted(cumulative):
                if upper != float("inf"):
                    sizes[int(upper)] += max(0.0, cumulative[upper] - below)
                below = cumulative[upper]
        return JobCounters(self.samples, self.sums, dict(sizes))


class Changelog:
    """One MDT's, while it is being read."""

    __slots__ = ("last_index", "types", "users")

    def __init__(self) -> None:
        self.last_index: int | None = None
        self.users: set[str] = set()
        self.types: frozenset[str] | None = None

    def put(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Take one sample."""
        if name == CHANGELOG_RECORDS:
            self.last_index = int(value)
        elif name == CHANGELOG_MASK:
            self.types = frozenset(labels.get("mask", "").split(","))
        else:
            self.users.add(number_of(labels.get("user", "")))

    def state(self) -> ChangelogState | None:
        """What is known of it; None where the MDT did not say where it ends."""
        known = self.last_index is not None
        return ChangelogState(self.last_index, frozenset(self.users), self.types) if known else None


class Collected:
    """Samples of one exporter, sorted by job and target."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.failed = ""
        self.targets: set[str] = set()
        self.entries: dict[tuple[str, str], Entry] = {}
        self.gauges: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self._changelogs: defaultdict[str, Changelog] = defaultdict(Changelog)
        self._heads: dict[bytes, tuple[str, Entry | None]] = {}
        self._tails: dict[bytes, Tail] = {}

    def add(self, name: str, head: bytes, tail: bytes, value: float) -> None:
        """Take one sample. Raises ValueError for one that came before."""
        target, entry = self._heads.get(head) or self._named(head)
        if entry is not None:
            entry.put(name, self._tails.get(tail) or self._tail(tail), value)
        elif target and name in CONDITIONS:
            _once(self.gauges[target], name, value, target)
        elif target and name in CHANGELOGS:
            self.changelog(target).put(name, labels_of(head), value)
        elif name == SUCCESS and not value and labels_of(head).get("collector") in _NEEDED:
            self.failed = labels_of(head)["collector"]

    def entry(self, target: str, job: str) -> Entry:
        """Where samples of a job on a target go. Raises ValueError when there are too many."""
        found = self.entries.get((target, job))
        if found is None:
            if len(self.entries) >= MOST_ENTRIES:
                raise ValueError(f"more than {MOST_ENTRIES} pairs of job and target")
            found = self.entries[intern(target), intern(job)] = Entry()  # one string for all readings
            self.targets.add(target)
        return found

    def _named(self, head: bytes) -> tuple[str, Entry | None]:
        labels = labels_of(head)
        target = f"{labels.get('fs', '')}-{labels['target']}" if "target" in labels else ""
        if len(self._heads) > 2 * MOST_ENTRIES:
            raise ValueError("too many sets of labels")
        if target:
            self.targets.add(target)
        job = labels.get(JOBID, labels.get(OLD_JOBID))
        slot = target, self.entry(target, job) if target and job is not None else None
        self._heads[head] = slot
        return slot

    def _tail(self, tail: bytes) -> Tail:
        if len(self._tails) > MOST_TAILS:
            raise ValueError(f"more than {MOST_TAILS} operations and sizes")
        found = self._tails[tail] = tail_of(tail)
        return found

    def changelog(self, target: str) -> Changelog:
        """Where samples of an MDT's changelog go."""
        return self._changelogs[target]

    def changelogs(self) -> dict[str, ChangelogState]:
        """What MDTs say of their changelogs."""
        return {target: state for target, log in self._changelogs.items() if (state := log.state()) is not None}

    def conditions(self) -> dict[str, str]:
        """Why a target's speed says nothing at the moment; healthy targets are left out."""
        return conditions_of(self.targets, self.gauges)

    def counters(self) -> dict[tuple[str, str], JobCounters]:
        """What each job did on each target, in the units of the parameter files."""
        return {key: entry.counters() for key, entry in self.entries.items() if entry.samples or entry.sums}


def conditions_of(targets: set[str], gauges: defaultdict[str, dict[str, float]]) -> dict[str, str]:
    """Why each target's speed says nothing, from its gauges."""
    found = {}
    for target in targets:
        seen = gauges[target]
        recovering = seen.get("lustre_ost_recovering", seen.get("lustre_mdt_recovering"))
        size, avail = seen.get("lustre_ost_size_bytes", 0.0), seen.get("lustre_ost_avail_bytes")
        if seen.get("lustre_ost_degraded"):
            found[target] = "degraded"
        elif recovering is None or recovering:
            found[target] = UNKNOWN_RECOVERY if recovering is None else "in recovery"
        elif size and avail is not None and avail < FULL_FRACTION * size:
            found[target] = "full"
    return found


def tail_of(tail: bytes) -> Tail:
    """Operation, direction and upper bound from the second half of the labels. Raises ValueError.

    >>> tail_of(b'direction="read",le="4096"')
    ('', 'read', 4096.0)
    """
    labels = labels_of(tail)
    return labels.get("operation", ""), labels.get("direction", ""), upper_of(labels.get("le", "0"))


def upper_of(text: str) -> float:
    """Upper bound of a bucket, +Inf included. Raises ValueError for what is none."""
    upper = float(text)
    if not upper >= 0:
        raise ValueError(f"not the upper bound of a bucket: {text[:80]!r}")
    return upper


def _once(place: dict[Key, float], key: Key, value: float, name: str) -> None:
    if key in place:
        raise ValueError(f"{name}: the same series twice ({key})")
    place[key] = value
