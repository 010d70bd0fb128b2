"""LNet on this node: ``stats``, ``nis``, ``peers``, ``routes``, ``buffers``, and the driver of Omni-Path adapters.

``lnet_peers`` is off by default: on a server, every client is a peer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from exporter.collector import Collector, stateless
from exporter.exposition import Counter, Gauge, MetricsPage, label_text
from exporter.families import FamilyMaker
from exporter.node import Node
from lustre.formats import lnet
from lustre.formats.lnet import Buffer, Carried, Interface

STATS, NIS, PEERS, ROUTES, BUFFERS = "lnet.stats", "lnet.nis", "lnet.peers", "lnet.routes", "lnet.buffers"
OF_STATS = FamilyMaker("lustre_lnet", (), STATS)
MESSAGES = OF_STATS.counter(
    "messages",
    "LNet messages by event: sent, received, routed for other nodes, dropped. The kernel's counters wrap after"
    " 4294967295.", "event")
BYTES = OF_STATS.counter(
    "bytes", "Bytes of LNet messages, by event: sent, received, routed for other nodes, dropped.", "event")
ERRORS = OF_STATS.counter("errors", "LNet messages that failed.")
ALLOCATED = OF_STATS.gauge("allocated_messages", "LNet messages in memory now.")
OF_INTERFACE = FamilyMaker("lustre_lnet_interface", ("nid",), NIS)
INTERFACE_UP = OF_INTERFACE.gauge("up", "Whether the LNet interface is up (1) or down (0).")
INTERFACE_CREDITS = OF_INTERFACE.gauge(
    "credits", "Send credits left on the LNet interface. A negative value is the number of waiting messages.")
INTERFACE_MAX_CREDITS = OF_INTERFACE.gauge(
    "max_credits", "Limit on concurrent messages over the LNet interface (send credits).")
INTERFACE_PEER_CREDITS = OF_INTERFACE.gauge(
    "peer_credits", "Limit on concurrent messages to one peer over the LNet interface (peer credits).")
OMNI_PATH_NAMES = ("krcvqs", "piothreshold", "sge_copy_mode", "wss_threshold", "cap_mask")
OMNI_PATH = Gauge(
    "lustre_lnet_omni_path_parameter",
    "Parameter of the Omni-Path driver (hfi1), or the first number of a list. tierctl audit compares it with a "
    "paper.", ("setting",), "module.*.parameters")


def collect_lnet(node: Node, page: MetricsPage) -> None:
    if (carried := node.parsed_global(STATS, lnet.parse_stats)) is not None:
        _carried(page, MESSAGES, carried.messages)
        _carried(page, BYTES, carried.bytes)
        page.sample(ERRORS, b"", carried.errors)
        page.sample(ALLOCATED, b"", carried.allocated)
    if (nis := node.parsed_global(NIS, lnet.parse_nis)) is not None:
        _interfaces(page, nis.rows)
    for name in OMNI_PATH_NAMES:
        page.sample(OMNI_PATH, label_text(setting=name), node.driver_parameter("hfi1", name))


def _carried(page: MetricsPage, family: Counter, carried: Carried | None) -> None:
    if carried is not None:
        for event, number in carried._asdict().items():
            page.sample(family, label_text(event=event), number)


def _interfaces(page: MetricsPage, rows: Iterable[Interface]) -> None:
    """Show one series per interface, summed over CPU partitions, because each partition has a share of the credits."""
    by_nid: dict[bytes, list[Interface]] = {}
    for row in rows:
        by_nid.setdefault(row.nid, []).append(row)
    for nid, parts in by_nid.items():
        labels = label_text(nid=nid)
        page.sample(INTERFACE_UP, labels, int(all(part.status == b"up" for part in parts)))
        page.sample(INTERFACE_CREDITS, labels, sum([part.credits for part in parts]))
        page.sample(INTERFACE_MAX_CREDITS, labels, sum([part.max_credits for part in parts]))
        page.sample(INTERFACE_PEER_CREDITS, labels, parts[0].peer_credits)


LNET_FAMILIES = (
    MESSAGES, BYTES, ERRORS, ALLOCATED, INTERFACE_UP, INTERFACE_CREDITS, INTERFACE_MAX_CREDITS, INTERFACE_PEER_CREDITS,
    OMNI_PATH)
LNET_COLLECTOR = Collector("lnet", "messages, errors and interfaces of LNet", LNET_FAMILIES, stateless(collect_lnet))
OF_PEER = FamilyMaker("lustre_lnet_peer", ("nid",), PEERS)
PEER_UP = OF_PEER.gauge("up", "Whether the LNet peer is up (1) or down (0). LNet reports this for routers only.")
PEER_CREDITS = OF_PEER.gauge(
    "credits", "Send credits left for the LNet peer. A negative value is the number of waiting messages.")
PEER_ROUTER_CREDITS = OF_PEER.gauge("router_credits", "Routing credits left for messages from the LNet peer.")
PEER_MAX_CREDITS = OF_PEER.gauge("max_credits", "Limit on concurrent messages to the LNet peer (send credits).")
PEER_QUEUED = OF_PEER.gauge("queued_bytes", "Bytes queued to be sent to the LNet peer.")
PEER_STATES = {b"up": 1, b"down": 0}


def collect_lnet_peers(node: Node, page: MetricsPage) -> None:
    if (parsed := node.parsed_global(PEERS, lnet.parse_peers)) is None:
        return
    found = {peer.nid: peer for peer in parsed.rows}
    node.skipped_global(PEERS, len(parsed.rows) - len(found))
    for peer in found.values():
        labels = label_text(nid=peer.nid)
        page.sample(PEER_UP, labels, PEER_STATES.get(peer.state))
        page.sample(PEER_CREDITS, labels, peer.credits)
        page.sample(PEER_ROUTER_CREDITS, labels, peer.router_credits)
        page.sample(PEER_MAX_CREDITS, labels, peer.max_credits)
        page.sample(PEER_QUEUED, labels, max(peer.queued_bytes, 0))


LNET_PEERS_FAMILIES = (PEER_UP, PEER_CREDITS, PEER_ROUTER_CREDITS, PEER_MAX_CREDITS, PEER_QUEUED)
LNET_PEERS_COLLECTOR = Collector(
    "lnet_peers", "each LNet peer", LNET_PEERS_FAMILIES, stateless(collect_lnet_peers), default=False)
OF_ROUTES = FamilyMaker("lustre_lnet", (), ROUTES)
ROUTING = OF_ROUTES.gauge("routing", "Whether this node routes LNet messages for other nodes (1) or not (0).")
ROUTE_UP = OF_ROUTES.gauge(
    "route_up", "Whether the LNet route to the network through the router is up (1) or down (0).", "net", "nid")
OF_BUFFERS = FamilyMaker("lustre_lnet_router", ("pages",), BUFFERS)
ROUTER_BUFFERS = OF_BUFFERS.gauge(
    "buffers", "Router buffers, by size in pages. Buffers of 0 pages hold messages without data.")
ROUTER_BUFFER_CREDITS = OF_BUFFERS.gauge(
    "buffer_credits", "Free router buffers, by size in pages. A negative value is the number of waiting messages.")


def collect_lnet_routing(node: Node, page: MetricsPage) -> None:
    if (parsed := node.parsed_global(ROUTES, lnet.parse_routes)) is not None:
        ways = {(route.net, route.router): route.up for route in parsed.routes}
        node.skipped_global(ROUTES, len(parsed.routes) - len(ways))
        page.sample(ROUTING, b"", None if parsed.routing is None else int(parsed.routing))
        for (net, router), up in ways.items():
            page.sample(ROUTE_UP, label_text(net=net, nid=router), int(up))
    if (buffers := node.parsed_global(BUFFERS, lnet.parse_buffers)) is not None:
        _buffers(page, buffers.rows)


def _buffers(page: MetricsPage, rows: Sequence[Buffer]) -> None:
    """Show one series per size, summed over CPU partitions, because each partition has a share of the buffers."""
    for pages in dict.fromkeys(buffer.pages for buffer in rows):
        of_size = [buffer for buffer in rows if buffer.pages == pages]
        page.sample(ROUTER_BUFFERS, label_text(pages=str(pages)), sum([buffer.count for buffer in of_size]))
        page.sample(ROUTER_BUFFER_CREDITS, label_text(pages=str(pages)), sum([buffer.credits for buffer in of_size]))


LNET_ROUTING_FAMILIES = (ROUTING, ROUTE_UP, ROUTER_BUFFERS, ROUTER_BUFFER_CREDITS)
LNET_ROUTING_COLLECTOR = Collector(
    "lnet_routing", "LNet routes, and buffers of a router", LNET_ROUTING_FAMILIES, stateless(collect_lnet_routing))
