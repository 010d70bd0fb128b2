"""Requests from this node to the metadata servers: ``mdc.*``. Metadata targets are few, so each has its own series."""

from __future__ import annotations

from exporter.bounds import INFINITY, doubling
from exporter.collector import Collect, Collector, Context
from exporter.counters import Rule
from exporter.families import Counter, Histogram
from exporter.links import link_families
from exporter.node import Node
from exporter.page import Page
from exporter.per_target import LinkSources
from exporter.sources import Render, Rendered, Source, StatsRenderer
from exporter.text_format import label_text
from lustre.formats import batch_stats

LABELS = ("fs", "mount", "target")
MDC = link_families("mdc", LABELS, "metadata servers")
METADATA = Counter(
    "lustre_mdc_metadata_operations_total",
    "Metadata operations by this client on the target, by operation. An operation may take several requests or none.",
    (*LABELS, "operation"),
    "mdc.*.md_stats",
)

BATCHES = Histogram(
    "lustre_mdc_operations_per_batch",
    "Batched requests, such as those of statahead, by the number of operations in each.",
    LABELS,
    "mdc.*.batch_stats",
    versions="2.16+",
    usual=doubling(1, 64),
)


def start(_: Context) -> Collect:
    """Start without earlier readings."""
    links = LinkSources("mdc", MDC)
    metadata = Source("mdc", "md_stats", StatsRenderer(Rule(METADATA)))
    batches = Source("mdc", "batch_stats", _batches)

    def collect(node: Node, page: Page) -> None:
        clients = node.clients("mdc")
        labels = {
            name: label_text(fs=device.fsname, mount=mount, target=device.target) for name, device, mount in clients
        }
        links.collect(node, page, labels)
        metadata.collect(node, page, labels.items())
        batches.collect(node, page, labels.items())

    return collect


def _batches(labels: bytes) -> Render:
    def render(data: bytes) -> Rendered:
        table = batch_stats.parse(data)
        if not table.uppers:
            return Rendered((), table.skipped)
        bounds = [INFINITY if upper == LARGEST else upper for upper in table.uppers]
        return Rendered(((BATCHES, BATCHES.buckets(labels, bounds, table.counts)),), table.skipped)

    return render


LARGEST = 1 << 31
"""Bound of the kernel's last bucket, which also counts all larger values."""


FAMILIES = (*MDC.families(), METADATA, BATCHES)
COLLECTOR = Collector("mdc", "requests to metadata servers, by mount and target", FAMILIES, start)
