"""What went between this node and the metadata servers: ``mdc.*``. Metadata targets are few, so each is shown."""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.counters import Rule
from exporter.families import Counter, Page, label_text
from exporter.links import link_families
from exporter.node import Node
from exporter.per_target import LinkSources
from exporter.sources import Source, StatsRenderer

LABELS = ("fs", "mount", "target")
MDC = link_families("mdc", LABELS, "metadata servers")
METADATA = Counter(
    "lustre_mdc_metadata_operations_total",
    "Metadata operations this client carried out, by operation. One may take several requests, or none.",
    (*LABELS, "operation"),
    "mdc.*.md_stats",
)


def start(_: Context) -> Collect:
    """Begin with nothing read."""
    links = LinkSources("mdc", MDC)
    metadata = Source("mdc", "md_stats", StatsRenderer(Rule(METADATA)))

    def collect(node: Node, page: Page) -> None:
        clients = node.clients("mdc")
        links.collect(node, page, [(client, {}) for client in clients])
        metadata.collect(node, page, [
            (name, label_text(fs=device.fsname, mount=mount, target=device.target)) for name, device, mount in clients
        ])  # fmt: skip

    return collect


COLLECTOR = Collector("mdc", "requests to metadata servers, by mount and target", (*MDC.families(), METADATA), start)
