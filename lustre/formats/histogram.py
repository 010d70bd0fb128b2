r"""Tables that count requests by size, offset, time or number in flight: ``rpc_stats`` and ``brw_stats``.

A table has a heading and one row per bucket: the label, then count, percent and cumulative percent of each direction::

                            read                    write
    pages per rpc         rpcs   % cum % |       rpcs   % cum %
    1:                1450  63  63   |         44  21  21
    2:                   0   0  63   |          0   0  21
    4:                 434  36 100   |        163  79 100

The kernel prints rows up to the last nonempty one. Only ``brw_stats`` omits empty rows at the beginning.

The parser drops a table with a count that no counter reaches, and an incomplete table: a table with a malformed row, or
a table that does not reach 100% and has therefore lost its end. One loss is undetectable: the last table of a file is
cut between two rows while one direction is at 100% or has no rows yet, and the other direction has counted nothing.

The meaning of a bucket label differs from table to table. Lustre's source from 2.10 to 2.17 (``osc/osc_request.c``,
``osc/lproc_osc.c``, ``obdclass/genops.c``, ``obdclass/lprocfs_status.c``, ``osd-ldiskfs/osd_io.c``) has these kinds:

* *inclusive upper bound*, powers of two (``lprocfs_oh_tally_log2`` puts a value into bucket ``fls(value - 1)``, and the
  label is 1 << bucket): pages per rpc, pages per bulk r/w, disk I/O size, I/O time, block maps. Label 4 counts 3 and 4;
  label 1 counts 0 and 1.
* *the value itself* (``lprocfs_oh_tally``): rpcs in flight, modify RPCs in flight, discontiguous pages and blocks, disk
  fragmented I/Os, disk I/Os in flight (after 2.17.0 a setting selects powers of two there, which are upper bounds).
* *inclusive lower bound*: offset. The kernel tallies offset + 1 and labels bucket n with 1 << (n - 1), so label 4
  counts the pages 4 to 7, and label 0 counts page 0.
* *exclusive lower bound*: RPC latency. The kernel tallies the time itself, but also labels bucket n with 1 << (n - 1),
  so label 4 counts 5 to 8, and label 0 counts 0 and 1.

There are 32 buckets. The last bucket also counts all larger values: 31 *or more* in flight.

>>> tables = parse(b"\t\t\tread\t\t\twrite\noffset                rpcs   % cum % |       rpcs   % cum %\n"
...                b"0:\t\t         3  60  60   |          0   0   0\n1:\t\t         0  40  60   |          0   0   0\n"
...                b"2:\t\t         2  40 100   |          1 100 100\n")
>>> tables.histograms
(Histogram(name=b'offset', uppers=(0, 1, 3), columns=((3, 0, 2), (0, 0, 1)), overflow=False),)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from lustre.formats import header

_LABEL = re.compile(rb"(\d{1,20}+)([KMG]?+):")
_SCALE = {b"": 1, b"K": 1 << 10, b"M": 1 << 20, b"G": 1 << 30}


LABELS: dict[bytes, Callable[[int], int]] = {
    b"offset": lambda lower: 2 * lower - 1 if lower else 0,
    b"RPC latency (us)": lambda below: 2 * below if below else 1,
}
"""Inclusive upper bounds by label, for tables whose labels are lower bounds. All other labels are upper bounds."""

LINEAR = frozenset({
    b"rpcs in flight",
    b"discontiguous pages",
    b"discontiguous blocks",
    b"disk fragmented I/Os",
    b"disk I/Os in flight",
})  # fmt: skip
"""Tables with one value per bucket. Their last bucket is 31 or more."""
LAST_LABEL = 1 << 31
"""Label of the last of 32 buckets of a table of powers of two."""


@lru_cache(maxsize=1024)
def uppers_of(name: bytes, labels: tuple[bytes, ...]) -> tuple[tuple[int, ...], bool]:
    """Return the inclusive upper bounds, and whether the last bucket is the kernel's last one.

    Raises ValueError for an invalid label.
    """
    values = [_value(label) for label in labels]
    if values != sorted({*values}) or max(values, default=0) > LAST_LABEL:
        raise ValueError(f"labels that do not rise, or are beyond the kernel's last bucket: {values}")
    last = values[-1] if values else 0
    kernels_last = 31 if name in LINEAR else 1 << (30 if name in LABELS else 31)
    return tuple(map(LABELS[name], values) if name in LABELS else values), last == kernels_last


def _value(label: bytes) -> int:
    match = _LABEL.fullmatch(label)
    if match is None:
        raise ValueError(f"not a bucket label: {label!r}")
    return int(match[1]) * _SCALE[match[2]]


_HEADING = re.compile(rb"([^\s:|%]++(?: [^\s:|%]++)*) {2,}+(?:rpcs|count|ios|maps) ++%[^:]*+")
_DIRECTIONS = re.compile(rb"\s*+(?:read[ \t]++\|?+[ \t]*+write|modify)[ \t]*+")
_OF_ROWS = b"0123456789KMG:| \t\n"


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts by bucket and direction, not cumulative."""

    name: bytes
    """Name in the heading of the table: ``pages per rpc``."""
    uppers: tuple[int, ...]
    """Inclusive upper bound of each bucket, in the unit of the table (pages, requests, bytes, milliseconds…)."""
    columns: tuple[tuple[int, ...], ...]
    """Counts per direction: (read, write), or (modify,)."""
    overflow: bool = False
    """Whether the last bucket is the kernel's last, which also counts everything above its bound."""


class Tables(NamedTuple):
    """All tables of a text, in order."""

    histograms: tuple[Histogram, ...]
    understood: int
    """Number of lines that belong to a complete table."""


def parse(text: bytes) -> Tables:
    found: list[Histogram] = []
    understood = 0
    paragraphs = text.split(b"\n\n")
    if not text.endswith(b"\n"):
        paragraphs.pop()
    for paragraph in paragraphs:
        directions, _, rest = paragraph.strip(b"\n").partition(b"\n")
        heading, _, body = rest.partition(b"\n")
        name = _HEADING.fullmatch(heading)
        if name is None or _DIRECTIONS.fullmatch(directions) is None:
            continue
        histogram = _histogram(name[1], body, 2 if b"|" in heading else 1)
        if histogram is not None:
            found.append(histogram)
            understood += 2 + len(histogram.uppers)
    return Tables(tuple(found), understood)


class Place(NamedTuple):
    """Position of a table's numbers among the words of a text."""

    name: bytes
    first: int
    """The first row's label."""
    rows: int
    width: int
    """Number of directions; a row has four words per direction."""


def places(text: bytes) -> Iterator[Place]:
    """Locate the tables that ``parse`` finds, if all of them are complete."""
    words = 0
    for paragraph in text.split(b"\n\n"):
        words += len(paragraph.split())
        _, _, rest = paragraph.strip(b"\n").partition(b"\n")
        heading, _, body = rest.partition(b"\n")
        if name := _HEADING.fullmatch(heading):
            length, width = len(body.split()), 2 if b"|" in heading else 1
            yield Place(name[1], words - length, length // (4 * width), width)


def _histogram(name: bytes, body: bytes, width: int) -> Histogram | None:
    """Parse the rows of a table with ``width`` directions; None if the table is incomplete."""
    tokens = body.split()
    stride = 4 * width
    labels = tuple(tokens[::stride])
    rows = len(labels)
    if (
        len(tokens) != stride * rows
        or body.translate(None, _OF_ROWS)
        or body.count(b":") != rows
        or tokens[4::stride].count(b"|") != rows * (width - 1)
    ):
        return None
    try:
        uppers, overflow = uppers_of(name, labels)
        columns = tuple([tuple(map(int, tokens[column::stride])) for column in range(1, stride, 4)])
        reached = [int(percent) for percent in tokens[-1 : -stride - 1 : -4]]
    except ValueError:
        return None
    reached.reverse()
    if any(column and max(column) >= header.WRAPPED for column in columns):
        return None
    whole = overflow or not rows or _ends(columns, reached)
    return Histogram(name, uppers, columns, overflow) if whole else None


def _ends(columns: tuple[tuple[int, ...], ...], reached: list[int]) -> bool:
    """Whether the last row ends the table: the kernel stops at the row where each direction is at 100% or empty."""
    if len(columns[0]) > 1 and not any(column[-1] for column in columns):
        return False
    return all(percent == 100 or not any(column) for percent, column in zip(reached, columns, strict=True))
