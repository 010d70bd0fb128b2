"""Templates that ``lustre/formats/_texts.c`` fills with numbers: a control character stands for each number.

>>> from exporter.exposition import Gauge, Histogram
>>> jobs = of_samples(Gauge("lustre_jobs", "", ("fs",), ""), b'fs="a"', [b""])
>>> print(jobs.replace(Opcode.INTEGER, b"INTEGER").decode(), end="")
lustre_jobs{fs="a"} INTEGER
>>> sizes = of_table(Histogram("sizes", "", ("fs",), ""), b'fs="a"', [b""], (1.0,))
>>> print(sizes.replace(Opcode.CUMULATIVE, b"CUMULATIVE").replace(Opcode.TOTAL, b"TOTAL").decode(), end="")
sizes_bucket{fs="a",le="1.0"} CUMULATIVE
sizes_bucket{fs="a",le="+Inf"} TOTAL
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from exporter.exposition import INFINITY, Family, Histogram, format_bound
from lustre.formats import compiled
from lustre.formats.opcodes import Opcode


class Row(NamedTuple):
    """The numbers of one device's text, to be printed with those of its neighbours."""

    families: tuple[Family, ...]
    """The family of each template."""
    row: compiled.Row


def packed(templates: Iterable[bytes]) -> tuple[bytes, ...] | None:
    """Return templates in the form that the C module prints; None without it, and for a label of 64 KiB."""
    return compiled.pack_each(tuple(templates))


def of_samples(family: Family, labels: bytes, extras: Iterable[bytes]) -> bytes:
    """Make a line for each further label text. If the family is in seconds, the numbers are in microseconds."""
    place = Opcode.SECONDS if family.unit == "seconds" else Opcode.INTEGER
    return b"".join([family.line(labels + extra, place) for extra in extras])


def of_table(family: Histogram, labels: bytes, extras: Iterable[bytes], bounds: Sequence[float]) -> bytes:
    """Make a table for each further label text. It takes counts that are not cumulative and adds the usual bounds."""
    whole = family.whole(bounds)
    places = [Opcode.CUMULATIVE] * len(bounds) + [Opcode.TOTAL] * (len(whole) - len(bounds))
    rows = [(format_bound(upper), place) for upper, place in zip(whole, places, strict=True) if upper != INFINITY]
    rows.append((b"+Inf", Opcode.CUMULATIVE if whole[-1:] == (INFINITY,) else Opcode.TOTAL))
    begin = family.name.encode() + b"_bucket{" + labels
    tables = [
        b"".join([b'%b%b,le="%b"} %b\n' % (begin, extra, upper, place) for upper, place in rows]) for extra in extras
    ]
    return Opcode.NEW_SUM.join(tables)
