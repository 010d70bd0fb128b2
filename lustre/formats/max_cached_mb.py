r"""The client's cache of file data: ``llite.*.max_cached_mb``.

Sizes are in whole MiB, rounded by the kernel. Read-ahead is printed since 2.15, ``unevict_mb`` since 2.16::

    users: 10
    max_cached_mb: 2961
    used_mb: 40
    unused_mb: 2921
    unevict_mb: 0
    reclaim_count: 0
    max_read_ahead_mb: 256
    used_read_ahead_mb: 0

>>> cached = parse(b"users: 10\nmax_cached_mb: 2961\nused_mb: 40\nunused_mb: 2921\nreclaim_count: 0\n")
>>> cached.users, cached.used_bytes, cached.unevictable_bytes
(10, 41943040, None)
"""

from __future__ import annotations

from dataclasses import dataclass

from lustre.formats import fields, header

_MIB = 1 << 20
_NAMES = {
    b"users": ("users", 1),
    b"max_cached_mb": ("max_bytes", _MIB),
    b"used_mb": ("used_bytes", _MIB),
    b"unused_mb": ("unused_bytes", _MIB),
    b"unevict_mb": ("unevictable_bytes", _MIB),
    b"reclaim_count": ("reclaims", 1),
    b"max_read_ahead_mb": ("max_read_ahead_bytes", _MIB),
    b"used_read_ahead_mb": ("used_read_ahead_bytes", _MIB),
}


@dataclass(frozen=True, slots=True)
class CachedMb:
    """Sizes in bytes; None for fields that the release does not print."""

    users: int | None
    """Number of users of the cache: the mount, its OSCs and its MDCs."""
    max_bytes: int | None
    used_bytes: int | None
    unused_bytes: int | None
    unevictable_bytes: int | None
    reclaims: int | None
    """Number of times pages were reclaimed because the cache was full."""
    max_read_ahead_bytes: int | None
    used_read_ahead_bytes: int | None
    skipped: int


def parse(data: bytes) -> CachedMb:
    found = fields.parse(data).values
    numbers: dict[str, int | None] = {}
    for line, (name, scale) in _NAMES.items():
        value = fields.number(found.get(line))
        numbers[name] = None if value is None else value * scale
    known = sum(value is not None for value in numbers.values())
    return CachedMb(
        users=numbers["users"],
        max_bytes=numbers["max_bytes"],
        used_bytes=numbers["used_bytes"],
        unused_bytes=numbers["unused_bytes"],
        unevictable_bytes=numbers["unevictable_bytes"],
        reclaims=numbers["reclaims"],
        max_read_ahead_bytes=numbers["max_read_ahead_bytes"],
        used_read_ahead_bytes=numbers["used_read_ahead_bytes"],
        skipped=header.skipped_lines(data, known),
    )
