"""What went between this node and the object servers: ``osc.*``.

By default summed over the targets of a mount, by pool; ``--collector.osc.per-target`` shows every target instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from exporter.collector import Collect, Collector, Context
from exporter.connected import Sample
from exporter.families import Family, Page
from exporter.node import Client, Node
from exporter.osc import OSC, OscTotals, groups
from exporter.per_target import LinkSources
from exporter.totals import Combine, Group, Summed, imports_out, put_gauges, rpcs_out
from lustre.text import import_

COMBINE: dict[Family, Combine] = {OSC.average_wait: max, OSC.limits["max_pages_per_rpc"]: min}


def start(context: Context) -> Collect:
    """Begin with nothing read."""
    return _per_target() if context.settings.osc_per_target else _summed(context.osc_totals)


def _summed(totals: OscTotals) -> Collect:
    rpcs: Summed[Group] = Summed("osc", "rpc_stats", rpcs_out(OSC.rpcs))
    imports: Summed[Group] = Summed("osc", "import", imports_out(OSC), import_.essence)

    def collect(node: Node, page: Page) -> None:
        by_device = groups(node)
        totals.refresh(node).put(page)
        for summed in (rpcs, imports):
            summed.refresh(node, by_device)
            summed.put(page, COMBINE)
        put_gauges(page, _limits(node, by_device), COMBINE)

    return collect


def _limits(node: Node, by_device: dict[str, Group]) -> Iterator[tuple[Group, list[Sample]]]:
    for device, group in by_device.items():
        yield group, [
            (family, b"", value)
            for name, family in OSC.limits.items()
            if (value := node.number("osc", device, name)) is not None
        ]


def _per_target() -> Collect:
    sources = LinkSources("osc", OSC)

    def collect(node: Node, page: Page) -> None:
        membership = node.membership()

        def pool(client: Client) -> str:
            return membership.label(client.device.fsname, client.device.target)

        sources.collect(node, page, [(client, {"pool": pool(client)}) for client in node.clients("osc")])

    return collect


COLLECTOR = Collector("osc", "requests to object servers, by mount and pool", OSC.families(), start)
