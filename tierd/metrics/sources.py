"""Metrics of sources: unreadable ones, and the age of their data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from tierd.cycle.loop import Daemon
from tierd.sense.ages import SourceState


def heard(daemon: Daemon, sources: Sequence[SourceState]) -> Iterator[Metric]:
    """State of each source, by name."""
    blind = GaugeMetricFamily("tierd_source_blind",
                              "Whether the source cannot be read (1) or can be read (0). tierd does not act while a"
                              " source cannot be read.", labels=("source",))
    for source in ("blind", "changelog"):
        blind.add_metric((("counters" if source == "blind" else source),), float(source in daemon.faults))
    yield blind
    age = GaugeMetricFamily("tierd_source_age_seconds",
                            "Age of the latest data of the source, by the source's own timestamps where it has them."
                            " +Inf means no data yet.", labels=("source",))
    limit = GaugeMetricFamily("tierd_source_age_limit_seconds",
                              "Limit on the age of the source's data. tierd does not act on older data.",
                              labels=("source",))
    stale = GaugeMetricFamily("tierd_source_stale",
                              "Whether the data of the source is too old or the source has an error (1) or not (0).",
                              labels=("source",))
    for state in sources:
        age.add_metric((state.name,), state.age_seconds)
        limit.add_metric((state.name,), state.limit_seconds)
        stale.add_metric((state.name,), float(state.stale))
    yield from (age, limit, stale)
