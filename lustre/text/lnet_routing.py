r"""Routing between networks: ``routes`` and ``buffers`` of LNet, the same from 2.10 on.

``routes``: whether this node routes, then a row per network and the router to it::

    Routing disabled
    net      hops priority   state router
    o2ib1       1        0      up 10.0.0.9@tcp

``buffers``, on routers: a row per size of buffer and CPU partition. ``pages`` is the size (0 is for messages without
data), ``count`` how many there are, ``credits`` how many are free (negative: so many messages wait), ``min`` the fewest
there ever were::

    pages count credits     min
        0   512     512     510
        1  4096    4090    3000
      256   256      -2      -9

>>> routes(b"Routing enabled\nnet      hops priority   state router\no2ib1       1        0    down 10.0.0.9@tcp\n")
Routes(routing=True, routes=(Route(net=b'o2ib1', router=b'10.0.0.9@tcp', up=False),), skipped=0)
>>> buffers(b"pages count credits     min\n  256   256      -2      -9\n")
Buffers(buffers=(Buffer(pages=256, count=256, credits=-2),), skipped=0)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.text import header

_ROUTING = re.compile(rb"Routing (enabled|disabled)\n")
_HEADING = re.compile(rb"^net ++hops [^\n]*+\n", re.MULTILINE)
_ROUTE = re.compile(rb"^(\S{1,80}+) ++-?+\d{1,20}+ ++\d{1,20}+ ++(up|down) (\S{1,80}+)[ \t]*+\n", re.MULTILINE)
_BUFFERS = re.compile(rb"^pages ++count [^\n]*+\n", re.MULTILINE)
_BUFFER = re.compile(rb"^ *+(\d{1,10}+) ++(\d{1,20}+) ++(-?+\d{1,20}+) ++-?+\d{1,20}+[ \t]*+\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Route:
    """A way to a network."""

    net: bytes
    router: bytes
    up: bool


@dataclass(frozen=True, slots=True)
class Routes:
    """Whether this node routes for others (None: not told), and its own ways."""

    routing: bool | None
    routes: tuple[Route, ...]
    skipped: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """Buffers of one size, as one CPU partition sees them."""

    pages: int
    count: int
    credits: int
    """Free now; negative when messages wait."""


@dataclass(frozen=True, slots=True)
class Buffers:
    """All rows; none on a node that is no router."""

    buffers: tuple[Buffer, ...]
    skipped: int


def routes(data: bytes) -> Routes:
    """Read LNet's ``routes``."""
    routing = _ROUTING.match(data)
    rows = _ROUTE.findall(data)
    understood = (routing is not None) + len(_HEADING.findall(data)) + len(rows)
    found = tuple([Route(net, router, state == b"up") for net, state, router in rows])
    enabled = None if routing is None else routing[1] == b"enabled"
    return Routes(enabled, found, header.skipped_lines(data, understood))


def buffers(data: bytes) -> Buffers:
    """Read LNet's ``buffers``."""
    rows = _BUFFER.findall(data)
    found = tuple([Buffer(int(pages), int(count), int(left)) for pages, count, left in rows])
    return Buffers(found, header.skipped_lines(data, len(_BUFFERS.findall(data)) + len(rows)))
