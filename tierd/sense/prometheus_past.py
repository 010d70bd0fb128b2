"""Counters of a past time from one query API, as the readings that tierd would have had.

They are asked for at the times of a grid, a chunk of the range at a time, with the time at which the server read the
counters of each target: so rates are exact, whatever lies between grid and scrapes. A target that was not read again is
not seen in a window, and a longer gap gives no window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

from tierd.model import Facts, Window
from tierd.sense.exposition import (
    CONDITION_FAMILIES,
    HIDDEN_JOBS,
    JOB_FAMILIES,
    JOBID,
    NONROTATIONAL,
    READ_AT,
    ExporterView,
    tail_of,
    target_of,
)
from tierd.sense.http_client import SourceError
from tierd.sense.prometheus import BATCH_TARGETS, Origin, QueryApi, Series, origin_of, quoted
from tierd.sense.readings import LONGEST_SECONDS, LONGEST_WINDOWS, Reading, Stamp, is_ost, window

POOLS = "lustre_pool_target_info"
ABOUT = (*CONDITION_FAMILIES, *HIDDEN_JOBS, READ_AT, NONROTATIONAL, POOLS)
JOBS = tuple(family for family in JOB_FAMILIES if family != "lustre_job_operation_seconds_total")
"""Without service times, which the model of interference does not need."""
NEEDED = ("lustre_ost_recovering", "lustre_job_operations_total", "lustre_job_write_bytes_total")
"""And ``READ_AT``."""
LEAST_STEP_SECONDS = 15.0
"""Shortest distance of readings, unless a shorter one is asked for. A choice: a week has 40,320."""
MOST_SAMPLES, MOST_READINGS, FIRST_READINGS = 400_000, 60, 8
"""Samples of a chunk, which take about 100 MB; its readings; and those of the first, whose samples are not known.
Prometheus allows 11,000 points for a series."""
SURVEY_POINTS, SCRAPES_SECONDS = 500, 600
"""Points that show when a file system was scraped, and the time whose scrapes show how often."""
@dataclass(frozen=True, slots=True)
class Found:
    """A file system in a Prometheus, when it was scraped, and how often at the end."""

    fsname: str
    begin: float
    end: float
    scrape_seconds: float


@dataclass(slots=True)
class Seen:
    """What there was, and what was not."""

    windows: int = 0
    gap_seconds: float = 0.0
    targets: set[str] = field(default_factory=set)
    """With counters of jobs."""
    families: set[str] = field(default_factory=set)
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """As the servers show them."""
    flash: set[str] = field(default_factory=set)
    """Targets whose devices do not rotate."""

    def facts(self) -> Facts:
        """Pools; without any, one of all targets that rotate."""
        pools = self.pools or {"": tuple(sorted(filter(is_ost, self.targets - self.flash)))}
        return Facts(pools=pools, flash=frozenset(pool for pool, members in pools.items()
                                                  if self.flash.issuperset(members)))

    def check(self) -> None:
        """Raise SourceError if families are missing that every answer needs."""
        if missing := [family for family in NEEDED if family not in self.families]:
            raise SourceError(f"Prometheus lacks {', '.join(missing)}: let it scrape lustre-exporter on all OSSs, and "
                              "enable job statistics (lctl get_param jobid_var)")


def survey(api: QueryApi, since: float, until: float) -> Found:
    """The file system that the API names, or else the only one. Raises SourceError."""
    step = max(LEAST_STEP_SECONDS, (until - since) / SURVEY_POINTS)
    which = ",".join(filter(None, (api.fsname and f"fs={quoted(api.fsname)}", api.settings.matchers)))
    known = {series.labels.get("fs", ""): series.points for series in api.over(
        f"count by (fs) (last_over_time({READ_AT}{{{which}}}[{step:.0f}s]))", since + step, until, step)}
    if not known:
        raise api.error(f"it has no {READ_AT}{{{which}}} in this time: choose a time that it keeps (--since), "
                          "the right --fs and matchers, or let it scrape lustre-exporter on all servers")
    if len(known) > 1:
        raise api.error(f"it has several file systems; select one: --fs {' | '.join(sorted(known))}")
    (fsname, points), = known.items()
    query = replace(api, fsname=fsname).selector((READ_AT,)) + f"[{step + SCRAPES_SECONDS:.0f}s]"
    scrapes = api.at(query, points[-1][0])
    apart = [after - before for series in scrapes for (before, _), (after, _) in pairwise(series.points)]
    return Found(fsname, max(since, points[0][0] - step), points[-1][0],
                 max(1.0, float(round(median(apart)))) if apart else LEAST_STEP_SECONDS)


@dataclass(slots=True)
class Moment:
    """A time of the grid, as it is read."""

    time: float
    stamps: dict[str, Stamp] = field(default_factory=dict)
    """When the counters of each target were read, and by which exporter. After a failover the newer one counts."""
    origins: dict[str, Origin] = field(default_factory=dict)
    """The scrape that gave them. Another one of the same exporter may give the conditions (``lustre-jobs``)."""
    view: ExporterView = field(default_factory=ExporterView)


class PastWindows:
    """The windows of a range, oldest first."""

    def __init__(self, api: QueryApi, found: Found, step_seconds: float) -> None:
        self._api, self._found, self._step = api, found, step_seconds
        self.seen = Seen()

    def __iter__(self) -> Iterator[tuple[Window, Reading]]:
        """Each window, and the reading at its end. Raises SourceError."""
        before: Reading | None = None
        lost: dict[str, float] = {}
        longest = max(LONGEST_SECONDS, LONGEST_WINDOWS * self._step)
        for after in self._readings():
            if before is not None and after.stamps == before.stamps:
                continue  # Prometheus repeats the last samples for some minutes
            self.seen.targets |= after.targets
            self.seen.flash |= {target for target, flash in after.is_flash.items() if flash}
            seconds = after.time - before.time if before is not None else 0.0
            if before is not None and seconds <= longest:
                self.seen.windows += 1
                yield window(before, after, lost), after
            else:
                self.seen.gap_seconds += seconds
            before = after

    def _readings(self) -> Iterator[Reading]:
        at, count = self._found.begin, FIRST_READINGS
        while at <= self._found.end + self._step:
            count = min(count, int((self._found.end - at) / self._step) + 2)
            moments = [Moment(at + number * self._step) for number in range(count)]
            try:
                samples = self._read(moments)
                yield from [each.view.reading(each.time, each.stamps) for each in moments if each.stamps]
            except ValueError as error:
                raise self._api.error(f"invalid data: {error}") from error
            except SourceError:  # too much for one answer, or for the server
                if count == 1:
                    raise
                count = -(-count // 4)
                continue
            at += count * self._step
            count = max(1, min(MOST_READINGS, 2 * count, MOST_SAMPLES * count // max(samples, 1)))

    def _read(self, moments: Sequence[Moment]) -> int:
        """Read what is known at these times. Returns the number of samples. Raises SourceError or ValueError."""
        about = self._asked(self._api.selector(ABOUT), moments)
        for series, target, origin in about:
            for at, value in self._points(series, moments):
                if series.name == READ_AT and value >= at.stamps.get(target, Stamp("", 0.0)).seconds:
                    at.stamps[target], at.origins[target] = Stamp(f"{origin[0]}", value), origin
                    at.view.targets.add(target)
        self._put_conditions(about, moments)
        samples = sum(len(series.points) for series, *_ in about)
        targets = sorted({target.removeprefix(f"{self._api.fsname}-") for each in moments for target in each.stamps})
        for first in range(0, len(targets), BATCH_TARGETS):
            jobs = self._asked(self._api.selector(JOBS, "target", targets[first:first + BATCH_TARGETS]), moments)
            samples += sum(len(series.points) for series, *_ in jobs)
            for series, target, origin in jobs:
                job, tail = series.labels.get(JOBID), tail_of(series.labels)
                for at, value in self._points(series, moments):
                    if job is not None and at.origins.get(target) == origin:
                        at.view.put(at.view.row(target, job), series.name, tail, value)
        return samples

    def _put_conditions(self, about: Sequence[tuple[Series, str, Origin]], moments: Sequence[Moment]) -> None:
        pools: dict[str, set[str]] = {}
        for series, target, origin in about:
            if series.name == POOLS:
                pools.setdefault(series.labels.get("pool", ""), set()).add(target)
            for at, value in self._points(series, moments):
                if target in at.origins and at.origins[target][0] == origin[0] and (
                        series.name not in HIDDEN_JOBS or at.origins[target] == origin):
                    if series.name == NONROTATIONAL:
                        at.view.devices[NONROTATIONAL][target] = value
                    else:
                        at.view.gauges[target][series.name] = value
        if pools:
            self.seen.pools = {pool: tuple(sorted(members)) for pool, members in pools.items()}

    def _asked(self, query: str, moments: Sequence[Moment]) -> list[tuple[Series, str, Origin]]:
        found = self._api.over(query, moments[0].time, moments[-1].time, self._step)
        self.seen.families.update(series.name for series in found)
        return [(series, target_of(series.labels), origin_of(series.labels)) for series in found]

    def _points(self, series: Series, moments: Sequence[Moment]) -> Iterator[tuple[Moment, float]]:
        for time, value in series.points:
            number = round((time - moments[0].time) / self._step)
            if 0 <= number < len(moments):  # VictoriaMetrics moves the ends of a range to multiples of the step
                yield moments[number], value
