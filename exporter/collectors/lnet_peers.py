"""LNet peers of this node: ``peers``. Off by default, because every client is a peer of a server."""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.families import Gauge
from exporter.node import Node
from exporter.page import Page
from exporter.text_format import label_text
from lustre.formats import lnet

PEERS = "lnet.peers"


def _gauge(name: str, text: str, unit: str = "") -> Gauge:
    return Gauge(f"lustre_lnet_peer_{name}", text, ("nid",), PEERS, unit)


UP = _gauge("up", "Whether the LNet peer is up (1) or down (0). LNet knows this of routers only.")
CREDITS = _gauge("credits", "Send credits left for the LNet peer. A negative value is the number of waiting messages.")
ROUTER_CREDITS = _gauge("router_credits", "Routing credits left for messages from the LNet peer.")
MOST_CREDITS = _gauge("max_credits", "Limit on concurrent messages to the LNet peer (send credits).")
QUEUED = _gauge("queued_bytes", "Bytes queued to be sent to the LNet peer.", "bytes")
STATES = {b"up": 1, b"down": 0}


def start(_: Context) -> Collect:
    """Start; no state is kept between passes."""

    def collect(node: Node, page: Page) -> None:
        data = node.read_of_node(PEERS)
        if data is None:
            return
        parsed = lnet.parse_peers(data)
        found = {peer.nid: peer for peer in parsed.peers}
        node.skipped_of_node(PEERS, parsed.skipped + len(parsed.peers) - len(found))
        for peer in found.values():
            labels = label_text(nid=peer.nid)
            page.sample(UP, labels, STATES.get(peer.state))
            page.sample(CREDITS, labels, peer.credits)
            page.sample(ROUTER_CREDITS, labels, peer.router_credits)
            page.sample(MOST_CREDITS, labels, peer.max_credits)
            page.sample(QUEUED, labels, max(peer.queued_bytes, 0))

    return collect


FAMILIES = (UP, CREDITS, ROUTER_CREDITS, MOST_CREDITS, QUEUED)
COLLECTOR = Collector("lnet_peers", "each LNet peer", FAMILIES, start, default=False)
