"""Requests from this node to the object servers: ``osc.*``.

Summed over the targets of a mount, by pool. With ``--collector.osc.per-target`` each target has its own series.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from exporter.collector import Collect, Collector, Context
from exporter.connected import Sample
from exporter.families import Family
from exporter.node import Node
from exporter.osc import OSC, Labelled, OscTotals
from exporter.page import Page
from exporter.per_target import LinkSources, StatsLines
from exporter.read_outs import imports_out, rpcs_out
from exporter.totals import Combine, Group, Summed, put_gauges
from lustre.formats import import_
from lustre.formats.compiled import hash_of

COMBINE: dict[Family, Combine] = {OSC.average_wait: max, OSC.limits["max_pages_per_rpc"]: min}


def start(context: Context) -> Collect:
    """Start without earlier readings."""
    return _per_target(context.osc_totals) if context.settings.osc_per_target else _summed(context.osc_totals)


def _summed(totals: OscTotals) -> Collect:
    rpcs: Summed[Group] = Summed("osc", "rpc_stats", rpcs_out(OSC.rpcs))
    imports: Summed[Group] = Summed("osc", "import", imports_out(OSC), hash_of(import_.essence))

    def collect(node: Node, page: Page) -> None:
        by_device = totals.groups.of(node)
        totals.refresh(node).put(page)
        for summed in (rpcs, imports):
            summed.refresh(node, by_device)
            summed.put(page, COMBINE)
        put_gauges(page, _limits(node, by_device), COMBINE)

    return collect


def _limits(node: Node, by_device: Mapping[str, Group]) -> Iterator[tuple[Group, tuple[Sample]]]:
    for name, family in OSC.limits.items():
        for device, value in node.numbers("osc", name, by_device):
            yield by_device[device], ((family, b"", value),)


def _per_target(totals: OscTotals) -> Collect:
    labelled = Labelled()
    requests = StatsLines()
    others = LinkSources("osc", OSC, without_stats=True)

    def collect(node: Node, page: Page) -> None:
        labels = labelled.of(node)
        requests.put(page, labels, totals.refresh(node).contributions())
        others.collect(node, page, labels)

    return collect


COLLECTOR = Collector("osc", "requests to object servers, by mount and pool", OSC.families(), start)
