r"""The OSTs of a pool: ``lov.*.pools.*`` on a client, ``lod.*.pools.*`` on an MDS. One UUID a line::

    lustre-OST0002_UUID
    lustre-OST0003_UUID

>>> parse(b"lustre-OST0002_UUID\nlustre-OST0003_UUID\n")
Rows(rows=('lustre-OST0002', 'lustre-OST0003'), skipped=0)
"""

from __future__ import annotations

import re

from lustre.formats import rows
from lustre.formats.rows import Rows

_MEMBER = re.compile(rb"^([A-Za-z0-9_-]{1,40}-OST[0-9a-fA-F]{4})(?:_UUID)?[ \t]*+\n", re.MULTILINE)


def parse(data: bytes) -> Rows[str]:
    """Full target names. Lustre does not guarantee an order."""
    return rows.parse(data, _MEMBER, lambda member: member.decode("ascii"))
