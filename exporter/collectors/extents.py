"""Sizes of applications' reads and writes: ``llite.*.extents_stats``, on clients where it is enabled."""

from __future__ import annotations

from exporter.bounds import doubling
from exporter.collector import Collect, Collector, Context
from exporter.families import Histogram
from exporter.node import Node
from exporter.page import Page
from exporter.rpcs import READ, WRITE, bounds_of
from exporter.sources import Render, Rendered, Source
from lustre.formats import extents_stats

EXTENTS = Histogram(
    "lustre_llite_extent_size_bytes",
    "Sizes of applications' reads and writes. Lustre counts them only after a value was written to"
    " llite.*.extents_stats.",
    ("fs", "mount", "direction"),
    "llite.*.extents_stats",
    "bytes",
    usual=tuple([upper - 1 for upper in doubling(4096, 1 << 30)]),
)


def start(_: Context) -> Collect:
    """Start without earlier readings."""
    source = Source("llite", "extents_stats", _renderer)

    def collect(node: Node, page: Page) -> None:
        source.collect(node, page, node.mounts())

    return collect


def _renderer(labels: bytes) -> Render:
    def render(data: bytes) -> Rendered:
        parsed = extents_stats.parse(data)
        table = parsed.histogram
        if table is None:
            return Rendered((), parsed.skipped)
        bounds = bounds_of(table)
        reads, writes = (
            EXTENTS.buckets(labels + direction, bounds, counts)
            for direction, counts in ((READ, table.read), (WRITE, table.write))
        )
        return Rendered(((EXTENTS, reads), (EXTENTS, writes)), parsed.skipped)

    return render


COLLECTOR = Collector("extents", "sizes of applications' reads and writes", (EXTENTS,), start)
