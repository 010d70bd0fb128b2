"""Disk I/O and cache of this node's targets: ``osd-*.*.brw_stats`` and ``osd-*.*.stats``."""

from __future__ import annotations

from exporter.capacity import OSD_KINDS
from exporter.collector import Collector, all_of, reads, reads_numbers
from exporter.counters import StatsRule
from exporter.exposition import SINGLE_VALUES, Histogram, MetricsPage, doubling
from exporter.families import FamilyMaker
from exporter.rpc_stats import READ, WRITE, bounds_of
from exporter.sources import paged, stats_renderer
from lustre.formats import brw_stats, histogram
from lustre.formats.histogram import LINEAR

OF_DISKS = FamilyMaker("lustre_osd", ("fs", "target"), "osd-*.*")
_table = OF_DISKS.of("brw_stats").histogram
TABLES: dict[bytes, tuple[Histogram, float]] = {
    b"pages per bulk r/w": (_table(
        "pages_per_bulk",
        "Bulk requests, by pages read from or written to disk. ldiskfs leaves out pages found in its page cache, and"
        " reads that found all.", doubling(1, 4096), "direction"), 1.0),
    b"discontiguous pages": (_table(
        "discontiguous_pages",
        "Bulk requests, by the number of contiguous runs of pages in the object (1 is best). Up to 2.15 and on"
        " ZFS, by the number of gaps between runs (0 is best).", SINGLE_VALUES, "direction"), 1.0),
    b"discontiguous blocks": (_table(
        "discontiguous_blocks",
        "Bulk requests, by the number of contiguous runs of blocks on disk (1 is best). Up to 2.15, by the"
        " number of gaps between runs (0 is best).", SINGLE_VALUES, "direction"), 1.0),
    b"disk fragmented I/Os": (
        _table("io_fragments", "Bulk requests, by the number of disk I/Os they were split into.", SINGLE_VALUES,
              "direction"), 1.0),
    b"disk I/Os in flight": (
        _table("io_in_flight", "Disk I/Os, by the number in flight when each was sent, including itself.",
              SINGLE_VALUES, "direction"), 1.0),
    b"I/O time (1/1000s)": (_table(
        "io_seconds",
        "Bulk requests, by the duration of their disk I/O, rounded down to milliseconds. ZFS counts only reads of a"
        " millisecond and longer.", doubling(1, 1 << 14, 1e-3), "direction"), 1e-3),
    b"disk I/O size": (_table("io_size_bytes", "Disk I/Os, by size.", doubling(4096, 1 << 24), "direction"), 1.0),
    b"block maps msec": (_table(
        "block_map_seconds",
        "Time to map the blocks of an object, rounded down to milliseconds, by operation: lookup of existing blocks or"
        " allocate of new blocks.", doubling(1, 1 << 10, 1e-3), "operation", versions="2.16+"), 1e-3),
}
"""For each table title, its family and its unit in base units."""
MAPS = b',operation="lookup"', b',operation="allocate"'
STATS = OF_DISKS.of("stats")
RULE = StatsRule(
    STATS.counter(
        "operations",
        "Operations of the storage device, by operation, such as get_page (preparation of pages) and transaction"
        " steps.", "operation"),
    STATS.counter("operation_seconds", "Total time of storage device operations, by operation.", "operation"),
    special={
        name: (None, STATS.counter(f"cache_{what}", f"Pages {text}."))
        for name, what, text in (
            (b"cache_access", "accesses", "looked up in the server's page cache"),
            (b"cache_hit", "hits", "found in the server's page cache"),
            (b"cache_miss", "misses", "not found in the server's page cache and read from disk"),
        )
    },
)
NONROTATIONAL = OF_DISKS.numbers((
    "nonrotational", "nonrotational",
    "Whether the kernel reports the target's device as flash (1) or as rotating disk (0).", "2.12+"))


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


FAMILIES = (*[family for family, _ in TABLES.values()], *RULE.families(), *NONROTATIONAL.values())
COLLECTOR = Collector("osd", "disk I/O and page cache of this node's targets", FAMILIES, all_of(*[
    start for kind in OSD_KINDS for start in (
        reads(kind, "brw_stats", lambda: paged(_brw_stats)), reads(kind, "stats", lambda: stats_renderer(RULE)),
        reads_numbers(kind, NONROTATIONAL))]))
