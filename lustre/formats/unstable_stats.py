r"""Pages that a client has sent and keeps until they are on disk: ``llite.*.unstable_stats``.

The object servers hold these pages in memory, not on disk yet. If a server restarts, the client sends them again.
Unchanged from 2.12 to 2.17. ``unstable_check`` is a setting: whether such pages count as used when the cache is full::

    unstable_check:            1
    unstable_pages:        12288
    unstable_mb:              48

>>> parse(b"unstable_check:            1\nunstable_pages:        12288\nunstable_mb:              48\n")
UnstableStats(pages=12288, size_bytes=50331648, skipped=0)
"""

from __future__ import annotations

from dataclasses import dataclass

from lustre.formats import fields, header


@dataclass(frozen=True, slots=True)
class UnstableStats:
    """The values; None for fields that are not printed."""

    pages: int | None
    size_bytes: int | None
    """Size in bytes, rounded down to whole MiB by the kernel."""
    skipped: int


def parse(data: bytes) -> UnstableStats:
    everything = fields.parse(data)
    numbers = fields.Naturals(everything.values)
    mebibytes = numbers.get(b"unstable_mb")
    return UnstableStats(
        pages=numbers.get(b"unstable_pages"),
        size_bytes=None if mebibytes is None else mebibytes << 20,
        skipped=header.skipped_lines(data, everything.understood) + numbers.refused,
    )
