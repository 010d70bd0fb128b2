"""Disk I/O and cache of this node's targets: ``osd-*.*.brw_stats`` and ``osd-*.*.stats``."""

from __future__ import annotations

from exporter.capacity import OSD_KINDS
from exporter.collector import Collect, Collector, Context
from exporter.counters import StatsRule
from exporter.exposition import SINGLE_VALUES, Counter, Gauge, Histogram, MetricsPage, doubling
from exporter.node import Node
from exporter.rpc_stats import READ, WRITE, bounds_of
from exporter.sources import Source, StatsRenderer, paged
from lustre.formats import brw_stats, histogram
from lustre.formats.histogram import LINEAR

LABELS = ("fs", "target")
STATS = "osd-*.*.stats"


def _table(
    name: str,
    text: str,
    usual: tuple[float, ...],
    label: str = "direction",
    versions: str = "2.10+",
) -> Histogram:
    return Histogram(f"lustre_osd_{name}", text, (*LABELS, label), "osd-*.*.brw_stats", versions, usual)


TABLES: dict[bytes, tuple[Histogram, float]] = {
    b"pages per bulk r/w": (_table("pages_per_bulk", "Bulk requests, by size in pages.", doubling(1, 4096)), 1.0),
    b"discontiguous pages": (
        _table(
            "discontiguous_pages",
            "Bulk requests, by the number of contiguous runs of pages in the object (1 is best). Up to 2.15 and on"
            " ZFS, by the number of gaps between runs (0 is best).", SINGLE_VALUES),
        1.0,
    ),
    b"discontiguous blocks": (
        _table(
            "discontiguous_blocks",
            "Bulk requests, by the number of contiguous runs of blocks on disk (1 is best). Up to 2.15, by the"
            " number of gaps between runs (0 is best).", SINGLE_VALUES),
        1.0,
    ),
    b"disk fragmented I/Os": (
        _table("io_fragments", "Bulk requests, by the number of disk I/Os they were split into.", SINGLE_VALUES),
        1.0,
    ),
    b"disk I/Os in flight": (
        _table(
            "io_in_flight", "Disk I/Os, by the number in flight when each was sent, including itself.", SINGLE_VALUES),
        1.0,
    ),
    b"I/O time (1/1000s)": (
        _table("io_seconds", "Bulk requests, by the duration of their disk I/O.", doubling(1, 1 << 14, 1e-3)),
        1e-3,
    ),
    b"disk I/O size": (_table("io_size_bytes", "Disk I/Os, by size.", doubling(4096, 1 << 24)), 1.0),
    b"block maps msec": (
        _table(
            "block_map_seconds",
            "Time to map the blocks of an object, by operation: lookup of existing blocks or allocate of new blocks.",
            doubling(1, 1 << 10, 1e-3), "operation", "2.16+"),
        1e-3,
    ),
}
"""For each table title, its family and its unit in base units."""
MAPS = b',operation="lookup"', b',operation="allocate"'
RULE = StatsRule(
    Counter(
        "lustre_osd_operations_total",
        "Operations of the storage device, by operation, such as get_page (preparation of pages) and transaction"
        " steps.", (*LABELS, "operation"), STATS),
    Counter(
        "lustre_osd_operation_seconds_total", "Total time of storage device operations, by operation.",
        (*LABELS, "operation"), STATS),
    special={
        name: (
            None,
            Counter(f"lustre_osd_cache_{what}_total", f"Pages {text}.", LABELS, STATS),
        )
        for name, what, text in (
            (b"cache_access", "accesses", "looked up in the server's page cache"),
            (b"cache_hit", "hits", "found in the server's page cache"),
            (b"cache_miss", "misses", "not found in the server's page cache and read from disk"),
        )
    },
)
NONROTATIONAL = Gauge(
    "lustre_osd_nonrotational", "Whether the kernel reports the target's device as flash (1) or as rotating disk (0).",
    LABELS, "osd-*.*.nonrotational", versions="2.12+")


def start(_: Context) -> Collect:
    tables = [Source(kind, "brw_stats", paged(_brw_stats)) for kind in OSD_KINDS]
    stats = [Source(kind, "stats", StatsRenderer(RULE)) for kind in OSD_KINDS]

    def collect(node: Node, page: MetricsPage) -> None:
        for kind, of_tables, of_stats in zip(OSD_KINDS, tables, stats, strict=True):
            targets = node.labelled_targets(kind)
            of_tables.collect(node, page, targets)
            of_stats.collect(node, page, targets)
            for device, labels in targets:
                page.sample(NONROTATIONAL, labels, node.number(kind, device, "nonrotational"))

    return collect


def _brw_stats(page: MetricsPage, labels: bytes, data: bytes) -> int:
    brw = brw_stats.parse(data)
    unknown = 0
    for table in {table.name: table for table in reversed(brw.histograms)}.values():
        if table.name not in TABLES or len(table.columns) != 2:
            unknown += 2 + len(table.uppers)
            continue
        family, unit = TABLES[table.name]
        extras = MAPS if "operation" in family.labels else (READ, WRITE)
        if table.uppers:
            before = omitted_bounds(table)
            bounds = [round(upper * unit, 12) for upper in before] + [*bounds_of(table, unit)]
            for extra, counts in zip(extras, table.columns, strict=True):
                page.add(family, family.buckets(labels + extra, bounds, [0] * len(before) + [*counts]))
    return brw.skipped + unknown


def omitted_bounds(table: histogram.Histogram) -> list[int]:
    """Return the bounds of the omitted first buckets, from 1 (or 4 KiB). With them, all targets have the same buckets.

    >>> omitted_bounds(histogram.Histogram(b"pages per bulk r/w", (16, 32), ((1, 2), (3, 4))))
    [1, 2, 4, 8]
    >>> omitted_bounds(histogram.Histogram(b"discontiguous pages", (3,), ((1,), (2,))))
    [1, 2]
    >>> omitted_bounds(histogram.Histogram(b"discontiguous pages", (64,), ((1,), (2,))))  # powers of two
    [1, 2, 4, 8, 16, 32]
    """
    first = table.uppers[0]
    if table.name in LINEAR and first <= SINGLE_VALUES[-1] + 1:
        return list(range(1, first))
    return [1 << power for power in range(12 if table.name == b"disk I/O size" else 0, first.bit_length() - 1)]


FAMILIES = (*[family for family, _ in TABLES.values()], *RULE.families(), NONROTATIONAL)
COLLECTOR = Collector("osd", "disk I/O and page cache of this node's targets", FAMILIES, start)
