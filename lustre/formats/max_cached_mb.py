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
>>> cached.used_bytes, cached.unevictable_bytes
(41943040, None)
"""

from __future__ import annotations

from dataclasses import dataclass

from lustre.formats import fields, header


@dataclass(frozen=True, slots=True)
class CachedMb:
    """Sizes in bytes; None for fields that the release does not print."""

    max_bytes: int | None
    used_bytes: int | None
    unevictable_bytes: int | None
    reclaims: int | None
    """Number of times pages were reclaimed because the cache was full."""
    used_read_ahead_bytes: int | None
    skipped: int


def parse(data: bytes) -> CachedMb:
    everything = fields.parse(data)
    numbers = fields.Naturals(everything.values)

    def size_bytes(line: bytes) -> int | None:
        mebibytes = numbers.get(line)
        return None if mebibytes is None else mebibytes << 20

    return CachedMb(
        max_bytes=size_bytes(b"max_cached_mb"),
        used_bytes=size_bytes(b"used_mb"),
        unevictable_bytes=size_bytes(b"unevict_mb"),
        reclaims=numbers.get(b"reclaim_count"),
        used_read_ahead_bytes=size_bytes(b"used_read_ahead_mb"),
        skipped=header.skipped_lines(data, everything.understood) + numbers.refused,
    )
