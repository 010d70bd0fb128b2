r"""Sizes of the reads and writes that applications made on a mount: ``llite.*.extents_stats``.

Counting starts when somebody writes to the file. Until then the file holds a notice that it is disabled::

    snapshot_time:            1795218507.443293509 secs.nsecs
    start_time:               1795218284.587255717 secs.nsecs
    elapsed_time:             222.856037792 secs.nsecs
                                   read       |                write
          extents            calls    % cum%  |          calls    % cum%
       0K -    4K :            104    1    1  |            104    4    4
       4K -    8K :           6319   98  100  |           2048   96  100

A size on the border belongs to the upper row: ``4K - 8K`` is 4096 to 8191 bytes (``ll_rw_stats_tally`` continues while
``count >= 1 << n``). The inclusive upper bound is therefore one byte less than the label. There are at most 28 rows;
the last row, marked with ``+``, also counts all larger sizes. 2.12.0 shifts twice and therefore counts too many sizes
in one row, such as 4 KiB to 16 MiB in the row ``4K - 8K`` (fixed by 2.12.9).

>>> extents = parse(b"   0K -    4K :            104    5    5  |            104  100  100\n"
...                 b"   4K -    8K :           2048   95  100  |              0    0  100\n")
>>> extents.histogram
Histogram(name=b'extents', uppers=(4095, 8191), columns=((104, 2048), (104, 0)), overflow=False)
>>> parse(b"disabled\n write anything to this file to activate, then '0' or 'disable' to deactivate\n")
ExtentsStats(histogram=None, enabled=False, skipped=0)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.formats import header
from lustre.formats.histogram import Histogram

_ROW = re.compile(
    rb"^ *+\d{1,20}+[KMGTPEZY] - *+(\d{1,20}+)([KMGTPEZY])([+ ]): ++(\d{1,20}+) ++\d{1,20}+ ++(\d{1,20}+) ++\| ++"
    rb"(\d{1,20}+) ++\d{1,20}+ ++(\d{1,20}+)[ \t]*+\n",
    re.MULTILINE,
)
_ALMOST = re.compile(rb"^ *+\d++[KMGTPEZY] -", re.MULTILINE)
_HEADINGS = re.compile(rb"^ *+(?:read ++\| ++write|extents ++calls ++%[^\n]*+)[ \t]*+\n", re.MULTILINE)
_DISABLED = re.compile(rb"\s*+disabled\b")
_EXPONENT = {unit: 10 * power for power, unit in enumerate((b"K", b"M", b"G", b"T", b"P", b"E", b"Z", b"Y"), 1)}


@dataclass(frozen=True, slots=True)
class ExtentsStats:
    """Calls by size; no histogram if counting is disabled or the table is incomplete."""

    histogram: Histogram | None
    """Bounds in bytes; columns read and write."""
    enabled: bool
    skipped: int


def parse(data: bytes) -> ExtentsStats:
    if _DISABLED.match(data):
        return ExtentsStats(None, enabled=False, skipped=0)
    head = header.split(data)
    rows = [row for row in _ROW.findall(data, head.end) if not any(map(header.is_beyond, row[3:6:2]))]
    whole = len(rows) == len(_ALMOST.findall(data, head.end)) and _ended(rows)
    understood = head.lines + len(_HEADINGS.findall(data, head.end)) + (len(rows) if whole else 0)
    table = _histogram(rows) if rows and whole else None
    return ExtentsStats(table, enabled=True, skipped=header.skipped_lines(data, understood))


def _ended(rows: list[tuple[bytes, ...]]) -> bool:
    """Whether the table is complete: each direction is at 100% or empty, or the last possible row is present."""
    if not rows or rows[-1][2] == b"+":
        return True
    columns = [[int(row[column]) for row in rows] for column in (3, 5)]
    if len(rows) > 1 and not any(column[-1] for column in columns):
        return False
    reached = (int(rows[-1][4]), int(rows[-1][6]))
    return all(percent == 100 or not any(column) for percent, column in zip(reached, columns, strict=True))


def _histogram(rows: list[tuple[bytes, ...]]) -> Histogram:
    uppers, units, marks, reads, _, writes, _ = zip(*rows, strict=True)
    bounds = tuple([(int(upper) << _EXPONENT[unit]) - 1 for upper, unit in zip(uppers, units, strict=True)])
    return Histogram(b"extents", bounds, (tuple(map(int, reads)), tuple(map(int, writes))), overflow=marks[-1] == b"+")
