r"""Statahead counters of a mount: ``llite.*.statahead_stats``.

The file has no header. Since 2.16 it has seven lines, before that the first three::

    statahead total: 42
    statahead wrong: 1
    agl total: 42
    list_total: 18
    fname_total: 24
    hit_total: 27088
    miss_total: 107

>>> ahead = parse(b"statahead total: 42\nstatahead wrong: 1\nagl total: 40\n")
>>> ahead.total, ahead.agl_total, ahead.hit_total, ahead.skipped
(42, 40, None, 0)
"""

from __future__ import annotations

from dataclasses import dataclass

from lustre.formats import fields, header

_NAMES = {
    b"statahead total": "total",
    b"statahead wrong": "wrong",
    b"agl total": "agl_total",
    b"list_total": "list_total",
    b"fname_total": "fname_total",
    b"hit_total": "hit_total",
    b"miss_total": "miss_total",
}


@dataclass(frozen=True, slots=True)
class Statahead:
    """Counts since the mount; None for fields that the release does not print."""

    total: int | None
    """Statahead threads started."""
    wrong: int | None
    """Statahead runs aborted because of a low hit rate."""
    agl_total: int | None
    """Statahead runs that also requested sizes ahead (asynchronous glimpse lock)."""
    list_total: int | None
    """Statahead runs started by a listing in directory order."""
    fname_total: int | None
    """Statahead runs started by names that follow a pattern (``file.0001``)."""
    hit_total: int | None
    miss_total: int | None
    skipped: int


def parse(data: bytes) -> Statahead:
    everything = fields.parse(data)
    counts = fields.Naturals(everything.values)
    numbers = {name: counts.get(line) for line, name in _NAMES.items()}
    return Statahead(**numbers, skipped=header.skipped_lines(data, everything.understood) + counts.refused)
