r"""State of a file system on the management server: ``mgs.MGS.live.*``, unchanged since 2.10::

    fsname: lustre
    flags: 0x20     gen: 76
    lustre-MDT0000
    lustre-OST0000

    Secure RPC Config Rules:

    imperative_recovery_state:
        state: full
        nonir_clients: 0
        nidtbl_version: 10
        notify_duration_total: 0.085029625
        notify_duation_max: 0.065884463
        notify_count: 8

("notify_duation_max" is the kernel's own spelling.) ``state`` is ``full`` if the MGS notifies clients immediately of a
target that moved to another server.

>>> live = parse(b"fsname: lustre\nflags: 0x20     gen: 76\nlustre-MDT0000\nlustre-OST0000\n\n"
...              b"Secure RPC Config Rules:\n\nimperative_recovery_state:\n    state: full\n    nonir_clients: 0\n")
>>> live.targets, live.recovery_state, live.nonir_clients
((b'MDT0000', b'OST0000'), b'full', 0)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.formats import fields, header

_TARGET = re.compile(rb"^[^\s:=]{1,60}+(?<=-(?:MDT|OST)[0-9a-f]{4})[ \t]*+\n", re.MULTILINE)
_RULE = re.compile(rb"^[^\s:=]{1,60}+\.srpc\.[^\s=]++=[^\n]*+\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Live:
    """State of one file system; None for fields that are absent or incomplete."""

    targets: tuple[bytes, ...]
    """``MDT0000``, ``OST0003``, in the order printed."""
    recovery_state: bytes | None
    """State of imperative recovery: ``full``, ``partial``, ``startup`` or ``disabled``."""
    nonir_clients: int | None
    """Clients that cannot do imperative recovery."""
    skipped: int


def parse(data: bytes) -> Live:
    everything = fields.parse(data)
    found = everything.values
    targets = tuple([row.rstrip()[-7:] for row in _TARGET.findall(data)])
    understood = len(targets) + len(_RULE.findall(data)) + everything.understood
    return Live(
        targets=targets,
        recovery_state=found.get(b"state"),
        nonir_clients=fields.number(found.get(b"nonir_clients")),
        skipped=header.skipped_lines(data, understood),
    )
