"""Readings from Prometheus, or from a server with the same query API (Thanos, Mimir, VictoriaMetrics).

Counters are queried as raw samples with their timestamps (a range selector in an instant query), not as rates. So
windows are as exact as from the exporters themselves. An answer with warnings is partial and is not used.

Prometheus scrapes exporters at different moments. A reading is of one moment: the last scrape of the target whose
last scrape is the oldest. Counters of the other targets are interpolated linearly between two samples.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import urlencode

from tierd.clock import Clock
from tierd.config.sense import PrometheusSettings
from tierd.loads import Pair
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
    TARGET_FAMILIES,
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
            found = result_of(json.loads(answer.body))
        except (ValueError, RecursionError) as error:
            raise SourceError(f"{redacted(url)}: {error}") from error
        try:
            return [series_of(each) for each in found]
        except ValueError as error:
            raise SourceError(f"{redacted(url)}: invalid data: {error}") from error


def result_of(document: object) -> list[object]:
    """The series in an answer. Raises ValueError for an error, for warnings, and for a partial answer.

    >>> result_of({"status": "success", "data": {"resultType": "matrix", "result": []}})
    []
    >>> result_of({"status": "success", "warnings": ["store b is down"], "data": {}})
    Traceback (most recent call last):
    ...
    ValueError: a partial answer: 'store b is down'
    """
    if not isinstance(document, dict):
        raise ValueError("not an answer of a query API")
    if document.get("status") != "success":
        raise ValueError(f"{str(document.get('errorType', 'error'))[:80]!r}: {str(document.get('error', ''))[:300]!r}")
    if document.get("warnings"):
        raise ValueError(f"a partial answer: {str(document['warnings'][0])[:300]!r}")
    data = document.get("data")
    if document.get("isPartial") or (isinstance(data, dict) and data.get("isPartial")):
        raise ValueError("a partial answer")
    if not isinstance(data, dict) or data.get("resultType") != "matrix" or not isinstance(data.get("result"), list):
        raise ValueError("no matrix of samples in the answer")
    found: list[object] = data["result"]
    return found


def series_of(document: object) -> Series:
    """One series. Raises ValueError for values that a counter or gauge of lustre-exporter cannot have.

    >>> series_of({"metric": {"__name__": "lustre_jobs", "target": "OST0000"}, "values": [[1795000000.5, "3"]]})
    Series(name='lustre_jobs', labels={'target': 'OST0000'}, points=((1795000000.5, 3.0),))
    """
    if not isinstance(document, dict):
        raise ValueError(f"not a series: {str(document)[:80]!r}")
    try:
        labels = {str(key): str(value) for key, value in document["metric"].items()}
        points: tuple[Point, ...] = tuple([(float(at), float(value)) for at, value in document.get("values", ())])
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a series: {type(error).__name__}: {error}") from error
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


Point = tuple[float, float]
"""Epoch seconds and value."""
Origin = tuple[tuple[tuple[str, str], ...], str]
"""Labels of the scrape: ``instance``, a replica, a cluster; and Prometheus' own ``job``, a scrape configuration."""
_OURS = frozenset({"fs", "target", "job", "operation", "direction", "le", JOBID})


class Series(NamedTuple):
    """Samples of one label set."""

    name: str
    labels: Mapping[str, str]
    points: Sequence[Point]
    """Samples in the order of time."""


class _Scrapes(NamedTuple):
    """Origin and times of the scrapes of a target."""

    origin: Origin
    times: Sequence[float]


def oldest_last_scrape(about: Iterable[Series]) -> tuple[float, str]:
    """Time of the oldest last scrape over all targets, and its target; 0 and "" without targets."""
    scrapes = _scrapes(about)
    oldest = min(scrapes, key=lambda target: (scrapes[target].times[-1], target), default="")
    return (scrapes[oldest].times[-1] if oldest else 0.0), oldest


def merged_reading(about: Iterable[Series], jobs: Sequence[Series]) -> Reading:
    """The reading at the time of ``oldest_last_scrape``. Raises ValueError for a duplicate series. ``about`` has the
    series of whole targets, ``jobs`` the series of jobs on targets.
    """
    whole = sorted((series for series in about if series.points and "target" in series.labels),
                   key=lambda series: series.points[-1][0])
    scrapes, (time, _) = _scrapes(whole), oldest_last_scrape(whole)
    collected = ExporterView()
    collected.targets.update(scrapes)
    # not those of the target's previous server and of a second scrape configuration, nor those without a job:
    # Prometheus stores no empty label
    own = [(target, job, series) for series in jobs if series.points
           and (target := target_of(series.labels)) in scrapes and (job := series.labels.get(JOBID)) is not None
           and origin_of(series.labels) == scrapes[target].origin]
    begun: dict[Pair, float] = {}
    for target, job, series in own:
        begun[target, job] = min(series.points[0][0], begun.get((target, job), math.inf))
    # the kernel before 2.17 skips entries while it drops others, and a new one may be an old one with another name
    lost = {target for target, _, series in own if series.points[-1][0] < scrapes[target].times[-1]}
    complete = _complete_scrapes(whole, {target: seen for target, seen in scrapes.items() if target not in lost})
    for target, job, series in own:
        points, times = series.points, scrapes[target].times
        begins = bisect_left(times, begun[target, job])
        if begins and times[begins:begins + 1] == [points[0][0]] and (target, times[begins - 1]) in complete:
            points = [(times[begins - 1], 0.0), *points]
        value = value_at(points, time, times)
        if value is not None:
            collected.put(collected.row(target, job), series.name, tail_of(series.labels), value)
    for target, (_, times) in scrapes.items():
        if (target, times[max(0, bisect_right(times, time) - 1)]) in complete:
            collected.gauges[target][HIDDEN_JOBS[0]] = 0.0
    for series in whole:  # sorted by time: the newest value wins
        target, (at, last) = target_of(series.labels), series.points[-1]
        if series.name in CONDITION_FAMILIES and time - at < _GAUGE_SECONDS:
            collected.gauges[target][series.name] = last
        elif series.name in DEVICE_FAMILIES:
            collected.devices[series.name][target] = last
    _changelogs(whole, collected)
    return collected.reading(time, _stamps(whole, scrapes, time))


CLOCK_STEP_SECONDS = 10.0
"""Difference between the times of two scrapes and of two readings that shows that a clock was set. A scrape takes less:
this is the usual timeout."""


def _stamps(about: Iterable[Series], scrapes: Mapping[str, _Scrapes], time: float) -> dict[str, Stamp]:
    """When the counters at a time were read. Both are interpolated in the same way, so that their rates are exact."""
    found = {}
    for one in about:
        seen = scrapes.get(target_of(one.labels)) if one.name == READ_AT else None
        if (seen is not None and seen.origin == origin_of(one.labels)
                and not any(abs((later - at) - (value - before)) > CLOCK_STEP_SECONDS
                            for (at, before), (later, value) in pairwise(one.points))):
            seconds = value_at(one.points, time, seen.times)
            if seconds is not None:
                found[target_of(one.labels)] = Stamp(f"{seen.origin[0]}", seconds)
    return found


def _complete_scrapes(about: Iterable[Series], scrapes: Mapping[str, _Scrapes]) -> set[tuple[str, float]]:
    """Targets, and times of scrapes that have all their jobs."""
    own = [(target, one.points) for one in about if one.name in HIDDEN_JOBS
           and (target := target_of(one.labels)) in scrapes and scrapes[target].origin == origin_of(one.labels)]
    return {(target, at) for target, points in own for at, _ in points} - {
        (target, at) for target, points in own for at, hidden in points if hidden}


def _changelogs(about: Iterable[Series], collected: ExporterView) -> None:
    """Changelog users and masks of the last scrape. A user missing from it is no longer registered."""
    series = [one for one in about if one.name in CHANGELOG_FAMILIES]
    last = {target_of(one.labels): one.points[-1][0] for one in series if one.name == CHANGELOG_RECORDS}
    for one in series:  # series of the target's previous server come first, and are older
        target = target_of(one.labels)
        if one.points[-1][0] == last.get(target):
            collected.put_changelog(target, one.name, one.labels, one.points[-1][1])


_GAUGE_SECONDS = 90.0
"""Conditions older than the counters by more than this are ignored."""


def origin_of(labels: Mapping[str, str]) -> Origin:
    """Which scrape of which exporter gave a series."""
    return tuple(sorted([label for label in labels.items() if label[0] not in _OURS])), labels.get("job", "")


def _scrapes(series: Iterable[Series]) -> dict[str, _Scrapes]:
    """The origin that scraped each target last. After a failover, samples of the old server remain for a while."""
    ordered = sorted(((one.points[-1][0], origin_of(one.labels), one) for one in series
                      if one.points and one.name in TARGET_FAMILIES and "target" in one.labels),
                     key=lambda each: each[:2])
    return {target_of(one.labels): _Scrapes(origin, [at for at, _ in one.points]) for _, origin, one in ordered}


def value_at(points: Sequence[Point], time: float, scrapes: Sequence[float]) -> float | None:
    """A counter at a time between two samples; None if the series begins later, or has ended.

    >>> points = [(10.0, 100.0), (20.0, 200.0)]
    >>> value_at(points, 15.0, [10.0, 20.0]), value_at(points, 20.0, [10.0, 20.0])
    (150.0, 200.0)
    >>> value_at(points, 5.0, [0.0, 10.0]), value_at(points, 30.0, [10.0, 20.0, 30.0])
    (None, None)

    If the next sample is lower, the counter restarted at an unknown time in between. It counts as unchanged until then.

    >>> value_at([(10.0, 100.0), (20.0, 3.0)], 19.0, [10.0, 20.0])
    100.0
    """
    after = bisect_right(points, (time, float("inf")))
    if not after:
        return None
    at, value = points[after - 1]
    if after == len(points):
        last_scrape = scrapes[max(0, bisect_right(scrapes, time) - 1)]
        return value if at >= last_scrape else None
    next_at, next_value = points[after]
    return value if next_value < value else value + (next_value - value) * (time - at) / (next_at - at)


class PrometheusCounters:
    """Reads counters from one query API."""

    def __init__(self, api: QueryApi, stale_seconds: float) -> None:
        self._api = api
        self._stale_seconds = stale_seconds
        self._last: Reading | None = None
        """The last reading, used until the next scrape: querying the many series of jobs again gives nothing new."""

    def __call__(self) -> Reading:
        """Counters as of the last scrape of all targets. Raises SourceError."""
        now = self._api.clock.now()
        try:
            about = self._series((*CONDITION_FAMILIES, *TARGET_FAMILIES, READ_AT, *CHANGELOG_FAMILIES,
                                  *DEVICE_FAMILIES, *HIDDEN_JOBS), (), now)
            time, oldest = oldest_last_scrape(about)
            if oldest and now - time > self._stale_seconds:
                raise SourceError(f"{oldest} was last scraped {now - time:.0f} s ago: incomplete counters are not used")
            if self._last is None or self._last.time != time:
                self._last = merged_reading(about, self._jobs(about, now))
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
