r"""Requests between this client and one target: ``osc.*.rpc_stats``, ``mdc.*.rpc_stats``.

The file has the number of requests in flight, and histograms of pages, requests in flight, offset and latency::

    snapshot_time:            1795218508.746199856 secs.nsecs
    start_time:               1795217463.180792074 secs.nsecs
    elapsed_time:             1045.565407782 secs.nsecs
    read RPCs in flight:  0
    write RPCs in flight: 0
    DIO RPCs in flight: 0
    pending write pages:  0
    pending read pages:   0

                            read                    write
    pages per rpc         rpcs   % cum % |       rpcs   % cum %
    1:                1450  63  63   |         44  21  21
    …

``mdc`` (and ``osp``) begin with ``modify_RPCs_in_flight`` and a table of one direction. Since 2.12, reads and writes
follow in ``mdc``. "DIO RPCs in flight" and the latency came with 2.17. ``lustre.formats.histogram`` describes the
labels: pages per rpc are inclusive upper bounds, requests in flight are the values themselves. The kernel prints offset
(in pages) and latency as lower bounds, which the parser converts.

Latency is *not* in microseconds as its heading says, but in units of 1024 ns (the kernel shifts nanoseconds by ten), so
a bound of n means n * 1.024 µs. Moreover, 2.17 multiplies the *counts* by 1.024 instead of converting the labels. The
sum of the counts is therefore 2% higher than in the other tables, the cumulative percentage exceeds 100, and the kernel
prints empty rows up to the 32nd. The parser returns the counts as printed and drops the empty rows at the end.

>>> rpcs = parse(b"read RPCs in flight:  2\npending write pages:  7\n\n"
...              b"\t\t\tread\t\t\twrite\npages per rpc         rpcs   % cum % |       rpcs   % cum %\n"
...              b"1:\t\t         1  33  33   |          0   0   0\n2:\t\t         2  66 100   |          0   0   0\n")
>>> rpcs.read_in_flight, rpcs.pending_write_pages, rpcs.dio_in_flight
(2, 7, None)
>>> rpcs.pages_per_rpc.uppers, rpcs.pages_per_rpc.columns
((1, 2), ((1, 2), (0, 0)))

``form_of`` makes an outline of a text, with which the C module reads the numbers of later texts of the same form
(``lustre.formats.outline``). It accepts a text under the same conditions as ``parse``; ``parse`` reads all others.

>>> text = (b"read RPCs in flight:  2\n\n"
...         b"\t\t\tread\t\t\twrite\npages per rpc         rpcs   % cum % |       rpcs   % cum %\n"
...         b"1:\t\t         1  33  33   |          0   0   0\n2:\t\t         2  66 100   |          0   0   0\n")
>>> form = form_of(text, parse(text), frozenset({"read_in_flight", "pages_per_rpc"}))
>>> form.gauges, [field for field, _ in form.tables]
(('read_in_flight',), ['pages_per_rpc'])
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lustre.formats import header, histogram, outline
from lustre.formats.histogram import Histogram
from lustre.formats.opcodes import Opcode
from lustre.formats.outline import Outline, Place

LATENCY_UNIT_NSEC = 1024
"""Length of one unit of the latency table."""

GAUGE = re.compile(
    rb"^((?:read|write|DIO) RPCs in flight|modify_RPCs_in_flight|pending (?:read|write) pages):"
    rb"[ \t]++(-?+\d{1,20}+)[ \t]*+\n",
    re.MULTILINE,
)
LATENCY = b"RPC latency (us)"
_GAUGE_FIELDS = {
    b"read RPCs in flight": "read_in_flight",
    b"write RPCs in flight": "write_in_flight",
    b"DIO RPCs in flight": "dio_in_flight",
    b"modify_RPCs_in_flight": "modify_in_flight",
    b"pending read pages": "pending_read_pages",
    b"pending write pages": "pending_write_pages",
}
"""Fields of ``RpcStats`` by the name that the kernel prints."""
_TABLE_FIELDS = {
    (b"pages per rpc", 2): "pages_per_rpc",
    (b"rpcs in flight", 2): "rpcs_in_flight",
    (LATENCY, 2): "latency_usec",
    (b"rpcs in flight", 1): "modify_rpcs_in_flight",
}
"""Fields of ``RpcStats`` by heading and number of directions. The table of offsets has no metric."""
_BUCKETS = 32


@dataclass(frozen=True, slots=True)
class RpcStats:
    """The parsed file; None for fields that are incomplete, or that this release or device does not print."""

    start_time: bytes
    read_in_flight: int | None
    write_in_flight: int | None
    dio_in_flight: int | None
    modify_in_flight: int | None
    pending_read_pages: int | None
    pending_write_pages: int | None
    pages_per_rpc: Histogram | None
    rpcs_in_flight: Histogram | None
    offset: Histogram | None
    """Offset of requests in the object, in pages."""
    latency_usec: Histogram | None
    """Latency of requests in units of 1.024 µs (``LATENCY_UNIT_NSEC``)."""
    modify_rpcs_in_flight: Histogram | None
    skipped: int


def parse(data: bytes) -> RpcStats:
    head = header.split(data)
    tables_begin = data.find(b"\tread")
    lines = GAUGE.findall(data, head.end, tables_begin if tables_begin > 0 else len(data))
    lines = [(name, value) for name, value in lines if not header.is_beyond(value.lstrip(b"-"))]
    gauges = {name: int(value) for name, value in lines}
    tables = histogram.parse(data)
    named = {(table.name, len(table.columns)): table for table in tables.histograms if table.uppers}
    latency = named.get((LATENCY, 2))
    return RpcStats(
        start_time=head.start_time,
        read_in_flight=gauges.get(b"read RPCs in flight"),
        write_in_flight=gauges.get(b"write RPCs in flight"),
        dio_in_flight=gauges.get(b"DIO RPCs in flight"),
        modify_in_flight=gauges.get(b"modify_RPCs_in_flight"),
        pending_read_pages=gauges.get(b"pending read pages"),
        pending_write_pages=gauges.get(b"pending write pages"),
        pages_per_rpc=named.get((b"pages per rpc", 2)),
        rpcs_in_flight=named.get((b"rpcs in flight", 2)),
        offset=named.get((b"offset", 2)),
        latency_usec=None if latency is None else _without_empty_end(latency),
        modify_rpcs_in_flight=named.get((b"rpcs in flight", 1)),
        skipped=header.skipped_lines(data, head.lines + len(lines) + tables.understood),
    )


def _without_empty_end(table: Histogram) -> Histogram:
    """Drop the empty rows at the end, which the kernel prints if the percentage exceeds 100."""
    if len(table.uppers) < _BUCKETS or any(column[-1] for column in table.columns):
        return table
    rows = 1 + max(i for column in table.columns for i, count in enumerate(column) if count or not i)
    return Histogram(table.name, table.uppers[:rows], tuple([column[:rows] for column in table.columns]))


_WORD = re.compile(rb"\S+")


@dataclass(frozen=True, slots=True, eq=False)
class RpcForm:
    """Meaning of the numbers in texts of one form, in order."""

    outline: Outline
    timed: bool
    """Whether the first value is the start time of counting, as printed, instead of a number."""
    gauges: tuple[str, ...]
    """Fields of ``RpcStats`` whose values come first."""
    tables: tuple[tuple[str, Histogram], ...]
    """Field of ``RpcStats`` and a table with the same buckets. The counts follow, column by column."""


def form_of(data: bytes, parsed: RpcStats, wanted: frozenset[str]) -> RpcForm | None:
    head = header.split(data)
    places = list(outline.times(data))
    printed: list[str] = []
    for match in GAUGE.finditer(data, head.end):
        if header.is_beyond(match[2].lstrip(b"-")):
            return None
        field = _GAUGE_FIELDS[match[1]]
        places.append((match.start(2), match.end(2), Opcode.WANTED if field in wanted else Opcode.COUNTED))
        printed += [field] * (field in wanted)
    gauges = sorted({*printed}, key=list(_GAUGE_FIELDS.values()).index)
    tables: list[tuple[str, Histogram]] = []
    words = [match.span() for match in _WORD.finditer(data)]
    timed = bool(head.start_time)
    order = [0] * timed + [timed + gauges.index(field) for field in printed]
    for place in histogram.places(data):
        field = _TABLE_FIELDS.get((place.name, place.width), place.name.decode("ascii", "replace"))
        table: Histogram | None = getattr(parsed, field, None)
        if table is None or not 0 < len(table.uppers) <= place.rows:
            return None
        if field in wanted:
            rows, first = len(table.uppers), len(order)
            tables.append((field, table))
            order += [first + column * rows + row for row in range(rows) for column in range(place.width)]
        places += _of_table(data, place, table, words, shown=field in wanted)
    if parsed.skipped or len(gauges) < len(printed) or {*gauges} | {field for field, _ in tables} != {
        field for field in wanted if getattr(parsed, field) is not None
    }:
        return None
    made = outline.of(data, places, order)
    return None if made is None else RpcForm(made, timed, tuple(gauges), tuple(tables))


def _of_table(
    data: bytes, place: histogram.Place, table: Histogram, words: list[tuple[int, int]], *, shown: bool
) -> Iterator[Place]:
    """Yield the places of one table's numbers. The last row is not empty, and each direction is empty or at 100%."""
    stride, rows = 4 * place.width, len(table.uppers)
    ends = place.rows == rows and not table.overflow
    empty = [ends and data[slice(*words[place.first + stride * rows - 1 - 4 * (place.width - 1 - column)])] != b"100"
             for column in range(place.width)]  # fmt: skip
    for row in range(rows):
        first = place.first + stride * row
        last = row == rows - 1 and (rows > 1 or not shown)
        if last:
            yield (words[first][0], words[first][0], Opcode.FORGET)
        for column in range(place.width):
            count, share, reached = words[first + 4 * column + 1 : first + 4 * column + 4]
            kind = Opcode.ZERO if empty[column] else Opcode.WANTED
            if shown or not empty[column]:  # an empty column stays literal text: zero
                yield (*count, kind if shown else Opcode.COUNTED)
            yield (*share, Opcode.NUMBER)
            if row < rows - 1 or not ends:
                yield (*reached, Opcode.NUMBER)
        if last:
            yield (words[first + stride - 1][1], words[first + stride - 1][1], Opcode.SEEN)
    for row in range(rows, place.rows):  # empty rows at the end, which the parser drops
        for column in range(place.width):
            of_row = place.first + stride * row + 4 * column
            yield (*words[of_row + 2], Opcode.NUMBER)
            yield (*words[of_row + 3], Opcode.NUMBER)
