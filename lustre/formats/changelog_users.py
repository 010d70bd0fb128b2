r"""Users of the changelog of an MDT, and how far each has read: ``mdd.*.changelog_users``.

This is the form since 2.15. Earlier releases print "current index" and no mask; 2.10 also prints no idle time::

    current_index: 7096
    ID                            index (idle) mask
    cl1-lab                           0 (1016) mask=MARK,CREAT,MKDIR

Records up to the lowest index of all users have been cleared. Lustre keeps later records for the slowest user.

>>> log = parse(b"current_index: 7096\nID                            index (idle) mask\n"
...             b"cl1-lab                        123 (1016) mask=MARK,CREAT\n")
>>> log.current_index, log.users
(7096, (User(id=b'cl1-lab', index=123, idle_seconds=1016, mask=(b'MARK', b'CREAT')),))
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.formats import header

_CURRENT = re.compile(rb"^current[ _]index: ++(\d{1,20}+)[ \t]*+\n", re.MULTILINE)
_HEADING = re.compile(rb"^ID ++index\b[^\n]*+\n", re.MULTILINE)
_USER = re.compile(
    rb"^(cl\d{1,10}+\S*+) ++(\d{1,20}+)(?: \((?:(\d{1,9}+)|\d++)\))?(?: mask=(\S*+))?[ \t]*+\n",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class User:
    """One registered reader."""

    id: bytes
    """``cl1``, or ``cl1-name`` when registered with a name."""
    index: int
    """The last record that the user has cleared."""
    idle_seconds: int | None
    """Seconds since the user last cleared records; None on 2.10, and if the clock was set back (32 bits wrap then)."""
    mask: tuple[bytes, ...]
    """Record types in the user's mask; empty for a user without a mask."""


@dataclass(frozen=True, slots=True)
class ChangelogUsers:
    """The last index of the changelog and its users."""

    current_index: int | None
    """The last record written."""
    users: tuple[User, ...]
    skipped: int


def parse(data: bytes) -> ChangelogUsers:
    current = _CURRENT.findall(data)
    rows = _USER.findall(data)
    users = tuple(
        User(name, int(index), int(idle) if idle else None, tuple(mask.split(b",")) if mask else ())
        for name, index, idle, mask in rows
    )
    understood = len(current) + len(_HEADING.findall(data)) + len(rows)
    return ChangelogUsers(int(current[0]) if current else None, users, header.skipped_lines(data, understood))


def recorded(users: ChangelogUsers, mask: bytes | None, current_mask: bytes | None) -> frozenset[bytes] | None:
    r"""Types of records that the MDT writes; None if the parameters do not show them.

    Since 2.15 each user may have its own mask, and ``changelog_current_mask`` shows the resulting mask. The server's
    ``changelog_mask`` is then only ``MARK`` until somebody sets it, which means Lustre's default.

    >>> sorted(recorded(parse(b""), b"MARK CREAT \n", None)), recorded(parse(b""), b"MARK \n", None)
    ([b'CREAT', b'MARK'], None)
    """
    if current_mask is not None and current_mask.split():
        return frozenset(current_mask.split())
    words = frozenset((mask or b"").split())
    return words.union(*(user.mask for user in users.users)) if words - {b"MARK"} else None
