r"""What a target knows of quotas: ``osd-*.*.quota_slave_dt.info`` of blocks, ``quota_slave_md.info`` of inodes::

    target name:    lustre-OST0000
    pool ID:         0
    type:            dt
    quota enabled:   ugp
    conn to master:  setup
    glimpse_refresh: 0
    space acct:     ugp
    user uptodate:  glb[1],slv[1],reint[0]
    group uptodate: glb[1],slv[0],reint[1]
    project uptodate: glb[0],slv[0],reint[0]

``glb`` and ``slv`` say whether the target's copies of the limits and of what it was granted are those of the quota
master. Which kinds of quota are enforced is a letter each, or ``none``. Before it is set up the last lines are missing.

>>> slave = parse(b"type:            dt\nquota enabled:  ug\nconn to master: setup\n"
...               b"user uptodate:  glb[1],slv[0],reint[1]\n")
>>> slave.resource, slave.connected, slave.enforced, slave.up_to_date
(b'dt', True, (b'user', b'group'), ((b'user', False),))
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.text import fields, header

TYPES = {b"u": b"user", b"g": b"group", b"p": b"project"}
_CONNECTED = {b"setup": True, b"not setup yet": False}
_ENFORCED = re.compile(rb"none|u?g?p?")
_COPIES = re.compile(rb"glb\[([01])\],slv\[([01])\],reint\[[01]\]")


@dataclass(frozen=True, slots=True)
class QuotaSlave:
    """One kind of resource of a target."""

    resource: bytes
    """``dt`` is blocks, ``md`` inodes; empty when it does not say."""
    connected: bool | None
    """To the quota master."""
    enforced: tuple[bytes, ...] | None
    """Kinds of quota: user, group, project."""
    up_to_date: tuple[tuple[bytes, bool], ...]
    """Whether its copies are, for each kind it tells of."""
    skipped: int


def parse(data: bytes) -> QuotaSlave:
    """Read a whole ``info`` file."""
    everything = fields.parse(data)
    found = everything.values
    enabled = found.get(b"quota enabled")
    known = enabled is not None and enabled != b"" and _ENFORCED.fullmatch(enabled) is not None
    connection = found.get(b"conn to master")
    told = {type_: found[type_ + b" uptodate"] for type_ in TYPES.values() if type_ + b" uptodate" in found}
    copies = {type_: _COPIES.fullmatch(text) for type_, text in told.items()}
    wrong = [match for match in copies.values() if match is None]
    return QuotaSlave(
        resource=resource if (resource := found.get(b"type", b"")) in {b"dt", b"md"} else b"",
        connected=_CONNECTED.get(connection) if connection is not None else None,
        enforced=tuple([type_ for letter, type_ in TYPES.items() if letter in enabled]) if known and enabled else None,
        up_to_date=tuple([(type_, match.groups() == (b"1", b"1")) for type_, match in copies.items() if match]),
        skipped=header.skipped_lines(data, everything.understood)
        + len(wrong)
        + (enabled is not None and not known)
        + (connection is not None and connection not in _CONNECTED),
    )
