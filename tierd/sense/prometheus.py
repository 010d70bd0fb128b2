"""Readings from Prometheus, or from a server with the same query API (Thanos, Mimir, VictoriaMetrics).

Counters are queried as raw samples with their timestamps (a range selector in an instant query), not as rates. So
windows are as exact as from the exporters themselves. An answer with warnings is partial and is not used.

Prometheus scrapes exporters at different moments. A reading has the last scrape of each target, with its time, and the
next one comes when all targets have been scraped again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from tierd.clock import Clock
from tierd.config.sense import PrometheusSettings
from tierd.sense.exposition import (
    CHANGELOG_FAMILIES,
    CHANGELOG_RECORDS,
    CONDITION_FAMILIES,
    DEVICE_FAMILIES,
    HIDDEN_JOBS,
    JOB_FAMILIES,
    JOBID,
    LONGEST_LABEL_BYTES,
    READ_AT,
    ExporterView,
    tail_of,
    target_of,
)
from tierd.sense.http_client import HttpClient, SourceError, redacted
from tierd.sense.readings import Reading, Stamp

JSON_TYPES = ("application/json",)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
"""Type of queries: they may be too long for a URL."""
BATCH_TARGETS = 16
"""Targets in one query about jobs. Fewer make smaller answers and more of them. A choice."""
Point = tuple[float, float]
"""Epoch seconds and value."""


@dataclass(frozen=True, slots=True)
class QueryApi:
    """A server that knows the metrics of one file system."""

    settings: PrometheusSettings
    fsname: str
    clock: Clock
    client: HttpClient
    timeout_seconds: float
    skew_seconds: float

    def selector(self, families: Iterable[str], label: str = "", values: Sequence[str] = ()) -> str:
        """Selects the series of some families, and of some values of a label."""
        matchers = [f'__name__=~"{"|".join(families)}"', f"fs={quoted(self.fsname)}"]
        if values:
            matchers.append(f"{label}=~{quoted('|'.join(map(escaped, values)))}")
        if self.settings.matchers:
            matchers.append(self.settings.matchers)
        return "{" + ",".join(matchers) + "}"

    def at(self, query: str, time: float) -> list[Series]:
        """The series of a query at one time. Raises SourceError as ``series`` does."""
        return self.series("/api/v1/query", {"query": query, "time": f"{time:.3f}"})

    def over(self, query: str, begin: float, end: float, step_seconds: float) -> list[Series]:
        """The series of a query at several times. Raises SourceError as ``series`` does."""
        return self.series("/api/v1/query_range", {"query": query, "start": f"{begin:.3f}", "end": f"{end:.3f}",
                                                   "step": f"{step_seconds:.3f}"})

    def error(self, sentence: str) -> SourceError:
        """The error that says this about the server."""
        return SourceError(f"{redacted(self.settings.url)}: {sentence}")

    def series(self, path: str, form: Mapping[str, str]) -> list[Series]:
        """The series of a query. Raises SourceError for a partial answer, impossible values and a wrong clock."""
        url, now = self.settings.url.rstrip("/") + path, self.clock.now()
        query = urlencode({**form, "timeout": f"{self.timeout_seconds:g}s"}).encode()  # the server gives up too
        answer = self.client.send("POST", url, JSON_TYPES, query, FORM)
        if answer.date is not None and abs(answer.date - now) > self.skew_seconds:
            raise SourceError(f"{redacted(url)}: its clock differs from this node's by {answer.date - now:+.0f} s: "
                              "repair the time service")
        try:
            return result_of(answer.body)
        except ValueError as error:
            raise SourceError(f"{redacted(url)}: {error}") from error


class _Series(Struct, frozen=True):
    metric: dict[str, str]
    values: tuple[Point, ...] = ()


class _Data(Struct, frozen=True, rename="camel"):
    result_type: str = ""
    result: tuple[_Series, ...] = ()


class _Answer(Struct, frozen=True, rename="camel"):
    status: str = ""
    error_type: str = "error"
    error: str = ""
    warnings: tuple[str, ...] | None = None
    is_partial: bool = False
    data: _Data | None = None


def result_of(body: bytes) -> list[Series]:
    """The series in an answer. Raises ValueError for an error, for warnings, for a partial answer, and for values that
    a counter or gauge of lustre-exporter cannot have.

    >>> result_of(b'''{"status": "success", "data": {"resultType": "matrix", "result": [
    ...     {"metric": {"__name__": "lustre_jobs", "target": "OST0000"}, "values": [[1795000000.5, "3"]]}]}}''')
    [Series(name='lustre_jobs', labels={'target': 'OST0000'}, points=((1795000000.5, 3.0),))]
    >>> result_of(b'{"status": "success", "warnings": ["store b is down"], "data": {}}')
    Traceback (most recent call last):
    ...
    ValueError: a partial answer: 'store b is down'
    """
    try:
        answer = msgspec.json.decode(body, type=_Answer, strict=False)  # values are numbers in text
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not an answer of a query API: {error}") from error
    if answer.status != "success":
        raise ValueError(f"{answer.error_type[:80]!r}: {answer.error[:300]!r}")
    if answer.warnings:
        raise ValueError(f"a partial answer: {answer.warnings[0][:300]!r}")
    if answer.is_partial:
        raise ValueError("a partial answer")
    if answer.data is None or answer.data.result_type != "matrix":
        raise ValueError("no matrix of samples in the answer")
    return [series_of(each.metric, each.values) for each in answer.data.result if each.values]


def series_of(labels: dict[str, str], points: tuple[Point, ...]) -> Series:
    name = labels.pop("__name__", "")
    longest = max(labels.items(), key=lambda item: len(item[1]), default=("", ""))
    if len(longest[1]) > LONGEST_LABEL_BYTES:
        raise ValueError(f"a label {longest[0][:80]!r} of {len(longest[1])} characters")
    before = -math.inf
    for at, value in points:
        if not before < at < math.inf:
            raise ValueError(f"{name[:80]!r}: samples out of order")
        if not 0 <= value < math.inf:
            raise ValueError(f"{name[:80]!r} of {labels.get('target', '')[:80]!r}: impossible value: {value}")
        before = at
    return Series(name, labels, points)


def quoted(text: str) -> str:
    r"""A string of PromQL.

    >>> print(quoted('a"b\\'))
    "a\"b\\"
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def escaped(text: str) -> str:
    r"""Text that stands for itself in a regular expression of PromQL (RE2).

    >>> print(escaped("OST0000"), escaped("a.b|c"))
    OST0000 a\.b\|c
    """
    return "".join(f"\\{c}" if c in r"\.+*?()|[]{}^$" else c for c in text)


Origin = tuple[tuple[tuple[str, str], ...], str]
"""Labels of the scrape: ``instance``, a replica, a cluster; and Prometheus' own ``job``, a scrape configuration."""
_OURS = frozenset({"fs", "target", "job", "operation", "direction", "le", JOBID})


class Series(NamedTuple):
    """Samples of one label set."""

    name: str
    labels: Mapping[str, str]
    points: Sequence[Point]
    """Samples in the order of time, at least one."""


class Scrape(NamedTuple):
    """The last scrape of a target."""

    time: float
    origin: Origin
    read_at: float
    """When the server read the counters, by its own clock."""


def last_scrapes(about: Iterable[Series]) -> dict[str, Scrape]:
    """The last scrape of each target. After a failover, samples of the old server remain for a while."""
    every = sorted((one.points[-1][0], origin_of(one.labels), one.points[-1][1], target_of(one.labels))
                   for one in about if one.name == READ_AT)
    return {target: Scrape(time, origin, read_at) for time, origin, read_at, target in every}


def newest_reading(about: Sequence[Series], jobs: Iterable[Series]) -> Reading:
    """What the last scrape of each target showed. Raises ValueError for a duplicate series. ``about`` has the series of
    whole targets, ``jobs`` the series of jobs on targets.
    """
    scrapes, view, lost = last_scrapes(about), ExporterView(), set[str]()
    view.targets.update(scrapes)
    for series in jobs:
        target, job = target_of(series.labels), series.labels.get(JOBID)  # Prometheus stores no empty label
        # not those of the target's previous server and of a second scrape configuration
        if job is None or target not in scrapes or origin_of(series.labels) != scrapes[target].origin:
            continue
        if series.points[-1][0] < scrapes[target].time:
            lost.add(target)
        else:
            view.put(view.row(target, job), series.name, tail_of(series.labels), series.points[-1][1])
    stamps = {target: Stamp(f"{scrape.origin[0]}", scrape.read_at) for target, scrape in scrapes.items()}
    whole = sorted(about, key=lambda series: series.points[-1][0])
    for series in whole:  # sorted by time: the newest value wins
        target, (at, last) = target_of(series.labels), series.points[-1]
        if series.name in DEVICE_FAMILIES:
            view.devices[series.name][target] = last
        if (scrape := scrapes.get(target)) is None:
            continue
        if series.name in CONDITION_FAMILIES and scrape.time - at < _GAUGE_SECONDS:
            view.gauges[target][series.name] = last
        # the kernel before 2.17 skips entries while it drops others, and a new one may be an old one with another name
        if (series.name in HIDDEN_JOBS and target not in lost
                and (at, origin_of(series.labels)) == (scrape.time, scrape.origin)):
            view.gauges[target][series.name] = last
    _put_changelogs(whole, view)
    return view.reading(min((scrape.time for scrape in scrapes.values()), default=0.0), stamps)


_GAUGE_SECONDS = 90.0
"""Conditions older than the counters by more than this are ignored."""


def _put_changelogs(about: Iterable[Series], view: ExporterView) -> None:
    """Changelog users and masks of the last scrape. A user missing from it is no longer registered."""
    series = [one for one in about if one.name in CHANGELOG_FAMILIES]
    last = {target_of(one.labels): one.points[-1][0] for one in series if one.name == CHANGELOG_RECORDS}
    for one in series:  # series of the target's previous server come first, and are older
        target = target_of(one.labels)
        if one.points[-1][0] == last.get(target):
            view.put_changelog(target, one.name, one.labels, one.points[-1][1])


def origin_of(labels: Mapping[str, str]) -> Origin:
    """Which scrape of which exporter gave a series."""
    return tuple(sorted([label for label in labels.items() if label[0] not in _OURS])), labels.get("job", "")


class PrometheusCounters:
    """Reads counters from one query API."""

    def __init__(self, api: QueryApi, stale_seconds: float) -> None:
        self._api = api
        self._stale_seconds = stale_seconds
        self._last: Reading | None = None
        """The last reading, used until all its targets were scraped again."""
        self._times: Mapping[str, float] = {}
        """When each of them was scraped for it."""

    def __call__(self) -> Reading:
        """Counters as of the last scrape of each target. Raises SourceError."""
        now = self._api.clock.now()
        try:
            about = self._series((*CONDITION_FAMILIES, READ_AT, *CHANGELOG_FAMILIES, *DEVICE_FAMILIES, *HIDDEN_JOBS),
                                 (), now)
            times = {target: scrape.time for target, scrape in last_scrapes(about).items()}
            oldest = min(times, key=lambda target: (times[target], target), default="")
            if oldest and now - times[oldest] > self._stale_seconds:
                raise SourceError(f"{oldest} was last scraped {now - times[oldest]:.0f} s ago: incomplete counters are "
                                  "not used")
            if self._last is None or all(time > self._times.get(target, self._last.time)
                                         for target, time in times.items()):
                self._last, self._times = newest_reading(about, self._jobs(about, now)), times
        except ValueError as error:
            raise self._api.error(f"invalid data: {error}") from error
        return self._last

    def _jobs(self, about: Sequence[Series], now: float) -> list[Series]:
        targets = sorted({series.labels["target"] for series in about if "target" in series.labels})
        return [series for first in range(0, len(targets), BATCH_TARGETS)
                for series in self._series(JOB_FAMILIES, targets[first:first + BATCH_TARGETS], now)]

    def _series(self, families: Sequence[str], targets: Sequence[str], now: float) -> list[Series]:
        window = f"[{int(self._api.settings.lookback_seconds * 1000)}ms]"
        return self._api.at(self._api.selector(families, "target", targets) + window, now)
