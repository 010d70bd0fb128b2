r"""Operations per batched request to a metadata server: ``mdc.*.batch_stats``, since 2.16.

Statahead requests the attributes of many files at once. The kernel prints each percent sign of the heading twice::

    snapshot_time:            1795218506.433055515 secs.nsecs
    start_time:               0.000000000 secs.nsecs
    elapsed_time:             1795218506.433055515 secs.nsecs
    subreqs per batch   batches   %% cum %%
    1:                      12  41  41
    2:                       0   0  41
    4:                      17  58 100

Labels are inclusive upper bounds, powers of two (``lprocfs_oh_tally_log2``): label 4 counts 3 and 4. ``start_time`` is
0 until somebody clears the file. The kernel prints rows up to the last nonempty one. A table that does not reach 100%
has lost its end, and the parser drops it.

>>> parse(b"subreqs per batch   batches   %% cum %%\n1:\t\t         3  75  75\n2:\t\t         1  25 100\n")
BatchStats(uppers=(1, 2), counts=(3, 1), skipped=0)
>>> parse(b"subreqs per batch   batches   %% cum %%\n1:\t\t         3  75  75\n")
BatchStats(uppers=(), counts=(), skipped=2)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.formats import header

_HEADING = re.compile(rb"subreqs per batch +batches +%+ cum %+\n")
_ROW = re.compile(rb"(\d{1,10}+):[ \t]*+(\d{1,20}+) ++(\d{1,4}+) ++(\d{1,4}+)\n")


@dataclass(frozen=True, slots=True)
class BatchStats:
    """The histogram of batch sizes; empty if the table is incomplete."""

    uppers: tuple[int, ...]
    counts: tuple[int, ...]
    """Batched requests in each bucket, not cumulative."""
    skipped: int


def parse(data: bytes) -> BatchStats:
    head = header.split(data)
    heading = _HEADING.match(data, head.end)
    rows = _ROW.findall(data, heading.end()) if heading else []
    uppers = tuple([int(label) for label, _, _, _ in rows])
    counts = tuple([int(count) for _, count, _, _ in rows])
    ended = bool(rows) and (rows[-1][3] == b"100" or not any(counts))
    ended = ended and max(counts) < header.WRAPPED
    if not ended or uppers != tuple([1 << power for power in range(len(uppers))]):
        return BatchStats((), (), header.skipped_lines(data, head.lines))
    return BatchStats(uppers, counts, header.skipped_lines(data, head.lines + 1 + len(rows)))
