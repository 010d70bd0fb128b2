"""Duration of disk I/O by size: ``osd-*.*.io_latency_stats``. Off by default: some hundred series per target."""

from __future__ import annotations

from exporter.bounds import doubling
from exporter.collector import Collect, Collector, Context
from exporter.families import Histogram
from exporter.latency import LatencyRenderer
from exporter.node import Node
from exporter.page import Page
from exporter.room import OSD_KINDS
from exporter.rpcs import LATENCY_UNIT_SECONDS
from exporter.sources import Source
from lustre.formats import io_latency_stats
from lustre.formats.compiled import hash_of

LATENCY = Histogram(
    "lustre_osd_io_latency_seconds",
    "Bulk requests, by size and duration of their disk I/O. The label size is the lower bound in bytes, the upper"
    " bound is twice that.",
    ("fs", "target", "direction", "size"),
    "osd-*.*.io_latency_stats",
    "seconds",
    "2.17+",
    doubling(1, 1 << 24, LATENCY_UNIT_SECONDS),
)


def start(_: Context) -> Collect:
    """Start without earlier readings."""
    sources = [
        (kind, Source(kind, "io_latency_stats", LatencyRenderer(LATENCY), hash_of(io_latency_stats.after_header)))
        for kind in OSD_KINDS
    ]

    def collect(node: Node, page: Page) -> None:
        for kind, source in sources:
            source.collect(node, page, node.labelled_targets(kind))

    return collect


COLLECTOR = Collector("osd_latency", "duration of disk I/O by size", (LATENCY,), start, default=False)
