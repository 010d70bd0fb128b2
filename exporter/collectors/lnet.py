"""LNet of this node: ``stats`` and ``nis``."""

from __future__ import annotations

from collections.abc import Iterable

from exporter.collector import Collect, Collector, Context
from exporter.families import Counter, Gauge
from exporter.node import Node
from exporter.page import Page
from exporter.text_format import label_text
from lustre.formats import lnet
from lustre.formats.lnet import Carried, Interface

STATS = "lnet.stats"
NIS = "lnet.nis"
MESSAGES = Counter(
    "lustre_lnet_messages_total",
    "LNet messages by event: sent, received, routed for other nodes, dropped. The kernel's counters wrap after"
    " 4294967295.",
    ("event",),
    STATS,
)
BYTES = Counter(
    "lustre_lnet_bytes_total",
    "Bytes of LNet messages, by event: sent, received, routed for other nodes, dropped.",
    ("event",),
    STATS,
    "bytes",
)
ERRORS = Counter("lustre_lnet_errors_total", "LNet messages that failed.", (), STATS)
ALLOCATED = Gauge("lustre_lnet_allocated_messages", "LNet messages in memory now.", (), STATS)
UP = Gauge("lustre_lnet_interface_up", "Whether the LNet interface is up (1) or down (0).", ("nid",), NIS)
CREDITS = Gauge(
    "lustre_lnet_interface_credits",
    "Send credits left on the LNet interface. A negative value is the number of waiting messages.",
    ("nid",),
    NIS,
)
MOST_CREDITS = Gauge(
    "lustre_lnet_interface_max_credits",
    "Limit on concurrent messages over the LNet interface (send credits).",
    ("nid",),
    NIS,
)
PEER_CREDITS = Gauge(
    "lustre_lnet_interface_peer_credits",
    "Limit on concurrent messages to one peer over the LNet interface (peer credits).",
    ("nid",),
    NIS,
)


def start(_: Context) -> Collect:
    """Start; no state is kept between passes."""

    def collect(node: Node, page: Page) -> None:
        if (data := node.read_of_node(STATS)) is not None:
            carried = lnet.parse_stats(data)
            node.skipped_of_node(STATS, carried.skipped)
            _carried(page, MESSAGES, carried.messages)
            _carried(page, BYTES, carried.bytes)
            page.sample(ERRORS, b"", carried.errors)
            page.sample(ALLOCATED, b"", carried.allocated)
        if (data := node.read_of_node(NIS)) is not None:
            nis = lnet.parse_nis(data)
            node.skipped_of_node(NIS, nis.skipped)
            _interfaces(page, nis.interfaces)

    return collect


def _carried(page: Page, family: Counter, carried: Carried | None) -> None:
    if carried is not None:
        for event, number in carried._asdict().items():
            page.sample(family, label_text(event=event), number)


def _interfaces(page: Page, rows: Iterable[Interface]) -> None:
    """One series per interface, summed over CPU partitions, each of which has a share of the credits."""
    by_nid: dict[bytes, list[Interface]] = {}
    for row in rows:
        by_nid.setdefault(row.nid, []).append(row)
    for nid, parts in by_nid.items():
        labels = label_text(nid=nid)
        page.sample(UP, labels, int(all(part.status == b"up" for part in parts)))
        page.sample(CREDITS, labels, sum([part.credits for part in parts]))
        page.sample(MOST_CREDITS, labels, sum([part.max_credits for part in parts]))
        page.sample(PEER_CREDITS, labels, parts[0].peer_credits)


FAMILIES = (MESSAGES, BYTES, ERRORS, ALLOCATED, UP, CREDITS, MOST_CREDITS, PEER_CREDITS)
COLLECTOR = Collector("lnet", "messages, errors and interfaces of LNet", FAMILIES, start)
