"""Many series of samples, scraped at their own moments, as one reading of one moment."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tierd.sense.collected import (
    CHANGELOG_RECORDS,
    CHANGELOGS,
    CONDITIONS,
    JOBID,
    OLD_JOBID,
    Collected,
    Tail,
    conditions_of,
    upper_of,
)
from tierd.sense.exporters import TARGET_FAMILIES
from tierd.sense.readings import Reading

Point = tuple[float, float]
"""Epoch seconds and value."""
Origin = tuple[tuple[str, str], ...]
"""Labels that say who scraped whom: ``instance``, a replica, a cluster."""

STORED_OLD_JOBID = f"exported_{OLD_JOBID}"
"""What Prometheus makes of the label of older exporters, as its own ``job`` names the scrape configuration."""
_JOB_LABELS = (JOBID, STORED_OLD_JOBID, OLD_JOBID)
"""Labels that may name the Lustre job, best first. The last is of older exporters scraped with ``honor_labels``."""
_OURS = frozenset({"fs", "target", "job", "operation", "direction", "le", *_JOB_LABELS})


class Series(NamedTuple):
    """Samples of one label set."""

    name: str
    labels: Mapping[str, str]
    points: Sequence[Point]
    """By time."""


class _Scrapes(NamedTuple):
    """Where a target is seen, and when."""

    origin: Origin
    job: str
    """Prometheus' own ``job``: the name of a scrape configuration."""
    times: Sequence[float]


def moment(about: Iterable[Series]) -> tuple[float, str]:
    """The last scrape of the target that was scraped longest ago, and that target; 0 and "" without any."""
    scrapes = _scrapes(s for s in about if s.points and s.name in TARGET_FAMILIES and "target" in s.labels)
    oldest = min(scrapes, key=lambda target: (scrapes[target].times[-1], target), default="")
    return (scrapes[oldest].times[-1] if oldest else 0.0), oldest


def merged(about: Iterable[Series], jobs: Sequence[Series]) -> Reading:
    """The reading of that moment. Raises ValueError for a series that comes twice.

    ``about`` are series of targets as a whole, ``jobs`` those of jobs on them.
    """
    whole = sorted((series for series in about if series.points and "target" in series.labels),
                   key=lambda series: series.points[-1][0])
    scrapes = _scrapes(series for series in whole if series.name in TARGET_FAMILIES)
    time, _ = moment(whole)
    collected = Collected("Prometheus")
    collected.targets.update(scrapes)
    for (target, job, name, tail), points in _counters(jobs, scrapes).items():
        value = value_at(points, time, scrapes[target].times)
        if value is not None:
            collected.entry(target, job).put(name, tail, value)
    gauges: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for series in whole:  # the latest word counts
        if series.name in CONDITIONS and time - series.points[-1][0] < _GAUGE_SECONDS:
            gauges[target_of(series.labels)][series.name] = series.points[-1][1]
    _changelogs(whole, collected)
    return Reading(time, collected.counters(), frozenset(scrapes), conditions_of(set(scrapes), gauges), hides_idle=True,
                   changelogs=collected.changelogs())


_Counter = tuple[str, str, str, Tail]
"""Target, Lustre job, family, and the labels that differ within a family."""


def _counters(jobs: Sequence[Series], scrapes: Mapping[str, _Scrapes]) -> dict[_Counter, Sequence[Point]]:
    """Points of each counter, whatever label names the job. Raises ValueError for a series that comes twice.

    Left out are series of a server that had the target before, and what a second scrape configuration shows again.
    """
    renamed: set[str] = set()
    found: dict[str, dict[_Counter, Sequence[Point]]] = {label: {} for label in _JOB_LABELS}
    named = [one for one in jobs if JOBID in one.labels or STORED_OLD_JOBID in one.labels]
    for series in named if len(named) == len(jobs) else (*named, *_unnamed(jobs)):
        labels = series.labels
        target = target_of(labels)
        seen = scrapes.get(target)
        if seen is None or _origin(labels) != seen.origin:
            continue  # of another server, where the target was before
        label = JOBID if JOBID in labels else STORED_OLD_JOBID if STORED_OLD_JOBID in labels else OLD_JOBID
        names_scrape = labels.get("job", "") == seen.job
        if label != OLD_JOBID:
            renamed.add(target)
            if not names_scrape:
                continue  # scraped twice, by two configurations
        elif names_scrape and target in renamed:
            continue  # Prometheus stores no empty label: this Lustre job has no name
        tail = labels.get("operation", ""), labels.get("direction", ""), upper_of(labels.get("le", "0"))
        counter = target, labels[label], series.name, tail
        if counter in found[label]:
            raise ValueError(f"{series.name}: the same series twice ({target}, {labels[label]!a})")
        found[label][counter] = series.points
    counters = found[JOBID]
    for label in (STORED_OLD_JOBID, OLD_JOBID):
        for counter, points in found[label].items():
            counters[counter] = _joined(counters[counter], points) if counter in counters else points
    return counters


def _unnamed(jobs: Iterable[Series]) -> Iterator[Series]:
    """Series of jobs with the label ``job`` alone: of older exporters, scraped with ``honor_labels``."""
    return (one for one in jobs if one.labels.keys().isdisjoint((JOBID, STORED_OLD_JOBID)) and OLD_JOBID in one.labels)


def _joined(better: Sequence[Point], other: Sequence[Point]) -> Sequence[Point]:
    """One counter from its series under two labels, as of an exporter that was just upgraded.

    >>> _joined([(30.0, 3.0)], [(10.0, 1.0), (20.0, 2.0)])
    [(10.0, 1.0), (20.0, 2.0), (30.0, 3.0)]

    Where they overlap, the better label counts: a second scrape configuration shows the counter again.

    >>> _joined([(10.0, 1.0), (20.0, 2.0)], [(5.0, 0.5), (15.0, 1.5)])
    [(5.0, 0.5), (10.0, 1.0), (20.0, 2.0)]
    """
    if not better or not other:
        return better or other
    first, last = better[0][0], better[-1][0]
    return [*[p for p in other if p[0] < first], *better, *[p for p in other if p[0] > last]]


def _changelogs(about: Iterable[Series], collected: Collected) -> None:
    """What MDTs said of their changelogs in the last scrape. A user that is not in it is one no more."""
    series = [one for one in about if one.name in CHANGELOGS]
    last = {target_of(one.labels): one.points[-1][0] for one in series if one.name == CHANGELOG_RECORDS}
    for one in series:  # those of a server that had the target before come first, and are older
        target = target_of(one.labels)
        if one.points[-1][0] == last.get(target):
            collected.changelog(target).put(one.name, one.labels, one.points[-1][1])


_GAUGE_SECONDS = 90.0
"""A condition said so long before the counters says nothing of them."""


def target_of(labels: Mapping[str, str]) -> str:
    """Full target name."""
    return f"{labels.get('fs', '')}-{labels['target']}"


def _origin(labels: Mapping[str, str]) -> Origin:
    return tuple(sorted([label for label in labels.items() if label[0] not in _OURS]))


def _scrapes(series: Iterable[Series]) -> dict[str, _Scrapes]:
    """For each target the origin that saw it last: after a failover the old server's samples are still there."""
    found: dict[str, _Scrapes] = {}
    for one in series:
        target = target_of(one.labels)
        seen = _Scrapes(_origin(one.labels), one.labels.get("job", ""), [at for at, _ in one.points])
        known = found.get(target)
        if known is None or (seen.times[-1], seen.origin, seen.job) > (known.times[-1], known.origin, known.job):
            found[target] = seen
    return found


def value_at(points: Sequence[Point], time: float, scrapes: Sequence[float]) -> float | None:
    """A counter at a moment between two samples; None when the series had not begun, or was over by then.

    >>> points = [(10.0, 100.0), (20.0, 200.0)]
    >>> value_at(points, 15.0, [10.0, 20.0]), value_at(points, 20.0, [10.0, 20.0])
    (150.0, 200.0)
    >>> value_at(points, 5.0, [0.0, 10.0]), value_at(points, 30.0, [10.0, 20.0, 30.0])
    (None, None)

    Between a sample and a lower one the counter began anew, nobody knows when; it stands where it stood until then.

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
