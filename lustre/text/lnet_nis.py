r"""Network interfaces of the node: ``nis`` of LNet. A row per interface and CPU partition, the same from 2.10 on::

    nid                      status alive refs peer  rtr   max    tx   min
    0@lo                         up     0    2    0    0     0     0     0
    10.0.2.15@tcp                up    -1    1    8    0   256   256   255

``peer`` and ``rtr`` are the credits each peer gets, ``max`` the credits to send, ``tx`` those left now (negative: so
many messages wait), ``min`` the fewest there ever were.

>>> nis = parse(b"nid                      status alive refs peer  rtr   max    tx   min\n"
...             b"10.0.2.15@tcp                up    -1    1    8    0   256   256   255\n")
>>> nis.interfaces
(Interface(nid=b'10.0.2.15@tcp', status=b'up', peer_credits=8, max_credits=256, credits=256),)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.text import header

_HEADING = re.compile(rb"^nid ++status [^\n]*+\n", re.MULTILINE)
_ROW = re.compile(
    rb"^(\S{1,80}+) ++([a-z~]{1,20}+) ++-?+\d{1,20}+ ++-?+\d{1,20}+ ++(-?+\d{1,20}+) ++-?+\d{1,20}+ ++(-?+\d{1,20}+)"
    rb" ++(-?+\d{1,20}+) ++-?+\d{1,20}+[ \t]*+\n",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Interface:
    """One row: an interface as one CPU partition sees it."""

    nid: bytes
    status: bytes
    """``up`` or ``down``."""
    peer_credits: int
    max_credits: int
    credits: int
    """Left to send with now; negative when messages wait."""


@dataclass(frozen=True, slots=True)
class Nis:
    """All rows, in the order printed."""

    interfaces: tuple[Interface, ...]
    skipped: int


def parse(data: bytes) -> Nis:
    """Read LNet's ``nis``."""
    rows = _ROW.findall(data)
    interfaces = tuple([
        Interface(nid, status, int(peer), int(most), int(left)) for nid, status, peer, most, left in rows
    ])  # fmt: skip
    return Nis(interfaces, header.skipped_lines(data, len(_HEADING.findall(data)) + len(rows)))
