"""Read-ahead and statahead of clients: ``llite.*.read_ahead_stats``, ``llite.*.statahead_stats``, and their limits.

Read-ahead fetches pages of a file before the application reads them. Statahead fetches the attributes of the files in
a directory that is being listed.
"""

from __future__ import annotations

from exporter.collector import Collector, all_of, reads, reads_numbers
from exporter.exposition import MetricsPage, escape
from exporter.families import FamilyMaker
from exporter.sources import paged
from lustre.formats import df, read_ahead_stats, statahead_stats

OF_MOUNT = FamilyMaker("lustre_llite", ("fs", "mount"), "llite.*")
PAGES_AHEAD, AHEAD = OF_MOUNT.of("read_ahead_stats"), OF_MOUNT.of("statahead_stats")
HITS = PAGES_AHEAD.counter("read_ahead_hits", "Pages served from the read-ahead cache.")
MISSES = PAGES_AHEAD.counter(
    "read_ahead_misses", "Pages missing from the read-ahead cache, so that applications waited for them.")
EVENTS = PAGES_AHEAD.counter(
    "read_ahead_events",
    "Read-ahead events other than hits and misses, by event, such as non-consecutive reads and pages discarded unread.",
    "event")
PAGES = PAGES_AHEAD.counter(
    "read_ahead_pages", "Pages read ahead, by the event that requested them.", "event", versions="2.16+")
STATAHEAD_STARTED = AHEAD.counter(
    "statahead_started",
    "Statahead runs started. A run prefetches file attributes for a program that lists a directory.")
STATAHEAD_WRONG = AHEAD.counter("statahead_wrong", "Statahead runs aborted because of a low hit rate.")
GLIMPSES = AHEAD.counter(
    "statahead_async_glimpses",
    "Asynchronous glimpse (AGL) threads started by statahead to prefetch file sizes from object servers.")
PATTERNS = AHEAD.counter(
    "statahead_patterns",
    "Statahead runs, by access pattern: list (directory order) or name (file names that follow a pattern).",
    "pattern", versions="2.16+")
STATAHEAD_HITS = AHEAD.counter(
    "statahead_hits", "File attributes served from the statahead cache.", versions="2.16+")
STATAHEAD_MISSES = AHEAD.counter(
    "statahead_misses", "File attributes missing from the statahead cache and requested from the server.",
    versions="2.16+")
SIZES = OF_MOUNT.numbers(
    ("max_read_ahead_mb", "read_ahead_max_bytes", "Limit on data read ahead for all files of the mount together."),
    ("max_read_ahead_per_file_mb", "read_ahead_max_file_bytes", "Limit on data read ahead for one file."),
    ("max_read_ahead_whole_mb", "read_ahead_max_whole_bytes",
     "Largest file that the client reads whole at the first read."),
)
LIMITS = OF_MOUNT.numbers(
    ("statahead_max", "statahead_max_entries",
     "Limit on directory entries prefetched by one statahead run. 0 disables statahead."),
    ("statahead_running_max", "statahead_max_running", "Limit on concurrent statahead runs."),
    ("statahead_batch_max", "statahead_batch_max_entries",
     "Limit on file attributes fetched in one statahead request. 0 disables batching.", "2.16+"),
)


def parse_mebibytes(data: bytes) -> int | None:
    r"""Parse a size in MiB to bytes. Some releases print a fraction.

    >>> parse_mebibytes(b"64\n"), parse_mebibytes(b"0.50\n"), parse_mebibytes(b"64"), parse_mebibytes(b"many\n")
    (67108864, 524288, None, None)
    """
    whole, dot, fraction = data.strip().partition(b".")
    if not data.endswith(b"\n") or not whole.isdigit() or (dot and not fraction.isdigit()):
        return None
    return (int(whole + fraction) << 20) // int(b"1".ljust(len(fraction) + 1, b"0"))


def _read_ahead(page: MetricsPage, labels: bytes, data: bytes) -> int:
    parsed = read_ahead_stats.parse(data)
    rows = dict(zip(parsed.names, zip(parsed.samples, parsed.sums, strict=True), strict=True))
    for name, (count, pages) in rows.items():
        if name in {b"hits", b"misses"}:
            page.sample(HITS if name == b"hits" else MISSES, labels, count)
            continue
        event = b'%b,event="%b"' % (labels, escape(name))
        page.sample(EVENTS, event, count)
        page.sample(PAGES, event, pages if pages.isdigit() else None)
    return parsed.skipped + len(parsed.names) - len(rows)


def _statahead(page: MetricsPage, labels: bytes, data: bytes) -> int:
    parsed = statahead_stats.parse(data)
    page.sample(STATAHEAD_STARTED, labels, parsed.total)
    page.sample(STATAHEAD_WRONG, labels, parsed.wrong)
    page.sample(GLIMPSES, labels, parsed.agl_total)
    page.sample(PATTERNS, labels + b',pattern="list"', parsed.list_total)
    page.sample(PATTERNS, labels + b',pattern="name"', parsed.fname_total)
    page.sample(STATAHEAD_HITS, labels, parsed.hit_total)
    page.sample(STATAHEAD_MISSES, labels, parsed.miss_total)
    return parsed.skipped


FAMILIES = (
    HITS, MISSES, EVENTS, PAGES, STATAHEAD_STARTED, STATAHEAD_WRONG, GLIMPSES, PATTERNS, STATAHEAD_HITS,
    STATAHEAD_MISSES, *SIZES.values(), *LIMITS.values())
COLLECTOR = Collector("read_ahead", "read-ahead and statahead of clients, and their limits", FAMILIES, all_of(
    reads("llite", "read_ahead_stats", lambda: paged(_read_ahead)),
    reads("llite", "statahead_stats", lambda: paged(_statahead)),
    reads_numbers("llite", SIZES, parse=parse_mebibytes), reads_numbers("llite", LIMITS, parse=df.integer)))
