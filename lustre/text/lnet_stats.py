r"""What the network layer has carried: ``stats`` of LNet, one line of eleven numbers without names::

    0 30 0 74492 74492 0 0 1315767408 1315767376 0 0

Messages in memory now and at most, errors; messages sent, received, routed, dropped; their bytes in the same order.
The same from 2.10 on. The kernel counts messages in 32 bits, so that they begin anew after four thousand million.

>>> lnet = parse(b"0 30 1 74492 74490 0 2 1315767408 1315767376 0 96\n")
>>> lnet.errors, lnet.messages
(1, Carried(sent=74492, received=74490, routed=0, dropped=2))
>>> lnet.bytes
Carried(sent=1315767408, received=1315767376, routed=0, dropped=96)
>>> parse(b"0 30 0 74492 74490\n").messages is None
True
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from lustre.text import header

_LINE = re.compile(rb"\s*+((?:\d{1,20}+ ){10}\d{1,20}+)[ \t]*+\n\s*+")


class Carried(NamedTuple):
    """Messages, or their bytes, by what became of them."""

    sent: int
    received: int
    routed: int
    dropped: int


@dataclass(frozen=True, slots=True)
class LnetStats:
    """The line; None of it when it was not whole."""

    allocated: int | None
    """Messages in memory now."""
    errors: int | None
    messages: Carried | None
    bytes: Carried | None
    skipped: int


def parse(data: bytes) -> LnetStats:
    """Read LNet's ``stats``."""
    line = _LINE.fullmatch(data)
    if line is None:
        return LnetStats(None, None, None, None, header.skipped_lines(data, 0))
    allocated, _, errors, *carried = map(int, line[1].split())
    return LnetStats(allocated, errors, Carried(*carried[:4]), Carried(*carried[4:]), 0)
