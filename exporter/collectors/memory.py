"""Memory allocated by Lustre's modules (``memused``) and by LNet (``lnet_memused``)."""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.families import Gauge
from exporter.node import Node
from exporter.page import Page

NUMBERS = {
    "memused": Gauge("lustre_memory_used_bytes", "Memory allocated by Lustre.", (), "memused", "bytes"),
    "lnet.lnet_memused": Gauge(
        "lustre_lnet_memory_used_bytes", "Memory allocated by LNet.", (), "lnet.lnet_memused", "bytes"
    ),
}


def start(_: Context) -> Collect:
    """Start; no state is kept between passes."""

    def collect(node: Node, page: Page) -> None:
        for parameter, family in NUMBERS.items():
            page.sample(family, b"", node.number_of_node(parameter))

    return collect


COLLECTOR = Collector("memory", "memory allocated by Lustre and LNet", tuple(NUMBERS.values()), start)
