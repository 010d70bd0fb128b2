"""What object targets of this node did for all their clients: ``obdfilter.*``."""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.counters import Rule
from exporter.families import Counter, Gauge
from exporter.node import Node
from exporter.page import Page
from exporter.room import room_families
from exporter.sources import Source, StatsRenderer

LABELS = ("fs", "target")
STATS = "obdfilter.*.stats"
RULE = Rule(
    Counter("lustre_ost_operations_total", "Operations of the target, by operation.", (*LABELS, "operation"), STATS),
    Counter(
        "lustre_ost_operation_seconds_total",
        "Time the target took for these operations, added up.",
        (*LABELS, "operation"),
        STATS,
        "seconds",
        "2.14+",
    ),
    {
        b"read_bytes": Counter("lustre_ost_read_bytes_total", "Bytes read from the target.", LABELS, STATS, "bytes"),
        b"write_bytes": Counter("lustre_ost_write_bytes_total", "Bytes written to the target.", LABELS, STATS, "bytes"),
    },
    implied={b"read_bytes": b"read", b"write_bytes": b"write"},
)
ROOM = room_families("lustre_ost", "the target", LABELS, "obdfilter.*")
STATE = {
    "num_exports": Gauge(
        "lustre_ost_exports", "Clients and servers connected to the target.", LABELS, "obdfilter.*.num_exports"
    ),
    "degraded": Gauge(
        "lustre_ost_degraded",
        "Whether the target is marked degraded (1), so that new files avoid it, or not (0).",
        LABELS,
        "obdfilter.*.degraded",
    ),
    "tot_dirty": Gauge(
        "lustre_ost_dirty_bytes",
        "Written on clients and not sent yet, as far as they said.",
        LABELS,
        "obdfilter.*.tot_dirty",
        "bytes",
    ),
    "tot_granted": Gauge(
        "lustre_ost_granted_bytes", "Room promised to clients.", LABELS, "obdfilter.*.tot_granted", "bytes"
    ),
    "tot_pending": Gauge(
        "lustre_ost_pending_bytes",
        "Room promised for writes that are being carried out.",
        LABELS,
        "obdfilter.*.tot_pending",
        "bytes",
    ),
    "no_create": Gauge(
        "lustre_ost_no_create",
        "Whether an administrator has forbidden new objects on the target.",
        LABELS,
        "obdfilter.*.no_create",
        versions="2.16+",
    ),
    "readonly": Gauge(
        "lustre_ost_readonly",
        "Whether an administrator has forbidden all changes.",
        LABELS,
        "obdfilter.*.readonly",
        versions="2.17+",
    ),
}


def start(_: Context) -> Collect:
    """Begin with nothing read."""
    stats = Source("obdfilter", "stats", StatsRenderer(RULE))

    def collect(node: Node, page: Page) -> None:
        targets = node.labelled_targets("obdfilter")
        stats.collect(node, page, targets)
        for device, labels in targets:
            ROOM.put(page, labels, node.room("obdfilter", device))
            for name, family in STATE.items():
                page.sample(family, labels, node.number("obdfilter", device, name))

    return collect


FAMILIES = (*RULE.families(), *ROOM.families, *STATE.values())
COLLECTOR = Collector("ost", "object targets of this node: traffic, operations, room", FAMILIES, start)
