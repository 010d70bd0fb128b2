"""File data a client holds in memory: ``llite.*.max_cached_mb``."""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.families import Counter, Gauge, Page
from exporter.node import Node
from exporter.sources import Render, Rendered, Source
from lustre.text import max_cached_mb

LABELS = ("fs", "mount")
CACHE = "llite.*.max_cached_mb"

MAX = Gauge("lustre_llite_page_cache_max_bytes", "File data the mount may hold in memory.", LABELS, CACHE, "bytes")
USED = Gauge(
    "lustre_llite_page_cache_used_bytes", "File data the mount holds in memory, to the MiB.", LABELS, CACHE, "bytes"
)
UNEVICTABLE = Gauge(
    "lustre_llite_page_cache_unevictable_bytes",
    "Part of it that cannot be given back now.",
    LABELS,
    CACHE,
    "bytes",
    "2.16+",
)
RECLAIMS = Counter(
    "lustre_llite_page_cache_reclaims_total",
    "Times pages were taken from a target because the cache was full.",
    LABELS,
    CACHE,
)
AHEAD = Gauge(
    "lustre_llite_read_ahead_used_bytes",
    "Pages read ahead and not asked for yet, to the MiB.",
    LABELS,
    CACHE,
    "bytes",
    "2.15+",
)


def start(_: Context) -> Collect:
    """Begin with nothing read."""
    source = Source("llite", "max_cached_mb", _renderer)

    def collect(node: Node, page: Page) -> None:
        source.collect(node, page, node.mounts())

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


COLLECTOR = Collector(
    "page_cache", "file data clients hold in memory", (MAX, USED, UNEVICTABLE, RECLAIMS, AHEAD), start
)
