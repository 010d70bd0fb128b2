"""Requests of this node to object servers: ``osc.*``.

By default they are summed over the targets of a mount, by pool. ``--collector.osc.per-target`` shows every target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from exporter.collector import Collect, Collector, Context
from exporter.connection_families import Sample
from exporter.connections import OSC, ClientsByTarget, OscClients, OscTotals, QuietClients, StatsLines, labels_of
from exporter.exposition import Family, MetricsPage
from exporter.node import Node
from exporter.totals import (
    Combine,
    Contribution,
    MountPool,
    SummedParameter,
    import_contributions,
    put_gauges,
    rpc_stats_contributions,
)
from lustre.formats import import_

COMBINE: dict[Family, Combine] = {OSC.average_wait: max, OSC.limits["max_pages_per_rpc"]: min}


def start(context: Context) -> Collect:
    return _per_target(context.osc_totals) if context.settings.osc_per_target else _summed(context.osc_totals)


def _summed(totals: OscTotals) -> Collect:
    rpcs: SummedParameter[MountPool] = SummedParameter("osc", "rpc_stats", rpc_stats_contributions(OSC.rpcs))
    imports: SummedParameter[MountPool] = SummedParameter("osc", "import", import_contributions(OSC), import_.KEYS)

    quiet_clients = QuietClients()

    def collect(node: Node, page: MetricsPage) -> None:
        by_device = totals.groups.of(node)
        requests = totals.refresh(node)
        requests.put(page)
        quiet = quiet_clients.find(requests.contributions(), _busy(rpcs.contributions()))
        for summed, unchanged in ((rpcs, quiet), (imports, frozenset[str]())):
            summed.refresh(node, by_device, unchanged)
            summed.put(page, COMBINE)
        put_gauges(page, _limits(node, by_device), COMBINE)

    return collect


def _busy(read: Mapping[str, Contribution]) -> frozenset[str]:
    return frozenset([device for device, read_out in read.items() if any(value for _, _, value in read_out.gauges)])


def _limits(node: Node, by_device: Mapping[str, MountPool]) -> Iterator[tuple[MountPool, tuple[Sample]]]:
    numbers = node.numbers_of("osc", tuple(OSC.limits), by_device)
    for family, values in zip(OSC.limits.values(), numbers, strict=True):
        for group, value in zip(by_device.values(), values, strict=True):
            if value is not None:
                yield group, ((family, b"", value),)


def _per_target(totals: OscTotals) -> Collect:
    labelled = OscClients(labels_of)
    requests = StatsLines()
    others = ClientsByTarget("osc", OSC, without_stats=True)
    quiet_clients = QuietClients()

    def collect(node: Node, page: MetricsPage) -> None:
        labels = labelled.of(node)
        read = totals.refresh(node).contributions()
        requests.put(page, labels, read)
        others.collect(node, page, labels, quiet_clients.find(read, others.busy()))

    return collect


COLLECTOR = Collector("osc", "requests to object servers, by mount and pool", OSC.families(), start)
