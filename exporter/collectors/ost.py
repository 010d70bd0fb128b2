"""Object targets of this node: ``obdfilter.*``, summed over all clients."""

from __future__ import annotations

from exporter.capacity import capacity_families, put_capacity
from exporter.collector import Collect, Collector, Context
from exporter.counters import StatsRule
from exporter.exposition import Counter, Gauge, MetricsPage
from exporter.node import Node
from exporter.sources import Source, StatsRenderer

LABELS = ("fs", "target")
STATS = "obdfilter.*.stats"
RULE = StatsRule(
    Counter("lustre_ost_operations_total", "Operations on the target, by operation.", (*LABELS, "operation"), STATS),
    Counter(
        "lustre_ost_operation_seconds_total", "Total time the target spent on operations, by operation.",
        (*LABELS, "operation"), STATS, "2.14+"),
    {
        b"read_bytes": Counter("lustre_ost_read_bytes_total", "Bytes read from the target.", LABELS, STATS),
        b"write_bytes": Counter("lustre_ost_write_bytes_total", "Bytes written to the target.", LABELS, STATS),
    },
    implied={b"read_bytes": b"read", b"write_bytes": b"write"},
)
CAPACITY = capacity_families("lustre_ost", "the target", LABELS, "obdfilter.*")
NUMBERS = {
    "num_exports": Gauge(
        "lustre_ost_exports", "Clients and servers connected to the target.", LABELS, "obdfilter.*.num_exports"),
    "degraded": Gauge(
        "lustre_ost_degraded",
        "Whether the target is marked degraded (1) or not (0). New files avoid degraded targets.", LABELS,
        "obdfilter.*.degraded"),
    "tot_dirty": Gauge(
        "lustre_ost_dirty_bytes", "Data written on clients and not yet sent to the target, as reported by clients.",
        LABELS, "obdfilter.*.tot_dirty"),
    "tot_granted": Gauge(
        "lustre_ost_granted_bytes", "Space granted to clients for cached writes.", LABELS, "obdfilter.*.tot_granted"),
    "tot_pending": Gauge(
        "lustre_ost_pending_bytes", "Granted space used by writes in progress.", LABELS, "obdfilter.*.tot_pending"),
    "no_create": Gauge(
        "lustre_ost_no_create", "Whether an administrator has disabled object creation on the target (1) or not (0).",
        LABELS, "obdfilter.*.no_create", versions="2.16+"),
    "readonly": Gauge(
        "lustre_ost_readonly", "Whether an administrator has made the target read-only (1) or not (0).", LABELS,
        "obdfilter.*.readonly", versions="2.17+"),
}
MAX_RPC = Gauge(
    "lustre_ost_max_rpc_bytes", "Largest bulk RPC that the target accepts. A client uses it after it reconnects.",
    LABELS, "obdfilter.*.brw_size")


def start(_: Context) -> Collect:
    stats = Source("obdfilter", "stats", StatsRenderer(RULE))

    def collect(node: Node, page: MetricsPage) -> None:
        targets = node.labelled_targets("obdfilter")
        stats.collect(node, page, targets)
        for device, labels in targets:
            put_capacity(page, CAPACITY, labels, node.room("obdfilter", device))
            for name, family in NUMBERS.items():
                page.sample(family, labels, node.number("obdfilter", device, name))
            largest = node.number("obdfilter", device, "brw_size")
            page.sample(MAX_RPC, labels, None if largest is None else largest << 20)

    return collect


FAMILIES = (*RULE.families(), *CAPACITY, *NUMBERS.values(), MAX_RPC)
COLLECTOR = Collector("ost", "object targets of this node: traffic, operations, space", FAMILIES, start)
