"""Templates that ``lustre/formats/_texts.c`` fills with numbers: a control character stands for each number.

>>> from exporter.exposition import Gauge, Histogram
>>> jobs = of_samples(Gauge("lustre_jobs", "", ("fs",), ""), b'fs="a"', [b""])
>>> print(jobs.replace(INTEGER, b"INTEGER").decode(), end="")
lustre_jobs{fs="a"} INTEGER
>>> sizes = of_table(Histogram("sizes", "", ("fs",), ""), b'fs="a"', [b""], (1.0,))
>>> print(sizes.replace(CUMULATIVE, b"CUMULATIVE").replace(TOTAL, b"TOTAL").decode(), end="")
sizes_bucket{fs="a",le="1.0"} CUMULATIVE
sizes_bucket{fs="a",le="+Inf"} TOTAL
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence

from exporter.exposition import INFINITY, Family, Histogram, format_bound
from lustre.formats import compiled

INTEGER = b"\x01"
SECONDS = b"\x02"
"""A number of microseconds, as seconds."""
CUMULATIVE = b"\x03"
"""The sum of this number and those before it."""
TOTAL = b"\x04"
"""The sum of those before it; takes no number."""
NEW_SUM = b"\x05"
"""Stands for nothing: a new sum begins."""
_OURS = re.compile(rb"[\x00-\x05]")
_PLACE = re.compile(rb"([\x01-\x05])")
MAX_LABEL_BYTES = 1 << 14
"""Limit on the length of label text for these templates."""


def fill(template: bytes, values: tuple[int, ...]) -> bytes:
    """Finished lines from a packed template. ValueError when there are more or fewer values than places."""
    return compiled.fill(template, values)


def fits(labels: bytes) -> bool:
    """Whether templates can be made with this label text."""
    return compiled.AVAILABLE and _OURS.search(labels) is None and len(labels) < MAX_LABEL_BYTES


def packed(template: bytes) -> bytes:
    r"""The template in the form of the C module: for every piece its length, what follows it, and the piece.

    >>> packed(b"jobs \x01\n")
    b'\x05\x00\x01jobs \x01\x00\x00\n'
    """
    parts = _PLACE.split(template)
    pieces = zip(parts[::2], [*parts[1::2], b"\x00"], strict=True)
    return b"".join([struct.pack("=HB", len(text), place[0]) + text for text, place in pieces])


def of_samples(family: Family, labels: bytes, extras: Iterable[bytes]) -> bytes:
    """A line for each further label text; where the family is of seconds, the numbers are of microseconds."""
    place = SECONDS if family.unit == "seconds" else INTEGER
    return b"".join([family.line(labels + extra, place) for extra in extras])


def of_table(family: Histogram, labels: bytes, extras: Iterable[bytes], bounds: Sequence[float]) -> bytes:
    """A table for each further label text, from counts that are not cumulative; with the usual bounds above them."""
    whole = family.whole(bounds)
    places = [CUMULATIVE] * len(bounds) + [TOTAL] * (len(whole) - len(bounds))
    rows = [(format_bound(upper), place) for upper, place in zip(whole, places, strict=True) if upper != INFINITY]
    rows.append((b"+Inf", CUMULATIVE if whole[-1:] == (INFINITY,) else TOTAL))
    begin = family.name.encode() + b"_bucket{" + labels
    tables = [
        b"".join([b'%b%b,le="%b"} %b\n' % (begin, extra, upper, place) for upper, place in rows]) for extra in extras
    ]
    return NEW_SUM.join(tables)
