"""File data cached by clients (``llite.*.max_cached_mb``), and data not yet committed (``unstable_stats``)."""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.families import Counter, Gauge
from exporter.node import Node
from exporter.page import Page
from exporter.sources import Render, Rendered, Source
from lustre.formats import max_cached_mb, unstable_stats

LABELS = ("fs", "mount")
CACHE = "llite.*.max_cached_mb"
UNSTABLE = "llite.*.unstable_stats"

MAX = Gauge(
    "lustre_llite_page_cache_max_bytes", "Limit on file data that the mount caches in memory.", LABELS, CACHE, "bytes"
)
USED = Gauge(
    "lustre_llite_page_cache_used_bytes",
    "File data cached in memory by the mount, rounded to MiB.",
    LABELS,
    CACHE,
    "bytes",
)
UNEVICTABLE = Gauge(
    "lustre_llite_page_cache_unevictable_bytes",
    "Cached file data of the mount that cannot be evicted now, rounded to MiB.",
    LABELS,
    CACHE,
    "bytes",
    "2.16+",
)
RECLAIMS = Counter(
    "lustre_llite_page_cache_reclaims_total",
    "Times the client evicted cached pages because the page cache was full.",
    LABELS,
    CACHE,
)
AHEAD = Gauge(
    "lustre_llite_read_ahead_used_bytes",
    "Memory of pages being read ahead now, rounded to MiB.",
    LABELS,
    CACHE,
    "bytes",
    "2.15+",
)
UNSTABLE_PAGES = Gauge(
    "lustre_llite_unstable_pages",
    "Pages written to object servers but not yet committed to disk. The client keeps them in memory.",
    LABELS,
    UNSTABLE,
)
UNSTABLE_BYTES = Gauge(
    "lustre_llite_unstable_bytes",
    "Data written to object servers but not yet committed to disk, rounded to MiB. The client keeps it in memory.",
    LABELS,
    UNSTABLE,
    "bytes",
)


def start(_: Context) -> Collect:
    """Start without earlier readings."""
    sources = Source("llite", "max_cached_mb", _renderer), Source("llite", "unstable_stats", _unstable)

    def collect(node: Node, page: Page) -> None:
        mounts = node.mounts()
        for source in sources:
            source.collect(node, page, mounts)

    return collect


def _renderer(labels: bytes) -> Render:
    def render(data: bytes) -> Rendered:
        parsed = max_cached_mb.parse(data)
        page = Page()
        page.sample(MAX, labels, parsed.max_bytes)
        page.sample(USED, labels, parsed.used_bytes)
        page.sample(UNEVICTABLE, labels, parsed.unevictable_bytes)
        page.sample(RECLAIMS, labels, parsed.reclaims)
        page.sample(AHEAD, labels, parsed.used_read_ahead_bytes)
        return Rendered(page.lines(), parsed.skipped)

    return render


def _unstable(labels: bytes) -> Render:
    def render(data: bytes) -> Rendered:
        parsed = unstable_stats.parse(data)
        page = Page()
        page.sample(UNSTABLE_PAGES, labels, parsed.pages)
        page.sample(UNSTABLE_BYTES, labels, parsed.size_bytes)
        return Rendered(page.lines(), parsed.skipped)

    return render


FAMILIES = (MAX, USED, UNEVICTABLE, RECLAIMS, AHEAD, UNSTABLE_PAGES, UNSTABLE_BYTES)
COLLECTOR = Collector("page_cache", "file data cached in memory by clients", FAMILIES, start)
