"""A reading from what Prometheus scraped, or anything that answers as it does (Thanos, Mimir, VictoriaMetrics).

Counters are asked for as raw samples with their timestamps (a range selector in an instant query), not as rates: so it
is known when each was true, and windows are as exact as from the exporters themselves. Answers with warnings are
partial, and half a view is none.

Exporters are scraped at different moments. A reading is of one: the last scrape of the target whose last scrape is the
oldest; counters of the others are put to that moment on a straight line between two samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Gt

from tierd.clock import Clock
from tierd.sense.access import Access, SourceError
from tierd.sense.collected import CHANGELOGS, CONDITIONS
from tierd.sense.exporters import JOB_FAMILIES, TARGET_FAMILIES
from tierd.sense.http import Client, shown
from tierd.sense.query_api import asked, escaped, quoted, series_of
from tierd.sense.readings import Reading
from tierd.sense.scraped import Series, merged, moment


@dataclass(frozen=True)
class Settings:
    """Where Prometheus is, and what of it is ours."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    url: str = ""
    """``http://prometheus:9090``, with its path prefix if it has one. Empty: it is not asked."""
    matchers: str = ""
    """More label matchers, for a Prometheus of several clusters: ``cluster="a"``."""
    lookback_seconds: Annotated[float, Ge(10)] = 75.0
    """How far back samples are asked for: two scrapes and a half."""
    batch_targets: Annotated[int, Gt(0)] = 16
    """Targets in one query. Fewer make smaller answers and more of them."""
    access: Access = field(default_factory=lambda: Access(most_bytes=32 << 20))
    learn_seconds: Annotated[float, Ge(0)] = 86400.0
    """How far back it is asked, once after a start, what jobs usually get: through the recording rules of
    ``alerts/rules/interference.yml``. 0: not at all."""
    learn_timeout_seconds: Annotated[float, Gt(0)] = 20.0
    """So long that may take in all; what is not whole by then is not used."""


class PrometheusCounters:
    """Asks one query API."""

    def __init__(self, settings: Settings, fsname: str, clock: Clock, client: Client, timeout_seconds: float,
                 stale_seconds: float, skew_seconds: float) -> None:
        self._settings = settings
        self._fsname = fsname
        self._clock = clock
        self._client = client
        self._timeout_seconds = timeout_seconds
        self._stale_seconds = stale_seconds
        self._skew_seconds = skew_seconds
        self._last: Reading | None = None
        """Until the next scrape there is nothing new, and jobs, which are many, are not asked for again."""

    def __call__(self) -> Reading:
        """Counters as of the last scrape of all targets. Raises SourceError."""
        now = self._clock.now()
        try:
            about = list(self._series((*CONDITIONS, *TARGET_FAMILIES, *CHANGELOGS), (), now))
            time, oldest = moment(about)
            if oldest and now - time > self._stale_seconds:
                raise SourceError(f"{oldest} was last scraped {now - time:.0f} s ago: half a view is none")
            if self._last is None or self._last.time != time:
                self._last = merged(about, self._jobs(about, now))
        except ValueError as error:
            raise SourceError(f"{shown(self._settings.url)}: not to be believed: {error}") from error
        return self._last

    def _jobs(self, about: Sequence[Series], now: float) -> list[Series]:
        """Series of jobs, a batch of targets at a time."""
        targets = sorted({series.labels["target"] for series in about if "target" in series.labels})
        jobs: list[Series] = []
        for first in range(0, len(targets), self._settings.batch_targets):
            jobs += self._series(JOB_FAMILIES, targets[first:first + self._settings.batch_targets], now)
        return jobs

    def _series(self, families: Sequence[str], targets: Sequence[str], now: float) -> Iterator[Series]:
        matchers = [f'__name__=~"{"|".join(families)}"', f"fs={quoted(self._fsname)}"]
        if targets:
            matchers.append(f"target=~{quoted('|'.join(map(escaped, targets)))}")
        if self._settings.matchers:
            matchers.append(self._settings.matchers)
        window = f"[{int(self._settings.lookback_seconds * 1000)}ms]"
        for series in self._asked("{" + ",".join(matchers) + "}" + window, now):
            yield series_of(series)

    def _asked(self, query: str, now: float) -> list[Any]:
        url = self._settings.url.rstrip("/") + "/api/v1/query"
        form = {"query": query, "time": f"{now:.3f}", "timeout": f"{self._timeout_seconds:g}s"}
        return asked(self._client, url, form, now, self._skew_seconds)
