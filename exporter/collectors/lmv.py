"""Metadata operations of a mount, before they are sent to metadata targets: ``lmv.*.md_stats``.

The sum of ``mdc.*.md_stats`` is larger if an operation needs several targets, and smaller if it needs none.
"""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.counters import Rule
from exporter.families import Counter
from exporter.node import Node
from exporter.page import Page
from exporter.sources import Source, StatsRenderer
from exporter.text_format import label_text

METADATA = Counter(
    "lustre_lmv_metadata_operations_total",
    "Metadata operations by the mount on all metadata targets, by operation.",
    ("fs", "mount", "operation"),
    "lmv.*.md_stats",
)


def start(_: Context) -> Collect:
    """Start without earlier readings."""
    metadata = Source("lmv", "md_stats", StatsRenderer(Rule(METADATA)))

    def collect(node: Node, page: Page) -> None:
        mounts = [(name, label_text(fs=device.fsname, mount=mount)) for name, device, mount in node.clients("lmv")]
        metadata.collect(node, page, mounts)

    return collect


COLLECTOR = Collector("lmv", "metadata operations of a mount as a whole", (METADATA,), start)
