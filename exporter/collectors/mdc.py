"""Requests of this node to metadata servers: ``mdc.*``, and operations of whole mounts: ``lmv.*.md_stats``.

There are few metadata targets, so each has its own series. The sum of ``mdc.*.md_stats`` can be larger than
``lmv.*.md_stats``, if an operation needs several targets, or smaller, if an operation needs no request.
"""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context, reads
from exporter.connection_families import client_families
from exporter.connections import ClientsByTarget
from exporter.counters import StatsRule
from exporter.exposition import INFINITY, Counter, MetricsPage, doubling, label_text
from exporter.families import FamilyMaker
from exporter.node import Node
from exporter.sources import Source, paged, stats_renderer
from lustre.formats import batch_stats

LABELS = ("fs", "mount", "target")
MDC = client_families("mdc", LABELS, "metadata servers")
OF_MDC = FamilyMaker("lustre_mdc", LABELS, "mdc.*")
MDC_OPERATIONS = OF_MDC.of("md_stats").counter(
    "metadata_operations",
    "Metadata operations by this client on the target, by operation. An operation may take several requests or none.",
    "operation")
BATCHES = OF_MDC.of("batch_stats").histogram(
    "operations_per_batch",
    "Batched requests, such as those of statahead, by the number of operations in each.", doubling(1, 64),
    versions="2.16+")


def start_mdc(_: Context) -> Collect:
    links = ClientsByTarget("mdc", MDC)
    metadata = Source("mdc", "md_stats", stats_renderer(StatsRule(MDC_OPERATIONS)))
    batches = Source("mdc", "batch_stats", paged(_batches))

    def collect(node: Node, page: MetricsPage) -> None:
        clients = node.clients("mdc")
        labels = {
            name: label_text(fs=device.fsname, mount=mount, target=device.target) for name, device, mount in clients
        }
        links.collect(node, page, labels)
        metadata.collect(node, page, labels.items())
        batches.collect(node, page, labels.items())

    return collect


def _batches(page: MetricsPage, labels: bytes, data: bytes) -> int:
    table = batch_stats.parse(data)
    if table.uppers:
        bounds = [INFINITY if upper == LAST_BUCKET else upper for upper in table.uppers]
        page.add(BATCHES, BATCHES.buckets(labels, bounds, table.counts))
    return table.skipped


LAST_BUCKET = 1 << 31
"""Bound of the kernel's last bucket, which also counts all larger values."""
FAMILIES = (*MDC.families(), MDC_OPERATIONS, BATCHES)
MDC_COLLECTOR = Collector("mdc", "requests to metadata servers, by mount and target", FAMILIES, start_mdc)
LMV_OPERATIONS = Counter(
    "lustre_lmv_metadata_operations_total", "Metadata operations by the mount on all metadata targets, by operation.",
    ("fs", "mount", "operation"), "lmv.*.md_stats")


def _whole_mounts(node: Node) -> list[tuple[str, bytes]]:
    return [(name, label_text(fs=device.fsname, mount=mount)) for name, device, mount in node.clients("lmv")]


LMV_COLLECTOR = Collector(
    "lmv", "metadata operations of a mount as a whole", (LMV_OPERATIONS,),
    reads("lmv", "md_stats", lambda: stats_renderer(StatsRule(LMV_OPERATIONS)), _whole_mounts))
