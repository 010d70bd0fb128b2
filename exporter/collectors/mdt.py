"""What metadata targets of this node did for all their clients: ``mdt.*``; and their room, which the disks know."""

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
        "Metadata operations of the target, by operation. samedir_rename, crossdir_rename, parallel_rename_file and"
        " parallel_rename_dir are renames that rename counts too.",
        (*LABELS, "operation"),
        STATS,
    ),
    Counter(
        "lustre_mdt_operation_seconds_total",
        "Time the target took for these operations, added up.",
        (*LABELS, "operation"),
        STATS,
        "seconds",
        "2.14+",
    ),
    {
        b"read_bytes": Counter(
            "lustre_mdt_read_bytes_total",
            "Bytes of files read from the metadata target itself (data on MDT).",
            LABELS,
            STATS,
            "bytes",
            "2.15+",
        ),
        b"write_bytes": Counter(
            "lustre_mdt_write_bytes_total",
            "Bytes of files written to the metadata target itself (data on MDT).",
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
        ("tot_dirty", "dirty_bytes", "Data on MDT written on clients and not sent yet, as far as they said.", "bytes",
         "2.12+"),
        ("tot_granted", "granted_bytes", "Room promised to clients for data on MDT.", "bytes", "2.12+"),
        ("tot_pending", "pending_bytes", "Room promised for writes that are being carried out.", "bytes", "2.12+"),
        ("no_create", "no_create", "Whether an administrator has forbidden new files on the target.", "", "2.16+"),
        ("readonly", "readonly", "Whether an administrator has forbidden all changes.", "", "2.13+"),
    )
}  # fmt: skip


def start(_: Context) -> Collect:
    """Begin with nothing read."""
    stats = Source("mdt", "md_stats", StatsRenderer(RULE))

    def collect(node: Node, page: Page) -> None:
        targets = node.labelled_targets("mdt")
        stats.collect(node, page, targets)
        for device, labels in targets:
            for name, family in STATE.items():
                page.sample(family, labels, node.number("mdt", device, name))
        for kind in OSD_KINDS:
            for device, labels in node.labelled_targets(kind):
                if "-MDT" in device:  # an object target shows its room itself
                    ROOM.put(page, labels, node.room(kind, device))

    return collect


FAMILIES = (*RULE.families(), *STATE.values(), *ROOM.families)
COLLECTOR = Collector("mdt", "metadata targets of this node", FAMILIES, start)
