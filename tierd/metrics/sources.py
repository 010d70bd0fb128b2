"""What tierd hears: which of its sources are blind, and how old what they told is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from tierd.cycle.loop import Daemon
from tierd.sense.ages import SourceState


def heard(daemon: Daemon, sources: Sequence[SourceState]) -> Iterator[Metric]:
    """Each source, by name."""
    blind = GaugeMetricFamily("tierd_source_blind", "1 while a source cannot be read; nothing is then done.",
                              labels=("source",))
    for source in ("blind", "changelog"):
        blind.add_metric((("counters" if source == "blind" else source),), float(source in daemon.faults))
    yield blind
    age = GaugeMetricFamily("tierd_source_age_seconds", "How old what a source last told is, by its own account "
                            "where it gives one; +Inf before it told anything.", labels=("source",))
    limit = GaugeMetricFamily("tierd_source_age_limit_seconds", "How old it may be: beyond it nothing is done.",
                              labels=("source",))
    stale = GaugeMetricFamily("tierd_source_stale", "1 while a source is too old or in trouble.",
                              labels=("source",))
    for state in sources:
        age.add_metric((state.name,), state.age_seconds)
        limit.add_metric((state.name,), state.limit_seconds)
        stale.add_metric((state.name,), float(state.stale))
    yield from (age, limit, stale)
