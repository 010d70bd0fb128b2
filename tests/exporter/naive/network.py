"""LNet: messages, interfaces, routes, peers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from tests.exporter.naive.forms import Sample
from tests.exporter.naive.reader import Reader


def network(reader: Reader) -> Iterator[Sample]:
    if (text := reader.lnet("stats")) is not None:
        words = [Decimal(word) for word in text.split()]
        yield "lustre_lnet_allocated_messages", {}, words[0]
        yield "lustre_lnet_errors_total", {}, words[2]
        for i, event in enumerate(("sent", "received", "routed", "dropped")):
            yield "lustre_lnet_messages_total", {"event": event}, words[3 + i]
            yield "lustre_lnet_bytes_total", {"event": event}, words[7 + i]
    interfaces: dict[str, list[list[str]]] = defaultdict(list)
    for line in (reader.lnet("nis") or "").splitlines()[1:]:
        interfaces[line.split()[0]].append(line.split())
    for nid, rows in interfaces.items():
        labels = {"nid": nid}
        yield "lustre_lnet_interface_up", labels, Decimal(all(row[1] == "up" for row in rows))
        yield "lustre_lnet_interface_peer_credits", labels, Decimal(rows[0][4])
        yield "lustre_lnet_interface_max_credits", labels, Decimal(sum(int(row[6]) for row in rows))
        yield "lustre_lnet_interface_credits", labels, Decimal(sum(int(row[7]) for row in rows))
    if (text := reader.lnet("routes")) is not None:
        first, _, *rows = text.splitlines()
        yield "lustre_lnet_routing", {}, Decimal(first == "Routing enabled")
        for row in rows:
            net, _, _, state, router = row.split()
            yield "lustre_lnet_route_up", {"net": net, "nid": router}, Decimal(state == "up")
    sizes: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for line in (reader.lnet("buffers") or "").splitlines()[1:]:
        pages, count, left, _ = line.split()
        sizes[pages].append((int(count), int(left)))
    for pages, parts in sizes.items():
        yield "lustre_lnet_router_buffers", {"pages": pages}, Decimal(sum(count for count, _ in parts))
        yield "lustre_lnet_router_buffer_credits", {"pages": pages}, Decimal(sum(left for _, left in parts))
    for line in (reader.lnet("peers") or "").splitlines()[1:]:
        nid, _, state, _, most, router, _, left, _, queued = line.split()
        labels = {"nid": nid}
        if state in {"up", "down"}:
            yield "lustre_lnet_peer_up", labels, Decimal(state == "up")
        yield "lustre_lnet_peer_max_credits", labels, Decimal(most)
        yield "lustre_lnet_peer_router_credits", labels, Decimal(router)
        yield "lustre_lnet_peer_credits", labels, Decimal(left)
        yield "lustre_lnet_peer_queued_bytes", labels, Decimal(queued)
