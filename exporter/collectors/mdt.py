"""Metadata targets of this node: ``mdt.*``, their space from the disks (``osd-*.*``), and renames by directory size.

Large directories make renames slow: ``mdt.*.rename_stats``.
"""

from __future__ import annotations

from exporter.capacity import OSD_KINDS, capacity_families, put_capacity
from exporter.collector import Collect, Collector, Context, reads
from exporter.counters import StatsRule
from exporter.exposition import Counter, Gauge, Histogram, MetricsPage, doubling
from exporter.node import Node
from exporter.rpc_stats import bounds_of
from exporter.sources import Source, StatsRenderer, paged
from lustre.formats import rename_stats

LABELS = ("fs", "target")
STATS = "mdt.*.md_stats"
RULE = StatsRule(
    Counter(
        "lustre_mdt_operations_total",
        "Metadata operations on the target, by operation. The operation rename includes samedir_rename,"
        " crossdir_rename, parallel_rename_file, parallel_rename_dir and rename_trylocks.", (*LABELS, "operation"),
        STATS),
    Counter(
        "lustre_mdt_operation_seconds_total", "Total time the target spent on metadata operations, by operation.",
        (*LABELS, "operation"), STATS, "2.14+"),
    {
        b"read_bytes": Counter(
            "lustre_mdt_read_bytes_total", "Bytes of file data read from the metadata target itself (Data-on-MDT).",
            LABELS, STATS, "2.15+"),
        b"write_bytes": Counter(
            "lustre_mdt_write_bytes_total", "Bytes of file data written to the metadata target itself (Data-on-MDT).",
            LABELS, STATS, "2.15+"),
    },
    implied={b"read_bytes": b"read", b"write_bytes": b"write"},
)
CAPACITY = capacity_families("lustre_mdt", "the target", LABELS, "osd-*.*")
NUMBERS = {
    name: Gauge(f"lustre_mdt_{what}", text, LABELS, f"mdt.*.{name}", versions)
    for name, what, text, versions in (
        ("num_exports", "exports", "Clients and servers connected to the target.", "2.10+"),
        ("tot_dirty", "dirty_bytes",
         "Data-on-MDT data written on clients and not yet sent, as reported by clients.", "2.12+"),
        ("tot_granted", "granted_bytes", "Space granted to clients for cached Data-on-MDT writes.", "2.12+"),
        ("tot_pending", "pending_bytes", "Granted space used by Data-on-MDT writes in progress.", "2.12+"),
        ("no_create", "no_create",
         "Whether an administrator has disabled file creation on the target (1) or not (0).", "2.16+"),
        ("readonly", "readonly", "Whether an administrator has made the target read-only (1) or not (0).", "2.13+"),
    )
}  # fmt: skip


def start_mdt(_: Context) -> Collect:
    stats = Source("mdt", "md_stats", StatsRenderer(RULE))

    def collect(node: Node, page: MetricsPage) -> None:
        targets = node.labelled_targets("mdt")
        stats.collect(node, page, targets)
        for device, labels in targets:
            for name, family in NUMBERS.items():
                page.sample(family, labels, node.number("mdt", device, name))
        for kind in OSD_KINDS:
            for device, labels in node.labelled_targets(kind):
                if "-MDT" in device:  # object targets show their own space
                    put_capacity(page, CAPACITY, labels, node.room(kind, device))

    return collect


FAMILIES = (*RULE.families(), *NUMBERS.values(), *CAPACITY)
MDT_COLLECTOR = Collector("mdt", "metadata targets of this node", FAMILIES, start_mdt)
RENAME_DIRECTORY_SIZES = Histogram(
    "lustre_mdt_rename_directory_size_bytes",
    "Renames, by the size of the directory: same (within one directory), source or target (between two directories).",
    ("fs", "target", "directory"), "mdt.*.rename_stats", usual=doubling(1 << 12, 1 << 24))
DIRECTORIES = {
    b"same_dir": b',directory="same"',
    b"crossdir_src": b',directory="source"',
    b"crossdir_tgt": b',directory="target"',
}


def _rename_stats(page: MetricsPage, labels: bytes, data: bytes) -> int:
    parsed = rename_stats.parse(data)
    for table in parsed.histograms:
        bounds = bounds_of(table)
        # the kernel omits the first buckets
        below = [upper for upper in RENAME_DIRECTORY_SIZES.usual if bounds and upper < bounds[0]]
        counts = [0] * len(below) + [*table.columns[0]]
        lines = RENAME_DIRECTORY_SIZES.buckets(labels + DIRECTORIES[table.name], [*below, *bounds], counts)
        page.add(RENAME_DIRECTORY_SIZES, lines)
    return parsed.skipped


RENAMES_COLLECTOR = Collector(
    "renames", "sizes of directories in renames", (RENAME_DIRECTORY_SIZES,),
    reads("mdt", "rename_stats", lambda: paged(_rename_stats), lambda node: node.labelled_targets("mdt"),
          rename_stats.after_header))
