r"""Requests between this client and one target: ``osc.*.rpc_stats``, ``mdc.*.rpc_stats``.

How many are under way, and histograms of their pages, number in flight, offset and latency::

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

``mdc`` (and ``osp``) begin with ``modify_RPCs_in_flight`` and a table of one direction; in ``mdc`` read and write
follow since 2.12. "DIO RPCs in flight" and the latency came with 2.17. What the labels mean is in
``lustre.text.histogram``: pages per rpc are inclusive upper bounds, in flight are the values themselves, offset (in
pages) and latency are printed as lower bounds and converted here.

Latency is *not* in microseconds as its heading says, but in units of 1024 ns (the kernel shifts nanoseconds by ten), so
a bound of n stands for n * 1.024 µs. And 2.17 multiplies the *counts* by 1.024 where it should have converted the
labels, so they add up to 2 % more than those of the other tables, the cumulative percentage overshoots, and the table
runs to its 32nd, empty row. The counts are passed on as printed, the empty end is left out.

>>> rpcs = parse(b"read RPCs in flight:  2\npending write pages:  7\n\n"
...              b"\t\t\tread\t\t\twrite\npages per rpc         rpcs   % cum % |       rpcs   % cum %\n"
...              b"1:\t\t         1  33  33   |          0   0   0\n2:\t\t         2  66 100   |          0   0   0\n")
>>> rpcs.read_in_flight, rpcs.pending_write_pages, rpcs.dio_in_flight
(2, 7, None)
>>> rpcs.pages_per_rpc.uppers, rpcs.pages_per_rpc.read
((1, 2), (1, 2))
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.text import header, histogram
from lustre.text.histogram import Histogram

LATENCY_UNIT_NSEC = 1024
"""What one unit of the latency table is."""

GAUGE = re.compile(
    rb"^((?:read|write|DIO) RPCs in flight|modify_RPCs_in_flight|pending (?:read|write) pages):"
    rb"[ \t]++(-?+\d{1,20}+)[ \t]*+\n",
    re.MULTILINE,
)
LATENCY = b"RPC latency (us)"
_BUCKETS = 32


@dataclass(frozen=True, slots=True)
class RpcStats:
    """The file; None for what this release or this kind of client does not print, or what could not be read."""

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
    """Where in the object requests begin, in pages."""
    latency_usec: Histogram | None
    """How long requests took, in units of 1.024 µs (``LATENCY_UNIT_NSEC``)."""
    modify_rpcs_in_flight: Histogram | None
    skipped: int


def parse(data: bytes) -> RpcStats:
    """Read a whole ``rpc_stats`` file."""
    head = header.split(data)
    tables_begin = data.find(b"\tread")
    lines = GAUGE.findall(data, head.end, tables_begin if tables_begin > 0 else len(data))
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
    """Leave out the empty rows that the overshooting percentage makes the kernel print."""
    if len(table.uppers) < _BUCKETS or any(column[-1] for column in table.columns):
        return table
    rows = 1 + max(i for column in table.columns for i, count in enumerate(column) if count or not i)
    return Histogram(table.name, table.uppers[:rows], tuple([column[:rows] for column in table.columns]))
