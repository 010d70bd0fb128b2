"""Nodemaps, and the operations of their clients: ``nodemap.*``.

The collector does not read the clients of a nodemap (``exports``, ``ranges``), because there may be thousands.
"""

from __future__ import annotations

from collections.abc import Callable

from exporter.collector import Collect, Collector, Context, all_of, reads, reads_numbers, stateless
from exporter.counters import StatsRule
from exporter.exposition import Gauge, MetricsPage, label_text
from exporter.families import FamilyMaker
from exporter.node import Node
from exporter.sources import stats_renderer

OF_NODEMAP = FamilyMaker("lustre_nodemap", ("nodemap",), "nodemap.*")
ACTIVE = Gauge("lustre_nodemap_active", "Whether nodemaps are enabled (1) or disabled (0).", (), "nodemap.active")
FLAGS = OF_NODEMAP.numbers(*[
    (parameter, parameter.removesuffix("_nodemap"), f"Whether {text} (1) or not (0).", versions)
    for parameter, text, versions in (
        ("trusted_nodemap", "the nodemap trusts the user and group ids of its clients", "2.10+"),
        ("admin_nodemap", "root on the nodemap's clients keeps root rights", "2.10+"),
        ("deny_unknown", "the nodemap refuses users who are not mapped", "2.10+"),
        ("readonly_mount", "clients of the nodemap may only read", "2.16+"),
        ("deny_mount", "the nodemap refuses mounts of its clients", "2.17+"),
    )
])
RULES = {
    name: FamilyMaker(f"lustre_nodemap_{target}", OF_NODEMAP.labels, f"nodemap.*.{name}").traffic(
        f"Operations of the nodemap's clients on {of} of this node, by operation.",
        f"Total time {of} of this node spent on operations of the nodemap's clients, by operation.",
        f"Bytes read by the nodemap's clients from {of} of this node.",
        f"Bytes written by the nodemap's clients to {of} of this node.", versions="2.17+")
    for name, target, of in (("dt_stats", "ost", "object targets"), ("md_stats", "mdt", "metadata targets"))
}


def _nodemaps(node: Node) -> list[tuple[str, bytes]]:
    return [(name, label_text(nodemap=name)) for name, _ in node.devices("nodemap")]


def _active(node: Node, page: MetricsPage) -> None:
    page.sample(ACTIVE, b"", node.number_global("nodemap.active"))


def _reads(name: str, rule: StatsRule) -> Callable[[Context], Collect]:
    return reads("nodemap", name, lambda: stats_renderer(rule), _nodemaps)


FAMILIES = (ACTIVE, *FLAGS.values(), *[family for rule in RULES.values() for family in rule.families()])
COLLECTOR = Collector("nodemap", "nodemaps, and operations of their clients", FAMILIES, all_of(
    stateless(_active), *[_reads(name, rule) for name, rule in RULES.items()],
    reads_numbers("nodemap", FLAGS, _nodemaps)))
