"""Readings from the expositions of lustre-exporter.

``prometheus_client`` needs some 20 microseconds for a line. Exporters of large sites print hundreds of thousands of
lines, and tierd needs a few families of them. An invalid line raises ValueError: tierd uses nothing from an exporter
that prints one impossible value.

Labels are split in two parts, so that each part is parsed once: the subject (file system, target, job) and the rest
(operation, direction, bucket), in which the lines of one job differ. The second part begins with bytes that no label
value can contain, because quotation marks in values are escaped.

>>> text = b'lustre_job_operations_total{fs="l",target="OST0001",jobid="a",operation="read"} 4096'
>>> [(name, head, tail, value)] = samples(text, (b"lustre_job_",))
>>> name, labels_of(head), labels_of(tail), value
('lustre_job_operations_total', {'fs': 'l', 'target': 'OST0001', 'jobid': 'a'}, {'operation': 'read'}, 4096.0)
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from sys import intern
from typing import TypeVar

import numpy as np

from tierd.loads import Columns, Numbers, Pair, texts
from tierd.sense.counters import Cells, CounterTable
from tierd.sense.http_client import SourceError
from tierd.sense.readings import (
    FULL_FRACTION,
    UNKNOWN_RECOVERY,
    ChangelogState,
    Reading,
    ServiceCounters,
    Stamp,
    is_ost,
    number_of,
)

LONGEST_LABEL_BYTES = 1024
"""Limit on a label. The longest job id takes 163 bytes: 31 bytes as ``\\xHH`` with doubled backslashes, and a number.

A far longer label does not come from lustre-exporter.
"""
_LONGEST_LINE_BYTES = 8 * LONGEST_LABEL_BYTES
_LABEL = re.compile(rb'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_PLAIN = {"n": "\n"}


def samples(body: bytes, beginnings: tuple[bytes, ...]) -> Iterator[tuple[str, bytes, bytes, float]]:
    """Name, both parts of the labels, and value of each sample whose line has one of these beginnings.

    Raises ValueError for an invalid line. It is one long function for speed.
    """
    names: dict[bytes, tuple[str, bytes]] = {}
    for line in body.split(b"\n"):
        if not line.startswith(beginnings):
            continue
        start, end = line.find(b"{"), line.rfind(b"} ")
        if not 0 < start < end:
            raise ValueError(f"not a sample: {excerpt(line)}")
        if len(line) > _LONGEST_LINE_BYTES:
            raise ValueError(f"a line of {len(line)} bytes, beginning {excerpt(line)}")
        name = line[:start]
        known = names.get(name)
        if known is None:
            known = names[name] = name.decode("ascii", "replace"), tail_of_family(name)
        try:
            value = float(line[end + 2:])
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise ValueError(f"impossible value: {excerpt(line, 200)}")
        at = line.find(known[1], start, end) if known[1] else -1
        if at < 0:
            yield known[0], line[start + 1:end], b"", value
        else:
            yield known[0], line[start + 1:at], line[at + 1:end], value


def tail_of_family(name: bytes) -> bytes:
    """The bytes that begin the second part of the labels in a family; empty if it has none."""
    if name.startswith(b"lustre_job_operation"):
        return b',operation="'
    return b',direction="' if name.startswith(b"lustre_job_io_size") else b""


def labels_of(text: bytes) -> Mapping[str, str]:
    """Labels from the text in the braces. Raises ValueError."""
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None:
            raise ValueError(f"not labels: {excerpt(text)}")
        name, value = match[1].decode("ascii"), match[2].decode("utf-8", "replace")
        if len(match[2]) > LONGEST_LABEL_BYTES:
            raise ValueError(f"a label {name} of {len(match[2])} bytes, beginning {excerpt(match[2])}")
        if name in found:
            raise ValueError(f"duplicate label {name}: {excerpt(text)}")
        found[name] = _ESCAPE.sub(lambda m: _PLAIN.get(m[1], m[1]), value) if "\\" in value else value
        at = match.end()
    return found


def excerpt(text: bytes, most: int = 80) -> str:
    """The beginning of received bytes, escaped for messages."""
    return ascii(text[:most].decode("utf-8", "replace")) + ("…" if len(text) > most else "")


MAX_ENTRIES = 200_000
"""Maximum number of pairs of job and target. More would need too much memory, and are more likely a mistake."""
MAX_TAILS = 10_000
CONDITION_FAMILIES = ("lustre_ost_degraded", "lustre_ost_recovering", "lustre_mdt_recovering", "lustre_ost_size_bytes",
              "lustre_ost_avail_bytes")
CHANGELOG_RECORDS, CHANGELOG_MASK = "lustre_changelog_records_total", "lustre_changelog_mask_info"
CHANGELOG_BEHIND = "lustre_changelog_user_behind_records"
CHANGELOG_USERS = (CHANGELOG_BEHIND, "lustre_changelog_user_idle_seconds")
CHANGELOG_FAMILIES = (CHANGELOG_RECORDS, CHANGELOG_MASK, *CHANGELOG_USERS)
NONROTATIONAL = "lustre_osd_nonrotational"
DATA_LIMITS = ("lustre_lod_dom_stripe_size_bytes", "lustre_lod_dom_stripe_size_current_bytes")
"""Families with the limit of data on an MDT. The later one is the limit at present, where the release reports it."""
READ_AT = "lustre_jobs_read_timestamp_seconds"
"""When the counters of a target were read, by the clock of its server."""
COLLECTOR_SUCCESS = "lustre_exporter_collector_success"
JOBID = "jobid"
"""Label of the Lustre job."""
Key = TypeVar("Key", str, float)
Tail = tuple[str, str, float]
"""Operation, direction and upper bound. A family without one of them has "" or 0."""
_NEEDED_COLLECTORS = ("jobs", "ost", "recovery")
"""Collectors that must succeed for a complete view."""
READ_COLLECTORS = (*_NEEDED_COLLECTORS, "changelogs", "lod", "osd", "services")
"""Collectors that tierd reads. Others, such as those of clients, take most of the time of a loaded server."""
_USEC = 1e6
_BYTES = {"lustre_job_read_bytes_total": "read_bytes", "lustre_job_write_bytes_total": "write_bytes"}


class ChangelogSamples:
    """Samples of the changelog of one MDT."""

    __slots__ = ("kept_records", "last_index", "types", "users")

    def __init__(self) -> None:
        self.last_index: int | None = None
        self.kept_records: int | None = None
        self.users: set[str] = set()
        self.types: frozenset[str] | None = None

    def put(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Add one sample."""
        if name == CHANGELOG_RECORDS:
            self.last_index = int(value)
        elif name == CHANGELOG_MASK:
            self.types = frozenset(labels.get("mask", "").split(","))
        else:
            self.users.add(number_of(labels.get("user", "")))
            if name == CHANGELOG_BEHIND:
                self.kept_records = max(self.kept_records or 0, int(value))

    def state(self) -> ChangelogState | None:
        """The state of the changelog; None if its last index is missing."""
        known = self.last_index is not None
        return ChangelogState(self.last_index, frozenset(self.users), self.types, self.kept_records) if known else None


class ExporterView:
    """Samples of one exporter, sorted by job and target."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.failed = ""
        self.targets: set[str] = set()
        self._rows: Numbers[Pair] = Numbers()
        self._samples, self._sums, self._buckets = Cells(), Cells(), Cells()
        self.gauges: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self.read_at: dict[str, float] = {}
        """When the counters of each target were read, by the clock of its server; epoch seconds."""
        self._changelogs: defaultdict[str, ChangelogSamples] = defaultdict(ChangelogSamples)
        self._heads: dict[bytes, tuple[str, int | None]] = {}
        self._tails: dict[bytes, Tail] = {}

    def add(self, name: str, head: bytes, tail: bytes, value: float) -> None:
        """Add one sample. Raises ValueError for a duplicate."""
        target, row = self._heads.get(head) or self._named(head)
        if row is not None:
            self.put(row, name, self._tails.get(tail) or self._tail(tail), value)
        elif target and name == READ_AT:
            _put_once(self.read_at, target, value, name)
        elif target and name in CONDITION_FAMILIES:
            _put_once(self.gauges[target], name, value, target)
        elif target and name in CHANGELOG_FAMILIES:
            self.changelog(target).put(name, labels_of(head), value)
        elif name == COLLECTOR_SUCCESS and not value and labels_of(head).get("collector") in _NEEDED_COLLECTORS:
            self.failed = labels_of(head)["collector"]

    def put(self, row: int, name: str, tail: Tail, value: float) -> None:
        """Add one sample of a job on a target. Other families are ignored."""
        operation, direction, upper = tail
        if name == "lustre_job_io_size_bytes_bucket":
            self._buckets.put(row, (direction, upper), value)
        elif name == "lustre_job_operations_total":
            self._samples.put(row, operation, value)
        elif name == "lustre_job_operation_seconds_total":
            self._sums.put(row, operation, value * _USEC)
        elif name in _BYTES:
            self._sums.put(row, _BYTES[name], value)
        elif name == "lustre_job_io_size_bytes_count":
            self._samples.put(row, f"{direction}_bytes", value)

    def row(self, target: str, job: str) -> int:
        """The row of a job on a target, added if missing. Raises ValueError if there are too many."""
        found = self._rows.get((target, job))
        if found is None:
            if len(self._rows) >= MAX_ENTRIES:
                raise ValueError(f"more than {MAX_ENTRIES} pairs of job and target")
            found = self._rows[intern(target), intern(job)]  # readings share one string
            self.targets.add(target)
        return found

    def _named(self, head: bytes) -> tuple[str, int | None]:
        labels = labels_of(head)
        target = f"{labels.get('fs', '')}-{labels['target']}" if "target" in labels else ""
        if len(self._heads) > 2 * MAX_ENTRIES:
            raise ValueError("too many sets of labels")
        if target:
            self.targets.add(target)
        job = labels.get(JOBID)
        slot = target, self.row(target, job) if target and job is not None else None
        self._heads[head] = slot
        return slot

    def _tail(self, tail: bytes) -> Tail:
        if len(self._tails) > MAX_TAILS:
            raise ValueError(f"more than {MAX_TAILS} operations and sizes")
        found = self._tails[tail] = tail_of(tail)
        return found

    def changelog(self, target: str) -> ChangelogSamples:
        """The changelog samples of an MDT, added if missing."""
        return self._changelogs[target]

    def changelogs(self) -> dict[str, ChangelogState]:
        """Changelog users and masks of the MDTs."""
        return {target: state for target, log in self._changelogs.items() if (state := log.state()) is not None}

    def conditions(self) -> dict[str, str]:
        """Why the throughput of a target cannot be compared now; healthy targets are left out."""
        return conditions_of(self.targets, self.gauges)

    def counters(self) -> CounterTable:
        """Counters of each job on each target, in the units of ``job_stats``. Raises ValueError for a duplicate."""
        rows = len(self._rows)
        return CounterTable(texts([target for target, _ in self._rows]), texts([job for _, job in self._rows]),
                            texts([""] * rows), self._samples.columns(rows), self._sums.columns(rows),
                            sizes=sizes_of(self._buckets.columns(rows, np.nan)))


def sizes_of(buckets: Columns[tuple[str, float]]) -> Columns[int]:
    """RPCs by upper bound of their size, from cumulative counts by direction and upper bound; NaN if missing."""
    uppers = tuple(sorted({int(upper) for _, upper in buckets.names if upper != math.inf}))
    found = np.zeros((len(buckets.numbers), len(uppers)))
    below = dict.fromkeys([direction for direction, _ in buckets.names], np.zeros(len(found)))
    for direction, upper in sorted(buckets.names):
        cumulative = buckets[direction, upper]
        there = ~np.isnan(cumulative)
        if upper != math.inf:
            more = np.maximum(cumulative - below[direction], 0)
            found[:, uppers.index(int(upper))] += np.where(there, more, 0)
        below[direction] = np.where(there, cumulative, below[direction])
    return Columns(uppers, found)


def conditions_of(targets: set[str], gauges: defaultdict[str, dict[str, float]]) -> dict[str, str]:
    """Why the throughput of each target cannot be compared, from its gauges."""
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
    """Operation, direction and upper bound from the second part of the labels. Raises ValueError.

    >>> tail_of(b'direction="read",le="4096"')
    ('', 'read', 4096.0)
    """
    labels = labels_of(tail)
    return labels.get("operation", ""), labels.get("direction", ""), bucket_bound(labels.get("le", "0"))


def bucket_bound(text: str) -> float:
    """Upper bound of a bucket, +Inf included. Raises ValueError for anything else."""
    upper = float(text)
    if not upper >= 0:
        raise ValueError(f"not the upper bound of a bucket: {text[:80]!r}")
    return upper


def _put_once(place: dict[Key, float], key: Key, value: float, name: str) -> None:
    if key in place:
        raise ValueError(f"{name}: duplicate series ({key})")
    place[key] = value


TEXT_TYPES = ("text/plain",)
ACCEPT_TEXT = "text/plain; version=0.0.4"
JOB_FAMILIES = ("lustre_job_operations_total", "lustre_job_operation_seconds_total", "lustre_job_read_bytes_total",
                "lustre_job_write_bytes_total", "lustre_job_io_size_bytes_bucket", "lustre_job_io_size_bytes_count")
TARGET_FAMILIES = ("lustre_jobs",)
"""Families that exist for every target with job statistics. The same collector gives them at the same time."""
_BEGINNINGS = (b"lustre_job", b"lustre_ost_", b"lustre_mdt_", b"lustre_changelog_", COLLECTOR_SUCCESS.encode())


def reading_of(body: bytes, origin: str, time: float) -> Reading:
    """The targets of one exporter. Raises SourceError naming the exporter."""
    view = ExporterView(origin)
    try:
        for name, head, tail, value in samples(body, _BEGINNINGS):
            view.add(name, head, tail, value)
        counters = view.counters()
        is_flash, limits = flash_devices(body), data_limits(body)
        service = metadata_service(body, frozenset(target for target in view.targets if not is_ost(target)))
    except ValueError as error:
        raise SourceError(f"{origin}: invalid data: {error}") from error
    if b"lustre_" not in body:
        raise SourceError(f"{origin}: not an exposition of lustre-exporter")
    if not body.endswith(b"\n"):
        raise SourceError(f"{origin}: the answer is cut short: its last line has no end")
    if view.failed:
        raise SourceError(f"{origin}: its collector {view.failed} failed: incomplete counters are not used")
    return Reading(
        time, counters, frozenset(view.targets), view.conditions(), omits_idle_jobs=True,
        changelogs=view.changelogs(), is_flash=is_flash, data_limits=limits,
        services={} if service is None else {origin: service},
        stamps={target: Stamp(origin, seconds) for target, seconds in view.read_at.items()})


def flash_devices(body: bytes) -> dict[str, bool]:
    """Whether the device of a target is flash, by full target name. Raises ValueError for an invalid line."""
    return {target: value == 1 for target, value in _of_family(body, NONROTATIONAL) if value in {0, 1}}


def data_limits(body: bytes) -> dict[str, int]:
    """Maximum bytes of a new component with data on each MDT. Raises ValueError for an invalid line."""
    return {target: int(value) for family in DATA_LIMITS for target, value in _of_family(body, family)
            if 0 <= value < float("inf")}


def _of_family(body: bytes, family: str) -> Iterator[tuple[str, float]]:
    """Target and value of the samples of one family with few lines.

    A search for them is faster than a look at each line of a large exposition.
    """
    line = family.encode() + b"{"
    begin, last = body.find(line), body.rfind(line)
    if begin >= 0:
        for _, head, _, value in samples(body[begin : body.find(b"\n", last) + 1], (line,)):
            labels = labels_of(head)
            yield f"{labels.get('fs', '')}-{labels.get('target', '')}", value


_SERVICE_FIELDS = {
    "lustre_service_threads_started": "threads", "lustre_service_threads_max": "threads_max",
    "lustre_service_requests_total": "requests", "lustre_service_request_wait_seconds_total": "wait_usec",
    "lustre_service_active_at_start_total": "active", "lustre_service_queue_depth_at_start_total": "queued",
}


def metadata_service(body: bytes, mdts: frozenset[str] = frozenset()) -> ServiceCounters | None:
    """The service for metadata requests of these MDTs; None if there is none. Raises ValueError for an invalid line."""
    found: dict[str, float] = {}
    for family, field in _SERVICE_FIELDS.items():
        line = f'{family}{{service="mdt"}} '.encode()
        begin = body.find(line)
        if begin < 0 or (begin and body[begin - 1:begin] != b"\n"):
            return None
        value = float(body[begin + len(line):body.find(b"\n", begin)].split(b" ")[0])
        if not 0 <= value < 1e300:
            raise ValueError(f"{family}: {value}")
        found[field] = value * 1e6 if field == "wait_usec" else value
    return ServiceCounters(**found, mdts=mdts) if found["requests"] else None
