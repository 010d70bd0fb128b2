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
from collections.abc import Iterable, Sequence
from functools import lru_cache

from exporter.exposition import INFINITY, Family, Histogram, format_bound
from lustre.formats import compiled

INTEGER = b"\x01"
SECONDS = b"\x02"
"""A number of microseconds, printed as seconds."""
CUMULATIVE = b"\x03"
"""The sum of this number and all numbers before it."""
TOTAL = b"\x04"
"""The sum of all numbers before it; takes no number."""
NEW_SUM = b"\x05"
"""Prints nothing and starts a new sum."""
LABELS = b"\x06"
"""The label text of a device. Templates with it are shared by all devices of a form."""
_OURS = re.compile(rb"[\x00-\x06]")
MAX_LABEL_BYTES = 1 << 14
"""Limit on the length of label text for these templates."""


def fill(template: bytes, values: tuple[int, ...]) -> bytes:
    """Return finished lines from a packed template. Raises ValueError if the number of values is wrong."""
    return compiled.fill(template, values)


def fill_each(templates: tuple[bytes, ...], values: tuple[int, ...]) -> list[bytes]:
    """Return finished lines from packed templates. Each takes the values after those of the previous one."""
    return compiled.fill_each(templates, values)


@lru_cache(maxsize=1 << 14)
def fits(labels: bytes) -> bool:
    """Whether templates can be made with this label text."""
    return compiled.AVAILABLE and _OURS.search(labels) is None and len(labels) < MAX_LABEL_BYTES


def with_labels(templates: tuple[bytes, ...], labels: bytes) -> tuple[bytes, ...]:
    """Pack templates for ``fill``, with this label text in the place of ``LABELS``."""
    return compiled.pack_each(templates, labels)


def of_samples(family: Family, labels: bytes, extras: Iterable[bytes]) -> bytes:
    """Make a line for each further label text. If the family is in seconds, the numbers are in microseconds."""
    place = SECONDS if family.unit == "seconds" else INTEGER
    return b"".join([family.line(labels + extra, place) for extra in extras])


def of_table(family: Histogram, labels: bytes, extras: Iterable[bytes], bounds: Sequence[float]) -> bytes:
    """Make a table for each further label text. It takes counts that are not cumulative and adds the usual bounds."""
    whole = family.whole(bounds)
    places = [CUMULATIVE] * len(bounds) + [TOTAL] * (len(whole) - len(bounds))
    rows = [(format_bound(upper), place) for upper, place in zip(whole, places, strict=True) if upper != INFINITY]
    rows.append((b"+Inf", CUMULATIVE if whole[-1:] == (INFINITY,) else TOTAL))
    begin = family.name.encode() + b"_bucket{" + labels
    tables = [
        b"".join([b'%b%b,le="%b"} %b\n' % (begin, extra, upper, place) for upper, place in rows]) for extra in extras
    ]
    return NEW_SUM.join(tables)
