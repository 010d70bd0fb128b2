"""Reply times of bulk RPCs to object servers by size: ``osc.*.io_latency_stats``.

Off by default: some hundred series per pool, and another file per target to read.
"""

from __future__ import annotations

from exporter.bounds import doubling
from exporter.collector import Collect, Collector, Context
from exporter.families import Histogram
from exporter.latency import LatencyOut, LatencyRenderer
from exporter.node import Node
from exporter.osc import Groups, Labelled
from exporter.page import Page
from exporter.rpcs import LATENCY_UNIT_SECONDS
from exporter.sources import Source
from exporter.totals import Group, Summed
from lustre.formats import io_latency_stats
from lustre.formats.compiled import hash_of

LATENCY = Histogram(
    "lustre_osc_io_latency_seconds",
    "Bulk RPCs to object servers, by size and time until the reply. The label size is the lower bound in bytes, the"
    " upper bound is twice that.",
    ("fs", "mount", "pool", "direction", "size"),
    "osc.*.io_latency_stats",
    "seconds",
    "2.17+",
    doubling(1, 1 << 24, LATENCY_UNIT_SECONDS),
)


def start(context: Context) -> Collect:
    """Start without earlier readings."""
    return _per_target() if context.settings.osc_per_target else _summed()


def _summed() -> Collect:
    groups = Groups()
    unchanging = hash_of(io_latency_stats.after_header)
    latency: Summed[Group] = Summed("osc", "io_latency_stats", LatencyOut(LATENCY), unchanging)

    def collect(node: Node, page: Page) -> None:
        latency.refresh(node, groups.of(node))
        latency.put(page)

    return collect


def _per_target() -> Collect:
    labelled = Labelled()
    source = Source("osc", "io_latency_stats", LatencyRenderer(LATENCY), hash_of(io_latency_stats.after_header))

    def collect(node: Node, page: Page) -> None:
        source.collect(node, page, labelled.of(node).items())

    return collect


COLLECTOR = Collector("osc_latency", "reply times of object servers by request size", (LATENCY,), start, default=False)
