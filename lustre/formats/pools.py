r"""The OSTs of a pool: ``lov.*.pools.*`` on a client, ``lod.*.pools.*`` on an MDS. One UUID a line::

    lustre-OST0002_UUID
    lustre-OST0003_UUID

>>> parse(b"lustre-OST0002_UUID\nlustre-OST0003_UUID\n")
Pool(members=('lustre-OST0002', 'lustre-OST0003'), skipped=0)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.formats import header

_MEMBER = re.compile(rb"^([A-Za-z0-9_-]{1,40}-OST[0-9a-fA-F]{4})(?:_UUID)?[ \t]*+\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool's members, in the order printed; Lustre does not guarantee an order."""

    members: tuple[str, ...]
    skipped: int


def parse(data: bytes) -> Pool:
    members = tuple([member.decode("ascii") for member in _MEMBER.findall(data)])
    return Pool(members, header.skipped_lines(data, len(members)))
