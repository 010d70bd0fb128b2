r"""Latency of reads and writes by size: ``osc.*.io_latency_stats``, ``osd-*.*.io_latency_stats``. Since 2.17::

    io_latency_by_size:
    snapshot_time: 1795218507.159951195
    start_time:   1795217463.145225370
    elapsed_time: 1044.014725825
    rd_4K: { 512us: 9, 1024us: 3, 8192us: 2, }
    wr_2048K: { 32768us: 1, 131072us: 2, }

The file has one line for each direction and size that occurred. A line lists only times that occurred. Sizes are lower
bounds: ``4K`` is one page, ``8K`` two and three, ``16K`` four to seven. Times are exclusive lower bounds: ``512us`` is
more than 512 and up to 1024. As in ``rpc_stats``, times are in units of 1024 ns, and the *counts* are multiplied by
1.024. The kernel computes with integers, so only counts of 42 and more show the factor. The parser returns the counts
as printed. The parsed tables begin at the kernel's first bucket and have no gaps: times that are not listed count 0.

An object storage device prints ``rd_4K: { uninit }`` for a size that it does not count.

>>> latency = parse(b"io_latency_by_size:\nsnapshot_time: 9.5\nrd_4K: { 0us: 9, 2us: 3, }\nwr_8K: { uninit }\n")
>>> latency.tables
(Table(direction=b'read', size_bytes=4096, uppers=(1, 2, 4), counts=(9, 0, 3), overflow=False),)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.formats import header

_TITLE = b"io_latency_by_size:\n"
_LINE = re.compile(rb"^(rd|wr)_(\d{1,10}+)K: \{ (?:uninit \}|((?:\d{1,10}+us: \d{1,20}+, )*)\})[ \t]*+\n", re.MULTILINE)
_PAIR = re.compile(rb"(\d++)us: (\d++), ")
_DIRECTIONS = {b"rd": b"read", b"wr": b"write"}
_LAST = 31
"""The kernel's last bucket. It also counts all longer times."""


@dataclass(frozen=True, slots=True)
class Table:
    """Reads or writes of one size, by latency."""

    direction: bytes
    size_bytes: int
    """Lower bound of the size; the size is below twice this bound."""
    uppers: tuple[int, ...]
    """Inclusive upper bounds in units of 1.024 µs (``rpc_stats.LATENCY_UNIT_NSEC``)."""
    counts: tuple[int, ...]
    """Counts per bucket, not cumulative."""
    overflow: bool
    """Whether the last bucket also counts everything above its bound."""


@dataclass(frozen=True, slots=True)
class IoLatency:
    """Tables of all sizes that occurred, reads first."""

    start_time: bytes
    tables: tuple[Table, ...]
    skipped: int


def parse(data: bytes) -> IoLatency:
    titled = data.startswith(_TITLE)
    head = header.split(data[len(_TITLE) :] if titled else data)
    rows = _LINE.findall(data)
    tables: dict[tuple[bytes, bytes], Table] = {}
    understood = 0
    for direction, kilobytes, pairs in rows:
        table = _table(direction, kilobytes, pairs)
        if table is not None and (direction, kilobytes) not in tables:
            tables[direction, kilobytes] = table
        elif pairs:
            continue
        understood += 1
    skipped = header.skipped_lines(data, titled + head.lines + understood)
    return IoLatency(head.start_time, tuple(tables.values()), skipped)


def after_header(data: bytes) -> bytes:
    """Return the text after the times. Two readings have the same text if nothing was counted between them."""
    begin = len(_TITLE) if data.startswith(_TITLE) else 0
    return data[begin + header.split(data[begin:]).end :]


def _table(direction: bytes, kilobytes: bytes, pairs: bytes) -> Table | None:
    """Parse the table of one line; None if it has no rows, a time that is not a power of two, or a repeated time."""
    counts: dict[int, int] = {}
    for lower, count in _PAIR.findall(pairs):
        bucket = int(lower).bit_length()
        if bucket > _LAST or int(lower) != (1 << bucket) >> 1 or bucket in counts or header.is_beyond(count):
            return None
        counts[bucket] = int(count)
    if not counts:
        return None
    buckets = range(max(counts) + 1)
    return Table(
        _DIRECTIONS[direction],
        int(kilobytes) << 10,
        tuple([1 << bucket for bucket in buckets]),
        tuple([counts.get(bucket, 0) for bucket in buckets]),
        overflow=max(counts) == _LAST,
    )
