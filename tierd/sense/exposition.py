"""Readings from the expositions of lustre-exporter.

``prometheus_client`` needs about 20 microseconds for a line. Exporters of large sites print hundreds of thousands of
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
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from sys import intern
from urllib.parse import urlencode, urlsplit

import numpy as np

from tierd.loads import Columns, Numbers, Pair, texts
from tierd.sense.counters import Cells, CounterTable
from tierd.sense.http_client import HttpClient, Response, SourceError, StatusError
from tierd.sense.readings import ChangelogState, Reading, ServiceCounters, Stamp, condition, is_ost, number_of

LONGEST_LABEL_BYTES = 1024
"""Limit on a label. The longest job id takes 163 bytes: 31 bytes as ``\\xHH`` with doubled backslashes, and a number.

A far longer label does not come from lustre-exporter.
"""
_LONGEST_LINE_BYTES = 8 * LONGEST_LABEL_BYTES
MAX_VALUE = 1e300
"""Values from here on are not counters. Sums and products of smaller ones are finite."""
_LABEL = re.compile(rb'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_PLAIN = {"n": "\n"}


def samples(body: bytes, beginnings: tuple[bytes, ...]) -> Iterator[tuple[str, bytes, bytes, float]]:
    """Name, both parts of the labels, and value of each sample whose line has one of these beginnings. Raises
    ValueError for an invalid line. It is one long function for speed.
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
        if not 0 <= value < MAX_VALUE:  # refuses NaN too
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
CHANGELOG_FAMILIES = (CHANGELOG_RECORDS, CHANGELOG_MASK, CHANGELOG_BEHIND, "lustre_changelog_user_idle_seconds")
NONROTATIONAL = "lustre_osd_nonrotational"
DATA_LIMITS = ("lustre_lod_dom_stripe_size_bytes", "lustre_lod_dom_stripe_size_current_bytes")
"""Families with the limit of data on an MDT. The later one is the limit at present, where the release reports it."""
DEVICE_FAMILIES = (NONROTATIONAL, *DATA_LIMITS)
"""Families about the devices and limits of targets."""
READ_AT = "lustre_jobs_read_timestamp_seconds"
"""When the counters of a target were read, by the clock of its server."""
HIDDEN_JOBS = ("lustre_jobs_idle", "lustre_jobs_beyond_limit")
"""Families with the number of jobs of a target that have no series. The second one exists where a limit is set."""
COLLECTOR_SUCCESS = "lustre_exporter_collector_success"
JOBID = "jobid"
"""Label of the Lustre job."""
Tail = tuple[str, str, float]
"""Operation, direction and upper bound. A family without one of them has "" or 0."""
_NEEDED_COLLECTORS = ("jobs", "ost", "recovery")
"""Collectors that must succeed for a complete view."""
READ_COLLECTORS = (*_NEEDED_COLLECTORS, "changelogs", "lod", "osd", "services")
"""Collectors that tierd reads. Others, such as those of clients, take most of the time of a loaded server."""
_USEC = 1e6
STARTED = "lustre_job_start_timestamp_seconds"
_BYTES = {"lustre_job_read_bytes_total": "read_bytes", "lustre_job_write_bytes_total": "write_bytes"}
_SERVICE_FIELDS = {
    "lustre_service_threads_started": "threads", "lustre_service_threads_max": "threads_max",
    "lustre_service_requests_total": "requests", "lustre_service_request_wait_seconds_total": "wait_usec",
    "lustre_service_active_at_start_total": "active"}
"""Families of a service, and the field of ``ServiceCounters`` for each."""


class ExporterView:
    """Samples of one exporter, sorted by job and target."""

    def __init__(self) -> None:
        self.failed = ""
        self.targets: set[str] = set()
        self._rows: Numbers[Pair] = Numbers()
        self._samples, self._sums, self._buckets, self._starts = Cells(), Cells(), Cells(), Cells()
        self.gauges: defaultdict[str, dict[str, float]] = defaultdict(dict)
        """Families of conditions and times, by target and family."""
        self.devices: defaultdict[str, dict[str, float]] = defaultdict(dict)
        """Families about devices, by family and target."""
        self._changelogs: defaultdict[str, ChangelogState] = defaultdict(lambda: ChangelogState(None, frozenset()))
        self._service: dict[str, float] = {}
        self._heads: dict[bytes, tuple[str, int | None]] = {}
        self._tails: dict[bytes, Tail] = {}

    def add(self, name: str, head: bytes, tail: bytes, value: float) -> None:
        """Add one sample. Raises ValueError for a duplicate."""
        if name in DEVICE_FAMILIES:
            self.devices[name][target_of(labels_of(head))] = value
            return
        target, row = self._heads.get(head) or self._named(head)
        if row is not None:
            self.put(row, name, self._tails.get(tail) or self._tail(tail), value)
        elif target and (name == READ_AT or name in CONDITION_FAMILIES or name in HIDDEN_JOBS):
            if name in self.gauges[target]:
                raise ValueError(f"{name}: duplicate series ({target})")
            self.gauges[target][name] = value
        elif target and name in CHANGELOG_FAMILIES:
            self.put_changelog(target, name, labels_of(head), value)
        elif name in _SERVICE_FIELDS and labels_of(head).get("service") == "mdt":
            self._service[_SERVICE_FIELDS[name]] = value
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
        elif name == STARTED:
            self._starts.put(row, "", value)
        elif name == "lustre_job_io_size_bytes_count":
            self._samples.put(row, f"{direction}_bytes", value)

    def put_changelog(self, target: str, name: str, labels: Mapping[str, str], value: float) -> None:
        """Add one sample of the changelog of an MDT."""
        known = self._changelogs[target]
        if name == CHANGELOG_RECORDS:
            known = replace(known, last_index=int(value))
        elif name == CHANGELOG_MASK:
            known = replace(known, recorded=frozenset(labels.get("mask", "").split(",")))
        else:
            kept = max(known.kept_records or 0, int(value)) if name == CHANGELOG_BEHIND else known.kept_records
            known = replace(known, users=known.users | {number_of(labels.get("user", ""))}, kept_records=kept)
        self._changelogs[target] = known

    def row(self, target: str, job: str) -> int:
        """The row of a job on a target, added if missing. Raises ValueError if there are too many."""
        found = self._rows.get((target, job))
        if found is None:
            if len(self._rows) >= MAX_ENTRIES:
                raise ValueError(f"more than {MAX_ENTRIES} pairs of job and target")
            found = self._rows[intern(target), intern(job)]  # readings share one string
        return found

    def _named(self, head: bytes) -> tuple[str, int | None]:
        labels = labels_of(head)
        target = target_of(labels) if "target" in labels else ""
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
        return self._tails.setdefault(tail, tail_of(labels_of(tail)))

    def counters(self) -> CounterTable:
        """Counters of each job on each target, in the units of ``job_stats``. Raises ValueError for a duplicate."""
        rows = len(self._rows)
        starts = [str(start or "") for start in self._starts.columns(rows)[""].tolist()]
        return CounterTable(texts([target for target, _ in self._rows]), texts([job for _, job in self._rows]),
                            texts(starts), self._samples.columns(rows), self._sums.columns(rows),
                            sizes=sizes_of(self._buckets.columns(rows, np.nan)))

    def reading(self, time: float, stamps: Mapping[str, Stamp], origin: str = "") -> Reading:
        """All samples as a reading. Raises ValueError for a duplicate."""
        conditions = {target: why for target in self.targets if (why := self._condition(self.gauges[target]))}
        services = {}
        if len(self._service) == len(_SERVICE_FIELDS) and self._service["requests"]:
            mdts = frozenset(target for target in self.targets if not is_ost(target))
            counted = {**self._service, "wait_usec": self._service["wait_usec"] * _USEC}
            services[origin] = ServiceCounters(**counted, mdts=mdts)
        complete = frozenset(target for target in self.targets if HIDDEN_JOBS[0] in self.gauges[target]
                             and not any(self.gauges[target].get(name) for name in HIDDEN_JOBS))
        return Reading(
            time, self.counters(), frozenset(self.targets), conditions,
            changelogs={target: log for target, log in self._changelogs.items() if log.last_index is not None},
            is_flash={target: value == 1 for target, value in self.devices[NONROTATIONAL].items() if value in {0, 1}},
            data_limits={target: int(value) for family in DATA_LIMITS
                         for target, value in self.devices[family].items()},
            services=services, stamps=stamps, complete=complete)

    @staticmethod
    def _condition(gauges: Mapping[str, float]) -> str:
        recovering = gauges.get("lustre_ost_recovering", gauges.get("lustre_mdt_recovering"))
        return condition(gauges.get("lustre_ost_degraded"), None if recovering is None else recovering > 0,
                         gauges.get("lustre_ost_size_bytes"), gauges.get("lustre_ost_avail_bytes"))


def sizes_of(buckets: Columns[tuple[str, float]]) -> Columns[int]:
    """RPCs by upper bound of their size, from cumulative counts by direction and upper bound; NaN if missing."""
    uppers = tuple(sorted({int(upper) for _, upper in buckets.names if upper != math.inf}))
    found = np.zeros((len(buckets.numbers), len(uppers)))
    below = dict.fromkeys([direction for direction, _ in buckets.names], np.zeros(len(found)))
    for direction, upper in sorted(buckets.names):
        cumulative = buckets[direction, upper]
        known = ~np.isnan(cumulative)
        if upper != math.inf:
            more = np.maximum(cumulative - below[direction], 0)
            found[:, uppers.index(int(upper))] += np.where(known, more, 0)
        below[direction] = np.where(known, cumulative, below[direction])
    return Columns(uppers, found)


def target_of(labels: Mapping[str, str]) -> str:
    """Full target name."""
    return f"{labels.get('fs', '')}-{labels.get('target', '')}"


def tail_of(labels: Mapping[str, str]) -> Tail:
    """Operation, direction and upper bound of a bucket, +Inf included. Raises ValueError.

    >>> tail_of({"direction": "read", "le": "4096"})
    ('', 'read', 4096.0)
    """
    upper = float(labels.get("le", "0"))
    if not upper >= 0:
        raise ValueError(f"not the upper bound of a bucket: {labels['le'][:80]!r}")
    return labels.get("operation", ""), labels.get("direction", ""), upper


JOB_FAMILIES = ("lustre_job_operations_total", "lustre_job_operation_seconds_total", "lustre_job_read_bytes_total",
                "lustre_job_write_bytes_total", "lustre_job_io_size_bytes_bucket", "lustre_job_io_size_bytes_count",
                STARTED)
_BEGINNINGS = (b"lustre_job", b"lustre_ost_", b"lustre_mdt_", b"lustre_changelog_", COLLECTOR_SUCCESS.encode(),
               *(f"{name}{{".encode() for name in (*DEVICE_FAMILIES, *_SERVICE_FIELDS)))


def reading_of(body: bytes, origin: str, time: float) -> Reading:
    """The targets of one exporter. Raises SourceError naming the exporter."""
    view = ExporterView()
    try:
        for name, head, tail, value in samples(body, _BEGINNINGS):
            view.add(name, head, tail, value)
        found = view.reading(time, {target: Stamp(origin, gauges[READ_AT]) for target, gauges in view.gauges.items()
                                    if READ_AT in gauges}, origin)
    except ValueError as error:
        raise SourceError(f"{origin}: invalid data: {error}") from error
    if b"lustre_" not in body:
        raise SourceError(f"{origin}: not an exposition of lustre-exporter")
    if not body.endswith(b"\n"):
        raise SourceError(f"{origin}: the answer is cut short: its last line has no end")
    if view.failed:
        raise SourceError(f"{origin}: its collector {view.failed} failed: incomplete counters are not used")
    return found


TEXT_TYPES = ("text/plain",)
BAD_REQUEST = 400
"""Status of an answer to a request for a collector that the exporter lacks."""


class SelectiveClient:
    """Gets the expositions of exporters, with the needed collectors only.

    Those of clients take most of the time of a loaded server. A URL with a query of its own is left alone. An exporter
    refuses a request for a collector that is disabled there: from then on it is asked for all that it has.
    """

    def __init__(self, client: HttpClient, needed: Collection[str]) -> None:
        self._client = client
        self._query = urlencode([("collect[]", name) for name in sorted(needed)])
        self._whole: set[str] = set()
        """URLs of exporters that lack a needed collector."""

    def get(self, url: str) -> Response:
        """The exposition. Raises SourceError."""
        if not urlsplit(url).query and url not in self._whole:
            try:
                return self._client.send("GET", url, TEXT_TYPES, query=self._query)
            except StatusError as error:
                if error.status != BAD_REQUEST:
                    raise
            self._whole.add(url)
        return self._client.send("GET", url, TEXT_TYPES)
