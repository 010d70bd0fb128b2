r"""Queued and active requests of a service: ``nrs_policies`` of ``ost.OSS.*`` and other services.

The file has one block per policy for the order of requests. Usually one policy runs. Unchanged since 2.10::

    regular_requests:
      - name: fifo
        state: started
        fallback: yes
        queued: 12
        active: 3

    high_priority_requests:
      - name: fifo
        state: started
        fallback: yes
        queued: 0
        active: 0

>>> parse(b"\nregular_requests:\n  - name: fifo\n    state: started\n    fallback: yes\n"
...       b"    queued: 12                  \n    active: 3                   \n\n").rows
(Policy(priority=b'regular', order=b'fifo', argument=b'', state=b'started', queued=12, active=3),)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.formats import header
from lustre.formats.nrs_tbf_rule import SECTION, parts
from lustre.formats.rows import Rows

_POLICY = re.compile(
    rb"^  - name: (\S++)(?: (\S++))?[^\n]*+\n    state: (\S++)[ \t]*+\n    fallback: \S++[ \t]*+\n"
    rb"    queued: (\d{1,20}+)[ \t]*+\n"
    rb"    active: (\d{1,20}+)[ \t]*+\n",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy for the order of requests of one priority."""

    priority: bytes
    """``regular`` or ``high_priority``."""
    order: bytes
    """``fifo`` unless configured otherwise."""
    argument: bytes
    """What ``tbf`` distinguishes, such as ``jobid``; empty for other policies."""
    state: bytes
    """``started`` or ``stopped``; briefly also ``starting`` or ``stopping``."""
    queued: int
    """Queued requests."""
    active: int
    """Active requests."""


def parse(data: bytes) -> Rows[Policy]:
    sections = list(parts(SECTION, data, 0, len(data)))
    policies = {
        (section[1], name): Policy(section[1], name, argument, state, int(queued), active=int(active))
        for section, end in sections
        for name, argument, state, queued, active in _POLICY.findall(data, section.end(), end)
    }  # fmt: skip
    return Rows(tuple(policies.values()), header.skipped_lines(data, len(sections) + 5 * len(policies)))
