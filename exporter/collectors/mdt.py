"""Operations, state and space of metadata targets of this node: ``mdt.*``, and ``osd-*.*`` for space."""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.counters import Rule
from exporter.families import Counter, Gauge
from exporter.node import Node
from exporter.page import Page
from exporter.room import OSD_KINDS, room_families
from exporter.sources import Source, StatsRenderer

LABELS = ("fs", "target")
STATS = "mdt.*.md_stats"
RULE = Rule(
    Counter(
        "lustre_mdt_operations_total",
        "Metadata operations on the target, by operation. The operation rename includes samedir_rename,"
        " crossdir_rename, parallel_rename_file and parallel_rename_dir.",
        (*LABELS, "operation"),
        STATS,
    ),
    Counter(
        "lustre_mdt_operation_seconds_total",
        "Total time the target spent on metadata operations, by operation.",
        (*LABELS, "operation"),
        STATS,
        "seconds",
        "2.14+",
    ),
    {
        b"read_bytes": Counter(
            "lustre_mdt_read_bytes_total",
            "Bytes of file data read from the metadata target itself (Data-on-MDT).",
            LABELS,
            STATS,
            "bytes",
            "2.15+",
        ),
        b"write_bytes": Counter(
            "lustre_mdt_write_bytes_total",
            "Bytes of file data written to the metadata target itself (Data-on-MDT).",
            LABELS,
            STATS,
            "bytes",
            "2.15+",
        ),
    },
    implied={b"read_bytes": b"read", b"write_bytes": b"write"},
)
ROOM = room_families("lustre_mdt", "the target", LABELS, "osd-*.*")
STATE = {
    name: Gauge(f"lustre_mdt_{what}", text, LABELS, f"mdt.*.{name}", unit, versions)
    for name, what, text, unit, versions in (
        ("num_exports", "exports", "Clients and servers connected to the target.", "", "2.10+"),
        ("tot_dirty", "dirty_bytes",
         "Data-on-MDT data written on clients and not yet sent, as reported by clients.", "bytes", "2.12+"),
        ("tot_granted", "granted_bytes", "Space granted to clients for cached Data-on-MDT writes.", "bytes", "2.12+"),
        ("tot_pending", "pending_bytes", "Granted space used by Data-on-MDT writes in progress.", "bytes", "2.12+"),
        ("no_create", "no_create",
         "Whether an administrator has disabled file creation on the target (1) or not (0).", "", "2.16+"),
        ("readonly", "readonly", "Whether an administrator has made the target read-only (1) or not (0).", "", "2.13+"),
    )
}  # fmt: skip


def start(_: Context) -> Collect:
    """Start without earlier readings."""
    stats = Source("mdt", "md_stats", StatsRenderer(RULE))

    def collect(node: Node, page: Page) -> None:
        targets = node.labelled_targets("mdt")
        stats.collect(node, page, targets)
        for device, labels in targets:
            for name, family in STATE.items():
                page.sample(family, labels, node.number("mdt", device, name))
        for kind in OSD_KINDS:
            for device, labels in node.labelled_targets(kind):
                if "-MDT" in device:  # object targets show their own space
                    ROOM.put(page, labels, node.room(kind, device))

    return collect


FAMILIES = (*RULE.families(), *STATE.values(), *ROOM.families)
COLLECTOR = Collector("mdt", "metadata targets of this node", FAMILIES, start)
