"""Nodemaps, and the operations of their clients: ``nodemap.*``.

The collector does not read the clients of a nodemap (``exports``, ``ranges``), because there may be thousands.
"""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.counters import StatsRule
from exporter.exposition import Counter, Gauge, MetricsPage, label_text
from exporter.node import Node
from exporter.sources import Source, StatsRenderer

LABELS = ("nodemap",)
ACTIVE = Gauge("lustre_nodemap_active", "Whether nodemaps are enabled (1) or disabled (0).", (), "nodemap.active")
FLAGS = {
    parameter: Gauge(
        f"lustre_nodemap_{parameter.removesuffix('_nodemap')}", f"Whether {text} (1) or not (0).", LABELS,
        f"nodemap.*.{parameter}", versions=versions)
    for parameter, text, versions in (
        ("trusted_nodemap", "the nodemap trusts the user and group ids of its clients", "2.10+"),
        ("admin_nodemap", "root on the nodemap's clients keeps root rights", "2.10+"),
        ("deny_unknown", "the nodemap refuses users who are not mapped", "2.10+"),
        ("readonly_mount", "clients of the nodemap may only read", "2.16+"),
        ("deny_mount", "clients of the nodemap may not mount", "2.17+"),
    )
}


def _rule(target: str, of: str, source: str) -> StatsRule:
    def counter(name: str, text: str, *more: str) -> Counter:
        labels = (*LABELS, *more)
        return Counter(f"lustre_nodemap_{target}_{name}_total", text, labels, f"nodemap.*.{source}", "2.17+")

    return StatsRule(
        counter("operations", f"Operations of the nodemap's clients on {of} of this node, by operation.", "operation"),
        counter(
            "operation_seconds",
            f"Total time {of} of this node spent on operations of the nodemap's clients, by operation.", "operation"),
        {
            b"read_bytes": counter("read_bytes", f"Bytes read by the nodemap's clients from {of} of this node."),
            b"write_bytes": counter("write_bytes", f"Bytes written by the nodemap's clients to {of} of this node."),
        },
    )


RULES = {
    "dt_stats": _rule("ost", "object targets", "dt_stats"),
    "md_stats": _rule("mdt", "metadata targets", "md_stats"),
}


def start(_: Context) -> Collect:
    sources = [Source("nodemap", name, StatsRenderer(rule)) for name, rule in RULES.items()]

    def collect(node: Node, page: MetricsPage) -> None:
        page.sample(ACTIVE, b"", node.number_global("nodemap.active"))
        nodemaps = [(name, label_text(nodemap=name)) for name, _ in node.devices("nodemap")]
        for source in sources:
            source.collect(node, page, nodemaps)
        for name, labels in nodemaps:
            for parameter, family in FLAGS.items():
                page.sample(family, labels, node.number("nodemap", name, parameter))

    return collect


FAMILIES = (ACTIVE, *FLAGS.values(), *[family for rule in RULES.values() for family in rule.families()])
COLLECTOR = Collector("nodemap", "nodemaps, and operations of their clients", FAMILIES, start)
