r"""Quotas: the limits the master has given out (``qmt.*.*.glb-usr``, ``glb-grp``, ``glb-prj``), and what is used on a
target (``osd-*.*.quota_slave.acct_user``, ``acct_group``, ``acct_project``). The same from 2.10 on but for the padding.

Limits of pools of OSTs (``dt-…``) are in KiB, those of MDTs (``md-…``) in inodes; 0 is no limit::

    global_pool0_dt_usr
    - id:      0
      limits:  { hard:            0, soft:            0, granted:            0, time:          604800 }
    - id:      1001
      limits:  { hard:       614400, soft:       512000, granted:       146048, time:               0 }

``time`` is when the grace period ends, for those above their soft limit; of id 0, which stands for all others, it is
how long it lasts. Its 49th bit marks an id without limits of its own, to which those of id 0 apply.

Usage is in inodes and KiB::

    usr_accounting:
    - id:      1001
      usage:   { inodes:           14, kbytes:           56 }

>>> parse_limits(b"global_pool0_dt_usr\n- id:      1001\n"
...              b"  limits:  { hard:  614400, soft:  512000, granted:  146048, time:  0 }\n").entries
(Limit(id=1001, hard=614400, soft=512000, granted=146048, grace_end=0, default=False),)
>>> parse_accounts(b"usr_accounting:\n- id:      1001\n  usage:   { inodes:   14, kbytes:   56 }\n").entries
(Account(id=1001, inodes=14, kilobytes=56),)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.text import header

_TITLE = re.compile(rb"\A(?:global_pool\d{1,10}+_(?:dt|md)_[a-z]{3}|global_index_copy:|[a-z]{3}_accounting:)[ \t]*+\n")
_LIMIT = re.compile(
    rb"^- id: ++(\d{1,20}+)[ \t]*+\n  limits: ++\{ hard: ++(\d{1,20}+), soft: ++(\d{1,20}+), granted: ++(\d{1,20}+),"
    rb" time: ++(\d{1,20}+) \}[ \t]*+\n",
    re.MULTILINE,
)
_ACCOUNT = re.compile(
    rb"^- id: ++(\d{1,20}+)[ \t]*+\n  usage: ++\{ inodes: ++(\d{1,20}+), kbytes: ++(\d{1,20}+) \}[ \t]*+\n",
    re.MULTILINE,
)
_NOT_SUPPORTED = re.compile(rb"\Anot supported\s*+\Z")
_DEFAULT = 1 << 48


@dataclass(frozen=True, slots=True)
class Limit:
    """What one user, group or project may have."""

    id: int
    hard: int
    soft: int
    granted: int
    """Handed out to targets so far; used, or soon to be."""
    grace_end: int
    """When the grace period ends, seconds since the epoch; 0 when it has not begun. Of id 0: how long it lasts."""
    default: bool
    """The limits of id 0 apply instead."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Everybody of one kind in one pool, in the order printed."""

    entries: tuple[Limit, ...]
    skipped: int


@dataclass(frozen=True, slots=True)
class Account:
    """What one user, group or project has on the target."""

    id: int
    inodes: int
    kilobytes: int


@dataclass(frozen=True, slots=True)
class Accounts:
    """Everybody of one kind on one target, in the order printed."""

    entries: tuple[Account, ...]
    skipped: int


def parse_limits(data: bytes) -> Limits:
    """Read a whole ``glb-…`` file."""
    rows = [tuple(map(int, row)) for row in _LIMIT.findall(data)]
    entries = tuple([
        Limit(id_, hard, soft, granted, time & (_DEFAULT - 1), time >= _DEFAULT)
        for id_, hard, soft, granted, time in rows
    ])  # fmt: skip
    return Limits(entries, _skipped(data, len(rows)))


def parse_accounts(data: bytes) -> Accounts:
    """Read a whole ``acct_…`` file; one on a target that keeps no accounts is empty."""
    if _NOT_SUPPORTED.match(data):
        return Accounts((), 0)
    rows = _ACCOUNT.findall(data)
    return Accounts(tuple([Account(*map(int, row)) for row in rows]), _skipped(data, len(rows)))


def _skipped(data: bytes, records: int) -> int:
    return header.skipped_lines(data, (_TITLE.match(data) is not None) + 2 * records)
