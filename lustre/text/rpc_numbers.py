r"""``rpc_stats`` as bare numbers: the first text of a form says what they are (``lustre.text.outline``).

What ``lustre.text.rpc_reader`` does with words is done by an outline here. Both hold a text to the same conditions, and
a text that does not meet them is left to ``rpc_stats.parse``.

>>> text = (b"read RPCs in flight:  2\n\n"
...         b"\t\t\tread\t\t\twrite\npages per rpc         rpcs   % cum % |       rpcs   % cum %\n"
...         b"1:\t\t         1  33  33   |          0   0   0\n2:\t\t         2  66 100   |          0   0   0\n")
>>> form = form_of(text, rpc_stats.parse(text), frozenset({"read_in_flight", "pages_per_rpc"}))
>>> form.gauges, [field for field, _ in form.tables]
(('read_in_flight',), ['pages_per_rpc'])
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lustre.text import header, histogram, outline, rpc_stats
from lustre.text.histogram import Histogram
from lustre.text.outline import COUNTED, FORGET, NUMBER, SEEN, WANTED, ZERO, Outline, Place
from lustre.text.rpc_reader import GAUGES, TABLES
from lustre.text.rpc_stats import RpcStats

_WORD = re.compile(rb"\S+")


@dataclass(frozen=True, slots=True, eq=False)
class RpcForm:
    """What the numbers of texts of one form are, in this order."""

    outline: Outline
    timed: bool
    """The first is no number, but the time since when the file counts, as printed."""
    gauges: tuple[str, ...]
    """Fields of ``RpcStats``."""
    tables: tuple[tuple[str, Histogram], ...]
    """Field, and a table with the same buckets; its counts follow column by column."""


def form_of(data: bytes, parsed: RpcStats, wanted: frozenset[str]) -> RpcForm | None:
    """The form of this text; None when something in it is unusual."""
    head = header.split(data)
    places = list(outline.times(data))
    printed: list[str] = []
    for match in rpc_stats.GAUGE.finditer(data, head.end):
        field = GAUGES[match[1]]
        places.append((match.start(2), match.end(2), WANTED if field in wanted else NUMBER))
        printed += [field] * (field in wanted)
    gauges = sorted(printed, key=list(GAUGES.values()).index)
    tables: list[tuple[str, Histogram]] = []
    words = [match.span() for match in _WORD.finditer(data)]
    timed = bool(head.start_time)
    order = [0] * timed + [timed + gauges.index(field) for field in printed]
    for place in histogram.places(data):
        field = TABLES.get((place.name, place.width), place.name.decode("ascii", "replace"))
        table: Histogram | None = getattr(parsed, field, None)
        if table is None or not 0 < len(table.uppers) <= place.rows:
            return None
        if field in wanted:
            rows, first = len(table.uppers), len(order)
            tables.append((field, table))
            order += [first + column * rows + row for row in range(rows) for column in range(place.width)]
        places += _of_table(data, place, table, words, shown=field in wanted)
    if parsed.skipped or {*gauges} | {field for field, _ in tables} != {
        field for field in wanted if getattr(parsed, field) is not None
    }:
        return None
    made = outline.of(data, places, order)
    return None if made is None else RpcForm(made, timed, tuple(gauges), tuple(tables))


def _of_table(
    data: bytes, place: histogram.Place, table: Histogram, words: list[tuple[int, int]], *, shown: bool
) -> Iterator[Place]:
    """The table's numbers. As the kernel prints them: the last row not empty, each direction at 100 % or empty."""
    stride, rows = 4 * place.width, len(table.uppers)
    ends = place.rows == rows and not table.overflow
    empty = [ends and data[slice(*words[place.first + stride * rows - 1 - 4 * (place.width - 1 - column)])] != b"100"
             for column in range(place.width)]  # fmt: skip
    for row in range(rows):
        first = place.first + stride * row
        last = row == rows - 1 and (rows > 1 or not shown)
        if last:
            yield (words[first][0], words[first][0], FORGET)
        for column in range(place.width):
            count, share, reached = words[first + 4 * column + 1 : first + 4 * column + 4]
            kind = ZERO if empty[column] else WANTED
            if shown or not empty[column]:  # else it stays to the letter: zero
                yield (*count, kind if shown else COUNTED)
            yield (*share, NUMBER)
            if row < rows - 1 or not ends:
                yield (*reached, NUMBER)
        if last:
            yield (words[first + stride - 1][1], words[first + stride - 1][1], SEEN)
    for row in range(rows, place.rows):  # empty ones, which are not shown
        for column in range(place.width):
            of_row = place.first + stride * row + 4 * column
            yield (*words[of_row + 2], NUMBER)
            yield (*words[of_row + 3], NUMBER)
