"""LNet routes and router buffers: ``routes`` and ``buffers``."""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.families import Gauge
from exporter.node import Node
from exporter.page import Page
from exporter.text_format import label_text
from lustre.formats import lnet

ROUTES = "lnet.routes"
BUFFERS = "lnet.buffers"
ROUTING = Gauge(
    "lustre_lnet_routing", "Whether this node routes LNet messages for other nodes (1) or not (0).", (), ROUTES
)
UP = Gauge(
    "lustre_lnet_route_up",
    "Whether the LNet route to the network through the router is up (1) or down (0).",
    ("net", "nid"),
    ROUTES,
)
COUNT = Gauge(
    "lustre_lnet_router_buffers",
    "Router buffers, by size in pages. Buffers of 0 pages hold messages without data.",
    ("pages",),
    BUFFERS,
)
FREE = Gauge(
    "lustre_lnet_router_buffer_credits", "Free router buffers, by size in pages. A negative value is the number of"
                                         " waiting messages.", ("pages",),
    BUFFERS,
)  # fmt: skip


def start(_: Context) -> Collect:
    """Start; no state is kept between passes."""

    def collect(node: Node, page: Page) -> None:
        if (data := node.read_of_node(ROUTES)) is not None:
            parsed = lnet.parse_routes(data)
            ways = {(route.net, route.router): route.up for route in parsed.routes}
            node.skipped_of_node(ROUTES, parsed.skipped + len(parsed.routes) - len(ways))
            page.sample(ROUTING, b"", None if parsed.routing is None else int(parsed.routing))
            for (net, router), up in ways.items():
                page.sample(UP, label_text(net=net, nid=router), int(up))
        if (data := node.read_of_node(BUFFERS)) is not None:
            _buffers(node, page, data)

    return collect


def _buffers(node: Node, page: Page, data: bytes) -> None:
    """One series per size, summed over CPU partitions, each of which has a share of the buffers."""
    parsed = lnet.parse_buffers(data)
    node.skipped_of_node(BUFFERS, parsed.skipped)
    for pages in dict.fromkeys(buffer.pages for buffer in parsed.buffers):
        of_size = [buffer for buffer in parsed.buffers if buffer.pages == pages]
        page.sample(COUNT, label_text(pages=str(pages)), sum([buffer.count for buffer in of_size]))
        page.sample(FREE, label_text(pages=str(pages)), sum([buffer.credits for buffer in of_size]))


FAMILIES = (ROUTING, UP, COUNT, FREE)
COLLECTOR = Collector("lnet_routing", "LNet routes, and buffers of a router", FAMILIES, start)
