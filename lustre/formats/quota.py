r"""Quotas: limits on the quota master, and usage on a target. Unchanged since 2.10 except for the padding.

Limits are in ``qmt.*.*.glb-usr``, ``glb-grp`` and ``glb-prj``. Usage is in ``osd-*.*.quota_slave.acct_user``,
``acct_group`` and ``acct_project``.

Limits of pools of OSTs (``dt-…``) are in KiB, limits of pools of MDTs (``md-…``) in inodes; 0 means no limit::

    global_pool0_dt_usr
    - id:      0
      limits:  { hard:            0, soft:            0, granted:            0, time:          604800 }
    - id:      1001
      limits:  { hard:       614400, soft:       512000, granted:       146048, time:               0 }

``time`` is the end of the grace period for an id above its soft limit. For id 0, which holds the defaults, it is the
length of the grace period. Its 49th bit marks an id without limits of its own; the limits of id 0 apply to it.

Usage is in inodes and KiB::

    usr_accounting:
    - id:      1001
      usage:   { inodes:           14, kbytes:           56 }

Quota state of a target is in ``osd-*.*.quota_slave_dt.info`` for blocks and ``quota_slave_md.info`` for inodes::

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

``glb`` and ``slv`` show whether the target's copies of its limits and of its grants match the quota master. ``quota
enabled`` has a letter for each enforced kind of quota, or ``none``. The last lines are missing before quota is set up.

>>> parse_limits(b"global_pool0_dt_usr\n- id:      1001\n"
...              b"  limits:  { hard:  614400, soft:  512000, granted:  146048, time:  0 }\n").rows
(Limit(id=1001, hard=614400, soft=512000, granted=146048, grace_end=0, default=False),)
>>> parse_accounts(b"usr_accounting:\n- id:      1001\n  usage:   { inodes:   14, kbytes:   56 }\n")
Accounts(ids=(1001,), inodes=(14,), kilobytes=(56,), skipped=0)
>>> slave = parse_slave(b"type:            dt\nquota enabled:  ug\nconn to master: setup\n"
...                     b"user uptodate:  glb[1],slv[0],reint[1]\n")
>>> slave.resource, slave.connected, slave.enforced, slave.up_to_date
(b'dt', True, (b'user', b'group'), ((b'user', False),))
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.formats import fields, header
from lustre.formats.rows import Rows

_TITLE = re.compile(rb"\A(?:global_pool\d{1,10}+_(?:dt|md)_[a-z]{3}|global_index_copy:|[a-z]{3}_accounting:)[ \t]*+\n")
_LIMIT = re.compile(
    rb"^- id: ++(\d{1,20}+)[ \t]*+\n  limits: ++\{ hard: ++(\d{1,20}+), soft: ++(\d{1,20}+),"
    rb" granted: ++(?:(\d{1,18}+)|\d++), time: ++(\d{1,20}+) \}[ \t]*+\n",
    re.MULTILINE,
)
_ACCOUNT = re.compile(
    rb"^- id: ++(\d{1,20}+)[ \t]*+\n  usage: ++\{ inodes: ++(\d{1,18}+), kbytes: ++(\d{1,16}+) \}[ \t]*+\n",
    re.MULTILINE,
)
_NOT_SUPPORTED = re.compile(rb"\Anot supported\s*+\Z")
_DEFAULT = 1 << 48


@dataclass(frozen=True, slots=True)
class Limit:
    """The limits of one user, group or project."""

    id: int
    hard: int
    soft: int
    granted: int
    """Granted to targets so far: used, or reserved for use. -1 if the kernel's number has fallen below zero."""
    grace_end: int
    """End of the grace period in seconds since the epoch; 0 if it has not begun. For id 0: its length in seconds."""
    default: bool
    """Whether the limits of id 0 apply instead."""


@dataclass(frozen=True, slots=True)
class Accounts:
    """Usage of all ids (users, groups or projects) of one kind on one target, in the order printed. The columns have
    equal lengths, because a target may have many thousand ids.
    """

    ids: tuple[int, ...]
    inodes: tuple[int, ...]
    kilobytes: tuple[int, ...]
    skipped: int


def parse_limits(data: bytes) -> Rows[Limit]:
    rows = [tuple([int(number or -1) for number in row]) for row in _LIMIT.findall(data)]
    entries = tuple([
        Limit(id_, hard, soft, granted, time & (_DEFAULT - 1), default=time >= _DEFAULT)
        for id_, hard, soft, granted, time in rows
    ])  # fmt: skip
    return Rows(entries, _skipped(data, len(rows)) + sum([entry.granted < 0 for entry in entries]))


def parse_accounts(data: bytes) -> Accounts:
    if _NOT_SUPPORTED.match(data):
        return Accounts((), (), (), 0)
    rows = _ACCOUNT.findall(data)
    ids, inodes, kilobytes = [tuple(map(int, column)) for column in zip(*rows, strict=True)] or ((), (), ())
    return Accounts(ids, inodes, kilobytes, _skipped(data, len(rows)))


def _skipped(data: bytes, records: int) -> int:
    return header.skipped_lines(data, (_TITLE.match(data) is not None) + 2 * records)


TYPES = {b"u": b"user", b"g": b"group", b"p": b"project"}
_CONNECTED = {b"setup": True, b"not setup yet": False}
_ENFORCED = re.compile(rb"none|u?g?p?")
_COPIES = re.compile(rb"glb\[([01])\],slv\[([01])\],reint\[[01]\]")


@dataclass(frozen=True, slots=True)
class QuotaSlave:
    """Quota state of a target for blocks or inodes."""

    resource: bytes
    """``dt`` means blocks, ``md`` inodes; empty when the line is missing."""
    connected: bool | None
    """Whether the target is connected to the quota master; None if unknown."""
    enforced: tuple[bytes, ...] | None
    """Enforced kinds of quota: user, group, project."""
    up_to_date: tuple[tuple[bytes, bool], ...]
    """For each kind of quota, whether the target's copies are up to date."""
    skipped: int


def parse_slave(data: bytes) -> QuotaSlave:
    everything = fields.parse(data)
    found = everything.values
    enabled = found.get(b"quota enabled")
    known = enabled is not None and enabled != b"" and _ENFORCED.fullmatch(enabled) is not None
    connection = found.get(b"conn to master")
    uptodate = {type_: found[type_ + b" uptodate"] for type_ in TYPES.values() if type_ + b" uptodate" in found}
    copies = {type_: _COPIES.fullmatch(text) for type_, text in uptodate.items()}
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
