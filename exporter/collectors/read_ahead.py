"""Read-ahead and statahead of clients: ``llite.*.read_ahead_stats``, ``llite.*.statahead_stats``, and their limits.

Read-ahead fetches pages of a file before the application reads them. Statahead fetches the attributes of the files in
a directory that is being listed.
"""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.exposition import Counter, Gauge, MetricsPage, escape
from exporter.node import Node
from exporter.sources import Source, paged
from lustre.formats import df, read_ahead_stats, statahead_stats

LABELS = ("fs", "mount")
READ_AHEAD_STATS = "llite.*.read_ahead_stats"
STATAHEAD_STATS = "llite.*.statahead_stats"
HITS = Counter(
    "lustre_llite_read_ahead_hits_total", "Pages served from the read-ahead cache.", LABELS, READ_AHEAD_STATS)
MISSES = Counter(
    "lustre_llite_read_ahead_misses_total",
    "Pages missing from the read-ahead cache, so that applications waited for them.", LABELS, READ_AHEAD_STATS)
EVENTS = Counter(
    "lustre_llite_read_ahead_events_total",
    "Read-ahead events other than hits and misses, by event, such as non-consecutive reads and pages discarded unread.",
    (*LABELS, "event"), READ_AHEAD_STATS)
PAGES = Counter(
    "lustre_llite_read_ahead_pages_total", "Pages read ahead, by the event that requested them.", (*LABELS, "event"),
    READ_AHEAD_STATS, versions="2.16+")
STATAHEAD_STARTED = Counter(
    "lustre_llite_statahead_started_total",
    "Statahead runs started. A run prefetches file attributes for a program that lists a directory.", LABELS,
    STATAHEAD_STATS)
STATAHEAD_WRONG = Counter(
    "lustre_llite_statahead_wrong_total", "Statahead runs aborted because of a low hit rate.", LABELS, STATAHEAD_STATS)
GLIMPSES = Counter(
    "lustre_llite_statahead_async_glimpses_total",
    "Asynchronous glimpse (AGL) threads started by statahead to prefetch file sizes from object servers.", LABELS,
    STATAHEAD_STATS)
PATTERNS = Counter(
    "lustre_llite_statahead_patterns_total",
    "Statahead runs, by access pattern: list (directory order) or name (file names that follow a pattern).",
    (*LABELS, "pattern"), STATAHEAD_STATS, versions="2.16+")
STATAHEAD_HITS = Counter(
    "lustre_llite_statahead_hits_total", "File attributes served from the statahead cache.", LABELS, STATAHEAD_STATS,
    versions="2.16+")
STATAHEAD_MISSES = Counter(
    "lustre_llite_statahead_misses_total",
    "File attributes missing from the statahead cache and requested from the server.", LABELS, STATAHEAD_STATS,
    versions="2.16+")
LIMITS = {
    "max_read_ahead_mb": Gauge(
        "lustre_llite_read_ahead_max_bytes", "Limit on data read ahead for all files of the mount together.", LABELS,
        "llite.*.max_read_ahead_mb"),
    "max_read_ahead_per_file_mb": Gauge(
        "lustre_llite_read_ahead_max_file_bytes", "Limit on data read ahead for one file.", LABELS,
        "llite.*.max_read_ahead_per_file_mb"),
    "max_read_ahead_whole_mb": Gauge(
        "lustre_llite_read_ahead_max_whole_bytes", "Largest file that the client reads whole at the first read.",
        LABELS, "llite.*.max_read_ahead_whole_mb"),
    "statahead_max": Gauge(
        "lustre_llite_statahead_max_entries",
        "Limit on directory entries prefetched by one statahead run. 0 disables statahead.", LABELS,
        "llite.*.statahead_max"),
    "statahead_running_max": Gauge(
        "lustre_llite_statahead_max_running", "Limit on concurrent statahead runs.", LABELS,
        "llite.*.statahead_running_max"),
    "statahead_batch_max": Gauge(
        "lustre_llite_statahead_batch_max_entries",
        "Limit on file attributes fetched in one statahead request. 0 disables batching.", LABELS,
        "llite.*.statahead_batch_max", versions="2.16+"),
}


def start(_: Context) -> Collect:
    shown = {"read_ahead_stats": _read_ahead, "statahead_stats": _statahead}
    sources = [Source("llite", name, paged(show)) for name, show in shown.items()]

    def collect(node: Node, page: MetricsPage) -> None:
        mounts = node.mounts()
        for source in sources:
            source.collect(node, page, mounts)
        for device, labels in mounts:
            for name, family in LIMITS.items():
                parse = parse_mebibytes if name.endswith("_mb") else df.integer
                page.sample(family, labels, node.number("llite", device, name, parse))

    return collect


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
    rows = dict(zip(parsed.names, zip(parsed.counts, parsed.sums, strict=True), strict=True))
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
    STATAHEAD_MISSES, *LIMITS.values())
COLLECTOR = Collector("read_ahead", "read-ahead and statahead of clients, and their limits", FAMILIES, start)
