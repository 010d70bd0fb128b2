"""Object targets of this node: ``obdfilter.*``, summed over all clients."""

from __future__ import annotations

from exporter.capacity import capacity_families, put_capacity
from exporter.collector import Collector, all_of, reads, reads_numbers, stateless
from exporter.exposition import MetricsPage
from exporter.families import FamilyMaker
from exporter.node import Node
from exporter.sources import stats_renderer

OF_OST = FamilyMaker("lustre_ost", ("fs", "target"), "obdfilter.*")
RULE = OF_OST.of("stats").traffic(
    "Operations on the target, by operation.", "Total time the target spent on operations, by operation.",
    "Bytes read from the target.", "Bytes written to the target.", timed_since="2.14+")
CAPACITY = capacity_families(OF_OST, "the target")
NUMBERS = OF_OST.numbers(
    ("num_exports", "exports", "Clients and servers connected to the target."),
    ("degraded", "degraded",
     "Whether the target is marked degraded (1) or not (0). New files avoid degraded targets."),
    ("tot_dirty", "dirty_bytes", "Data written on clients and not yet sent to the target, as reported by clients."),
    ("tot_granted", "granted_bytes", "Space granted to clients for cached writes."),
    ("tot_pending", "pending_bytes", "Granted space used by writes in progress."),
    ("no_create", "no_create",
     "Whether an administrator has disabled object creation on the target (1) or not (0).", "2.16+"),
    ("readonly", "readonly", "Whether an administrator has made the target read-only (1) or not (0).", "2.17+"),
)
MAX_RPC = OF_OST.numbers((
    "brw_size", "max_rpc_bytes",
    "Largest bulk RPC that the target accepts. A client uses it after it reconnects."))


def _capacity(node: Node, page: MetricsPage) -> None:
    for device, labels in node.labelled_targets("obdfilter"):
        put_capacity(page, CAPACITY, labels, node.room("obdfilter", device))


FAMILIES = (*RULE.families(), *CAPACITY, *NUMBERS.values(), *MAX_RPC.values())
COLLECTOR = Collector("ost", "object targets of this node: traffic, operations, space", FAMILIES, all_of(
    reads("obdfilter", "stats", lambda: stats_renderer(RULE)), stateless(_capacity),
    reads_numbers("obdfilter", NUMBERS), reads_numbers("obdfilter", MAX_RPC, convert=lambda mib: mib << 20)))
