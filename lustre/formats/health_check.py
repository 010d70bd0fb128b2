r"""Health of Lustre on this node: ``health_check``.

The file holds ``healthy`` or ``NOT HEALTHY``, and ``LBUG`` after a failed assertion. Releases up to 2.12 first print
the device ("device lustre-OST0001 reported unhealthy").

>>> parse(b"healthy\n").healthy, parse(b"NOT HEALTHY\n").healthy, parse(b"LBUG\n").healthy, parse(b"healt").healthy
(True, False, False, None)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.formats import header

_HEALTHY = re.compile(rb"\s*+healthy[ \t]*+\n\s*+")
_UNHEALTHY = re.compile(rb"^(?:NOT HEALTHY|LBUG|device \S++ reported unhealthy)[ \t]*+\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the node is healthy; None for an unknown text."""

    healthy: bool | None
    skipped: int


def parse(data: bytes) -> Health:
    if _HEALTHY.fullmatch(data):
        return Health(healthy=True, skipped=0)
    complaints = len(_UNHEALTHY.findall(data))
    return Health(False if complaints else None, header.skipped_lines(data, complaints))
