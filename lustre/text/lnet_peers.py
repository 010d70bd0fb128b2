r"""Whom this node talks to: ``peers`` of LNet, a row per peer, the same from 2.10 on::

    nid                      refs state  last   max   rtr   min    tx   min queue
    10.0.2.15@tcp               1    NA    -1     8     8     8     8     7 0

``max`` are the credits to send, ``rtr`` and ``tx`` the credits left now to route and to send (negative: so many
messages wait), each followed by the fewest there ever were; ``queue`` are the bytes that wait. ``state`` is NA but for
routers.

>>> peers = parse(b"nid                      refs state  last   max   rtr   min    tx   min queue\n"
...               b"10.0.2.15@tcp               1    up    -1     8     8     8    -2     7 4096\n")
>>> peers.peers
(Peer(nid=b'10.0.2.15@tcp', state=b'up', max_credits=8, router_credits=8, credits=-2, queued_bytes=4096),)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.text import header

_HEADING = re.compile(rb"^nid ++refs [^\n]*+\n", re.MULTILINE)
_ROW = re.compile(
    rb"^(\S{1,80}+) ++-?+\d{1,20}+ ++([A-Za-z~]{1,20}+) ++-?+\d{1,20}+ ++(-?+\d{1,20}+) ++(-?+\d{1,20}+)"
    rb" ++-?+\d{1,20}+ ++(-?+\d{1,20}+) ++-?+\d{1,20}+ ++(-?+\d{1,20}+)[ \t]*+\n",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Peer:
    """One row."""

    nid: bytes
    state: bytes
    """``up``, ``down``, or ``NA`` for what is no router."""
    max_credits: int
    router_credits: int
    credits: int
    """Left to send with now; negative when messages wait."""
    queued_bytes: int


@dataclass(frozen=True, slots=True)
class Peers:
    """All rows, in the order printed."""

    peers: tuple[Peer, ...]
    skipped: int


def parse(data: bytes) -> Peers:
    """Read LNet's ``peers``."""
    rows = _ROW.findall(data)
    peers = tuple([
        Peer(nid, state, int(most), int(router), int(left), int(queued))
        for nid, state, most, router, left, queued in rows
    ])  # fmt: skip
    return Peers(peers, header.skipped_lines(data, len(_HEADING.findall(data)) + len(rows)))
