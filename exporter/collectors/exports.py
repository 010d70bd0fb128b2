"""Operations of each client on each target of this node: ``obdfilter.*.exports.*.stats``, ``mdt.*.exports.*.stats``.

The collector is off by default, because it has about twenty series for each client and target.
"""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.exposition import MetricsPage, label_text
from exporter.families import FamilyMaker
from exporter.node import Node
from exporter.sources import Source, stats_renderer

LABELS = ("fs", "target", "nid")
RULES = {
    kind: FamilyMaker(f"lustre_{prefix}_client", LABELS, f"{kind}.*.exports.*.stats").traffic(
        "Operations of the client on the target, by operation.",
        "Total time the target spent on the client's operations, by operation.",
        "Bytes read from the target by the client.",
        "Bytes written to the target by the client.", timed_since="2.14+")
    for kind, prefix in (("obdfilter", "ost"), ("mdt", "mdt"))
}


def start(_: Context) -> Collect:
    renderers = {kind: stats_renderer(rule) for kind, rule in RULES.items()}
    sources: dict[str, Source] = {}

    def collect(node: Node, page: MetricsPage) -> None:
        places = {
            f"{kind}/{name}/exports": (kind, labels) for kind in RULES for name, labels in node.labelled_targets(kind)
        }
        for gone in sources.keys() - places.keys():
            del sources[gone]
        for place, (kind, labels) in places.items():
            source = sources.setdefault(place, Source(place, "stats", renderers[kind]))
            source.collect(node, page, [
                (nid, b"%b,%b" % (labels, label_text(nid=nid))) for nid, _ in node.devices(place)
            ])  # fmt: skip

    return collect


FAMILIES = tuple([family for rule in RULES.values() for family in rule.families()])
COLLECTOR = Collector(
    "exports", "operations and bytes of each client on each target of this node", FAMILIES, start, default=False)
