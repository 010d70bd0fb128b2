r"""Copytools that move files between Lustre and its archive: ``mdt.*.hsm.agents``, one line each::

    uuid=ac6a5a5c-1c2d-4d43-a2a3-0e9a1e5a3f5e archive_id=ANY requests=[current:3 ok:1200 errors:4]

>>> parse(b"uuid=a-b archive_id=1,2 requests=[current:3 ok:1200 errors:4]\n").rows
(Agent(uuid=b'a-b', current=3, ok=1200, errors=4),)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.formats import rows
from lustre.formats.rows import Rows

_AGENT = re.compile(
    rb"^uuid=(\S{1,80}+) archive_id=\S++ requests=\[current:(\d{1,20}+) ok:(\d{1,20}+) errors:(\d{1,20}+)\][ \t]*+\n",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Agent:
    """A registered copytool."""

    uuid: bytes
    current: int
    """Requests in progress."""
    ok: int
    errors: int


def parse(data: bytes) -> Rows[Agent]:
    return rows.parse(data, _AGENT, lambda uuid, *counts: Agent(uuid, *map(int, counts)))
