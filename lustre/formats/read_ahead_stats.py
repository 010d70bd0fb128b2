r"""Read-ahead counters of a mount: ``llite.*.read_ahead_stats``.

The file has the form of ``stats``. Most lines only count events; two lines (since 2.16) also tally pages::

    snapshot_time                       1795218507.461939774 secs.nsecs
    start_time                          1795217463.031959493 secs.nsecs
    elapsed_time                        1044.429980281 secs.nsecs
    hits                                29574 samples [pages]
    misses                              8232 samples [pages]
    readahead_pages                     61 samples [pages] 8 4096 29702

Before 2.15 names had spaces, and two names were different. The parser returns the names that 2.17 prints.

>>> ahead = parse(b"snapshot_time   9.5 secs.nsecs\nhits                      5 samples [pages]\n"
...               b"hit max r-a issue         2 samples [pages]\nread-ahead to EOF         1 samples [pages]\n")
>>> ahead.names, ahead.samples, ahead.sums
((b'hits', b'hit_max_readahead_issue', b'readahead_to_eof'), (b'5', b'2', b'1'), (b'', b'', b''))
"""

from __future__ import annotations

from dataclasses import replace

from lustre.formats import stats
from lustre.formats.stats import Stats

_NEW_NAMES = {b"hit_max_r-a_issue": b"hit_max_readahead_issue", b"read-ahead_to_EOF": b"readahead_to_eof"}


def parse(data: bytes) -> Stats:
    """The samples are events. The kernel does not print a counter that was never used."""
    table = stats.parse(data)
    return replace(table, names=tuple([_NEW_NAMES.get(name, name) for name in table.names]))
