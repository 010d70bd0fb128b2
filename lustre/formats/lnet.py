r"""LNet, the network layer: ``stats``, ``nis``, ``peers``, ``routes`` and ``buffers``. Unchanged since 2.10.

``stats``: messages that the node has sent and received, as one line of eleven numbers without names::

    0 30 0 74492 74492 0 0 1315767408 1315767376 0 0

The numbers are: messages in memory (now and maximum), errors, messages sent, received, routed and dropped, and the
bytes of these messages in the same order. The kernel counts messages in 32 bits, so these counts wrap at 2³².

``nis``: the network interfaces of the node, one row per interface and CPU partition::

    nid                      status alive refs peer  rtr   max    tx   min
    0@lo                         up     0    2    0    0     0     0     0
    10.0.2.15@tcp                up    -1    1    8    0   256   256   255

``peer`` and ``rtr`` are the credits of each peer. ``max`` is the number of send credits, ``tx`` the number available
now (a negative value is the number of waiting messages), ``min`` the lowest value of ``tx`` so far.

``peers``: one row per node that exchanges messages with this node::

    nid                      refs state  last   max   rtr   min    tx   min queue
    10.0.2.15@tcp               1    NA    -1     8     8     8     8     7 0

``max`` is the number of send credits. ``rtr`` and ``tx`` are the routing and send credits available now (a negative
value is the number of waiting messages); the ``min`` after each is its lowest value so far. ``queue`` is the number of
bytes that wait. ``state`` is NA except for routers.

``routes``: whether this node routes, then one row per network and router::

    Routing disabled
    net      hops priority   state router
    o2ib1       1        0      up 10.0.0.9@tcp

``buffers``, on routers: one row per buffer size and CPU partition. ``pages`` is the size (0 is for messages without
data), ``count`` the number of buffers, ``credits`` the number of free buffers (a negative value is the number of
waiting messages), ``min`` the lowest value of ``credits`` so far::

    pages count credits     min
        0   512     512     510
        1  4096    4090    3000
      256   256      -2      -9

>>> lnet = parse_stats(b"0 30 1 74492 74490 0 2 1315767408 1315767376 0 96\n")
>>> lnet.errors, lnet.messages
(1, Carried(sent=74492, received=74490, routed=0, dropped=2))
>>> lnet.bytes
Carried(sent=1315767408, received=1315767376, routed=0, dropped=96)
>>> parse_stats(b"0 30 0 74492 74490\n").messages is None
True
>>> nis = parse_nis(b"nid                      status alive refs peer  rtr   max    tx   min\n"
...                 b"10.0.2.15@tcp                up    -1    1    8    0   256   256   255\n")
>>> nis.rows
(Interface(nid=b'10.0.2.15@tcp', status=b'up', peer_credits=8, max_credits=256, credits=256),)
>>> peers = parse_peers(b"nid                      refs state  last   max   rtr   min    tx   min queue\n"
...                     b"10.0.2.15@tcp               1    up    -1     8     8     8    -2     7 4096\n")
>>> peers.rows
(Peer(nid=b'10.0.2.15@tcp', state=b'up', max_credits=8, router_credits=8, credits=-2, queued_bytes=4096),)
>>> parse_routes(b"Routing enabled\nnet      hops priority   state router\n"
...              b"o2ib1       1        0    down 10.0.0.9@tcp\n")
Routes(routing=True, routes=(Route(net=b'o2ib1', router=b'10.0.0.9@tcp', up=False),), skipped=0)
>>> parse_buffers(b"pages count credits     min\n  256   256      -2      -9\n")
Rows(rows=(Buffer(pages=256, count=256, credits=-2),), skipped=0)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from lustre.formats import header, rows
from lustre.formats.rows import Rows

_STATS = re.compile(rb"\s*+((?:\d{1,20}+ ){10}\d{1,20}+)[ \t]*+\n\s*+")


class Carried(NamedTuple):
    """Messages or bytes: sent, received, routed and dropped."""

    sent: int
    received: int
    routed: int
    dropped: int


@dataclass(frozen=True, slots=True)
class LnetStats:
    """The counters; all are None if the line is incomplete."""

    allocated: int | None
    """Messages in memory now."""
    errors: int | None
    messages: Carried | None
    bytes: Carried | None
    skipped: int


def parse_stats(data: bytes) -> LnetStats:
    if (line := _STATS.fullmatch(data)) is None:
        return LnetStats(None, None, None, None, header.skipped_lines(data, 0))
    allocated, _, errors, *carried = map(int, line[1].split())
    return LnetStats(allocated, errors, Carried(*carried[:4]), Carried(*carried[4:]), 0)


_NIS_HEADING = re.compile(rb"^nid ++status [^\n]*+\n", re.MULTILINE)
_NI_ROW = re.compile(
    rb"^(\S{1,80}+) ++([a-z~]{1,20}+) ++-?+\d{1,20}+ ++-?+\d{1,20}+ ++(-?+\d{1,20}+) ++-?+\d{1,20}+ ++(-?+\d{1,20}+)"
    rb" ++(-?+\d{1,20}+) ++-?+\d{1,20}+[ \t]*+\n",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Interface:
    """One row: the state of an interface for one CPU partition."""

    nid: bytes
    status: bytes
    """``up`` or ``down``."""
    peer_credits: int
    max_credits: int
    credits: int
    """Send credits available now; negative when messages wait."""


def parse_nis(data: bytes) -> Rows[Interface]:
    return rows.parse(data, _NI_ROW, lambda nid, status, *credits: Interface(nid, status, *map(int, credits)),
                      _NIS_HEADING)


_PEERS_HEADING = re.compile(rb"^nid ++refs [^\n]*+\n", re.MULTILINE)
_PEER_ROW = re.compile(
    rb"^(\S{1,80}+) ++-?+\d{1,20}+ ++([A-Za-z~]{1,20}+) ++-?+\d{1,20}+ ++(-?+\d{1,20}+) ++(-?+\d{1,20}+)"
    rb" ++-?+\d{1,20}+ ++(-?+\d{1,20}+) ++-?+\d{1,20}+ ++(-?+\d{1,20}+)[ \t]*+\n",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Peer:
    """One row: a node that exchanges messages with this node."""

    nid: bytes
    state: bytes
    """``up``, ``down``, or ``NA`` for a node that is not a router."""
    max_credits: int
    router_credits: int
    credits: int
    """Send credits available now; negative when messages wait."""
    queued_bytes: int


def parse_peers(data: bytes) -> Rows[Peer]:
    return rows.parse(data, _PEER_ROW, lambda nid, state, *credits: Peer(nid, state, *map(int, credits)),
                      _PEERS_HEADING)


_ROUTING = re.compile(rb"Routing (enabled|disabled)\n")
_ROUTES_HEADING = re.compile(rb"^net ++hops [^\n]*+\n", re.MULTILINE)
_ROUTE = re.compile(rb"^(\S{1,80}+) ++-?+\d{1,20}+ ++\d{1,20}+ ++(up|down) (\S{1,80}+)[ \t]*+\n", re.MULTILINE)
_BUFFERS_HEADING = re.compile(rb"^pages ++count [^\n]*+\n", re.MULTILINE)
_BUFFER = re.compile(rb"^ *+(\d{1,10}+) ++(\d{1,20}+) ++(-?+\d{1,20}+) ++-?+\d{1,20}+[ \t]*+\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Route:
    """A route to a network."""

    net: bytes
    router: bytes
    up: bool


@dataclass(frozen=True, slots=True)
class Routes:
    """Whether this node routes for other nodes (None if unknown), and its routes."""

    routing: bool | None
    routes: tuple[Route, ...]
    skipped: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """Buffers of one size for one CPU partition."""

    pages: int
    count: int
    credits: int
    """Free buffers; negative when messages wait."""


def parse_routes(data: bytes) -> Routes:
    routing = _ROUTING.match(data)
    found = _ROUTE.findall(data)
    understood = (routing is not None) + len(_ROUTES_HEADING.findall(data)) + len(found)
    enabled = None if routing is None else routing[1] == b"enabled"
    routes = tuple([Route(net, router, state == b"up") for net, state, router in found])
    return Routes(enabled, routes, header.skipped_lines(data, understood))


def parse_buffers(data: bytes) -> Rows[Buffer]:
    return rows.parse(data, _BUFFER, lambda *numbers: Buffer(*map(int, numbers)), _BUFFERS_HEADING)
