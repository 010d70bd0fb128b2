"""``brw_stats`` of a target: the I/O it gave its disk, as histograms for reads and writes."""

from __future__ import annotations

from simulator.tally import Histogram

PAGE_BYTES = 4096

TABLES: tuple[tuple[str, str, bool], ...] = (
    ("pages per bulk r/w", "rpcs", True),
    ("discontiguous pages", "rpcs", False),
    ("discontiguous blocks", "rpcs", False),
    ("disk fragmented I/Os", "ios", False),
    ("disk I/Os in flight", "ios", False),
    ("I/O time (1/1000s)", "ios", True),
    ("disk I/O size", "ios", True),
    ("block maps msec", "maps", True),
)
"""Title, what is counted, whether the buckets are powers of two."""


class BrwStats:
    """Eight histograms for reads, eight for writes."""

    def __init__(self, start_time: float) -> None:
        self.start_time = start_time
        self.reads = {title: Histogram() for title, _, _ in TABLES}
        self.writes = {title: Histogram() for title, _, _ in TABLES}

    def begin(self, write: bool, size_bytes: int, fragments: int, in_flight: int) -> None:
        """An RPC's I/O goes to the disk, as one I/O per fragment; ``in_flight`` counts the first of them."""
        side = self.writes if write else self.reads
        side["pages per bulk r/w"].tally_log2(-(-size_bytes // PAGE_BYTES))
        side["discontiguous pages"].tally(fragments)
        side["discontiguous blocks"].tally(fragments)
        side["disk fragmented I/Os"].tally(fragments)
        side["block maps msec"].tally_log2(1)
        for number in range(fragments):
            side["disk I/Os in flight"].tally(in_flight + number)
            side["disk I/O size"].tally_log2(size_bytes // fragments)

    def end(self, write: bool, seconds: float) -> None:
        """It is on the disk, or read."""
        side = self.writes if write else self.reads
        side["I/O time (1/1000s)"].tally_log2(int(seconds * 1000))
