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
>>> ahead.names, ahead.counts, ahead.sums
((b'hits', b'hit_max_readahead_issue', b'readahead_to_eof'), (b'5', b'2', b'1'), (b'', b'', b''))
>>> ahead.count(b"hits"), ahead.count(b"misses")
(5, None)
"""

from __future__ import annotations

from dataclasses import dataclass

from lustre.formats import stats

_NEW_NAMES = {b"hit_max_r-a_issue": b"hit_max_readahead_issue", b"read-ahead_to_EOF": b"readahead_to_eof"}


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """The file in columns, with digits as printed. The kernel does not print a counter that was never used."""

    start_time: bytes
    names: tuple[bytes, ...]
    counts: tuple[bytes, ...]
    """Number of events (samples)."""
    minima: tuple[bytes, ...]
    maxima: tuple[bytes, ...]
    sums: tuple[bytes, ...]
    """Sum of pages for counters that tally pages; empty for other counters."""
    skipped: int

    def count(self, name: bytes) -> int | None:
        """Return the number of events; None if no event occurred or the release does not count it."""
        return int(self.counts[self.names.index(name)]) if name in self.names else None


def parse(data: bytes) -> ReadAhead:
    table = stats.parse(data)
    names = tuple([_NEW_NAMES.get(name, name) for name in table.names])
    return ReadAhead(table.start_time, names, table.samples, table.minima, table.maxima, sums=table.sums,
                     skipped=table.skipped)
