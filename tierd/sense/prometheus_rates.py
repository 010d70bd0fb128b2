"""Throughput of one target or one job over time, from Prometheus, for a page that somebody waits for."""

from __future__ import annotations

from collections import defaultdict

from tierd.act.journal.rates import TARGETS
from tierd.rates import COLUMNS, Point
from tierd.sense.exposition import JOBID
from tierd.sense.http_client import SourceError, redacted
from tierd.sense.prometheus import QueryApi, quoted
from tierd.text import short_name

ANSWER_SECONDS = 5.0
"""Limit of the time for an answer: a choice. Without it the journal has the history."""
_OF_TARGET = {"read_bytes": ("lustre_ost_read_bytes_total", ""), "write_bytes": ("lustre_ost_write_bytes_total", ""),
              "operations": ("lustre_ost_operations_total", 'operation=~"read|write"'),
              "metadata_operations": ("lustre_mdt_operations_total", "")}
_OF_JOB = {"read_bytes": ("lustre_job_read_bytes_total", 'target=~"OST.*"'),
           "write_bytes": ("lustre_job_write_bytes_total", 'target=~"OST.*"'),
           "operations": ("lustre_job_operations_total", 'target=~"OST.*"'),
           "metadata_operations": ("lustre_job_operations_total", 'target=~"MDT.*",operation!~"read|write"')}
"""Family of each column, and more matchers."""


class PrometheusRates:
    """Reads rates from one query API."""

    def __init__(self, api: QueryApi) -> None:
        self._api = api

    def of_name(self, kind: str, name: str, since: float, until: float, step: int) -> list[Point]:
        """The points of a target or job, oldest first; none if its series are not there. Raises SourceError."""
        form = {"query": self.query(kind, name, step), "start": f"{since:.3f}", "end": f"{until:.3f}",
                "step": str(step)}
        found: dict[float, list[float]] = defaultdict(lambda: [0.0] * len(COLUMNS))
        try:
            for series in self._api.series("/api/v1/query_range", form):
                column = COLUMNS.index(series.labels.get("column", ""))
                for at, value in series.points:
                    found[at][column] = value
        except ValueError as error:
            raise SourceError(f"{redacted(self._api.settings.url)}: invalid data: {error}") from error
        return [(at, *numbers) for at, numbers in sorted(found.items())]  # type: ignore[misc]

    def query(self, kind: str, name: str, step: int) -> str:
        """The query of all columns: one series each, with its name as a label."""
        families, label, value = ((_OF_TARGET, "target", short_name(name)) if kind == TARGETS
                                  else (_OF_JOB, JOBID, name))
        window = f"[{max(step, round(2 * self._api.settings.lookback_seconds))}s]"
        common = f"fs={quoted(self._api.fsname)},{label}={quoted(value)}"
        if self._api.settings.matchers:
            common += f",{self._api.settings.matchers}"
        return " or ".join(
            f'label_replace(sum(rate({family}{{{common}{"," * bool(more)}{more}}}{window})),"column","{column}","","")'
            for column, (family, more) in families.items())
