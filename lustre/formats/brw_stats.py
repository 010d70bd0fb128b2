r"""Disk I/O of a target: ``osd-*.*.brw_stats`` (with ldiskfs up to 2.14 also ``obdfilter.*.brw_stats``).

The file has tables of pages, gaps, disk requests and times, with reads on the left and writes on the right::

    snapshot_time:            1795218508.894566268 secs.nsecs
    start_time:               1795217459.334673242 secs.nsecs
    elapsed_time:             1049.559893026 secs.nsecs

                               read      |     write
    disk I/O size          ios   % cum % |  ios         % cum %
    4K:                  0   0   0   |   44   7   7
    8K:                  0   0   0   |    0   0   7
    16K:                 0   0   0   |  460  93 100

ldiskfs fills all tables, ZFS some. The columns of "block maps msec" (since 2.16) are not reads and writes: the first is
the time to look up blocks, the second the time to allocate blocks. I/O time and block maps are in milliseconds. A label
is an inclusive upper bound or the value itself; K and M are powers of 1024 (``lustre.formats.histogram``). The kernel
reads these counters while they change, so the columns of a table may differ by a request.

>>> brw = parse(b"snapshot_time:   9.5 secs.nsecs\n\n                           read      |     write\n"
...             b"disk I/O size          ios   % cum % |  ios         % cum %\n"
...             b"4K:\t\t         0   0   0   |   44  88  88\n8K:\t\t         1 100 100   |    6  12 100\n")
>>> brw.histograms
(Histogram(name=b'disk I/O size', uppers=(4096, 8192), columns=((0, 1), (44, 6)), overflow=False),)
>>> brw.named(b"I/O time (1/1000s)") is None
True
"""

from __future__ import annotations

from dataclasses import dataclass

from lustre.formats import header, histogram
from lustre.formats.histogram import Histogram


@dataclass(frozen=True, slots=True)
class BrwStats:
    """The tables that the target prints, in order."""

    start_time: bytes
    histograms: tuple[Histogram, ...]
    skipped: int

    def named(self, name: bytes) -> Histogram | None:
        return next((table for table in self.histograms if table.name == name), None)


def parse(data: bytes) -> BrwStats:
    head = header.split(data)
    tables = histogram.parse(data)
    return BrwStats(head.start_time, tables.histograms, header.skipped_lines(data, head.lines + tables.understood))
