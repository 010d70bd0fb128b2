"""Metadata targets of this node: ``mdt.*``, their space from the disks (``osd-*.*``), and renames by directory size.

Large directories make renames slow: ``mdt.*.rename_stats``.
"""

from __future__ import annotations

from exporter.capacity import OSD_KINDS, capacity_families, put_capacity
from exporter.collector import Collector, all_of, reads, reads_numbers, stateless
from exporter.exposition import MetricsPage, doubling
from exporter.families import FamilyMaker
from exporter.node import Node
from exporter.rpc_stats import bounds_of
from exporter.sources import paged, stats_renderer
from lustre.formats import rename_stats

OF_MDT = FamilyMaker("lustre_mdt", ("fs", "target"), "mdt.*")
RULE = OF_MDT.of("md_stats").traffic(
    "Metadata operations on the target, by operation. The operation rename includes samedir_rename,"
    " crossdir_rename, parallel_rename_file, parallel_rename_dir and rename_trylocks.",
    "Total time the target spent on metadata operations, by operation.",
    "Bytes of file data read from the metadata target itself (Data-on-MDT).",
    "Bytes of file data written to the metadata target itself (Data-on-MDT).",
    timed_since="2.14+", bytes_since="2.15+")
CAPACITY = capacity_families(FamilyMaker("lustre_mdt", OF_MDT.labels, "osd-*.*"), "the target")
NUMBERS = OF_MDT.numbers(
    ("num_exports", "exports", "Clients and servers connected to the target."),
    ("tot_dirty", "dirty_bytes",
     "Data-on-MDT data written on clients and not yet sent, as reported by clients.", "2.12+"),
    ("tot_granted", "granted_bytes", "Space granted to clients for cached Data-on-MDT writes.", "2.12+"),
    ("tot_pending", "pending_bytes", "Granted space used by Data-on-MDT writes in progress.", "2.12+"),
    ("no_create", "no_create",
     "Whether an administrator has disabled file creation on the target (1) or not (0).", "2.16+"),
    ("readonly", "readonly", "Whether an administrator has made the target read-only (1) or not (0).", "2.13+"),
)


def _capacity(node: Node, page: MetricsPage) -> None:
    for kind in OSD_KINDS:
        for device, labels in node.labelled_targets(kind):
            if "-MDT" in device:  # object targets show their own space
                put_capacity(page, CAPACITY, labels, node.room(kind, device))


FAMILIES = (*RULE.families(), *NUMBERS.values(), *CAPACITY)
MDT_COLLECTOR = Collector("mdt", "metadata targets of this node", FAMILIES, all_of(
    reads("mdt", "md_stats", lambda: stats_renderer(RULE)), reads_numbers("mdt", NUMBERS), stateless(_capacity)))
RENAME_DIRECTORY_SIZES = OF_MDT.of("rename_stats").histogram(
    "rename_directory_size_bytes",
    "Renames, by the size of the directory: same (within one directory), source or target (between two directories).",
    doubling(1 << 12, 1 << 24), "directory")
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
    reads("mdt", "rename_stats", lambda: paged(_rename_stats), part=rename_stats.after_header))
