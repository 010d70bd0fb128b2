"""The mounts of this node: ``llite.*`` (operations, I/O sizes, page cache, space). Read-ahead is in ``read_ahead``.

In ``llite.*.stats``, the sum of each byte counter has its own family, and so have those in ``NO_OPERATIONS``. Every
other counter is an operation: the number
of calls and, since Lustre 2.14, their total time. Releases that do not time reads and writes count them only in the
byte counters; for these releases the samples of ``read_bytes`` are the read operations.

``extents_stats`` has values only on clients where it was enabled. ``unstable_stats`` counts pages that were sent but
are not yet on disk.
"""

from __future__ import annotations

from exporter.capacity import capacity_families, put_capacity
from exporter.collector import Collector, all_of, reads, stateless
from exporter.counters import StatsRule
from exporter.exposition import Counter, MetricsPage, doubling, label_text
from exporter.families import FamilyMaker
from exporter.node import Node
from exporter.rpc_stats import READ, WRITE, bounds_of
from exporter.sources import paged, stats_renderer
from lustre.formats import extents_stats, max_cached_mb, pcc, unstable_stats
from lustre.parameters import parse_device

OF_MOUNT = FamilyMaker("lustre_llite", ("fs", "mount"), "llite.*")
STATS = OF_MOUNT.of("stats")
BYTES = {
    name: STATS.counter(name.decode(), text, versions=versions)
    for name, text, versions in (
        (b"read_bytes", "Bytes read by applications through the mount.", "2.10+"),
        (b"write_bytes", "Bytes written by applications through the mount.", "2.10+"),
        (b"cached_read_bytes", "Bytes of application reads served from the page cache.", "2.18+"),
        (b"hybrid_read_bytes", "Bytes of buffered reads that Lustre carried out as direct I/O.", "2.17+"),
        (b"hybrid_write_bytes", "Bytes of buffered writes that Lustre carried out as direct I/O.", "2.17+"),
        (b"pcc_hit_bytes", "Bytes read from and written to the persistent client cache (PCC).", "2.17+"),
        (b"pcc_attach_bytes", "Bytes of files attached to the persistent client cache (PCC).", "2.17+"),
    )
}
OPERATIONS = STATS.counter(
    "operations", "File system operations by applications on the mount, by operation.", "operation")
SECONDS = STATS.counter(
    "operation_seconds",
    "Total time of applications' operations on the mount, by operation, summed over concurrent callers.", "operation",
    versions="2.14+")
REOPENS = STATS.counter("reopens", "Opens of files that this client had open and closed before.", versions="2.15+")
CLOSED_SECONDS = STATS.counter(
    "reopen_closed_seconds",
    "Time for which files were closed before they were opened again on this client, summed over these opens.",
    versions="2.15+")
HYBRID_BUFFERED, HYBRID_WRITES, HYBRID_READS = (
    STATS.counter(f"hybrid_{name}", text, versions="2.17+")
    for name, text in (
        ("buffered", "Buffered reads and writes that hybrid I/O left buffered."),
        ("direct_writes", "Buffered writes that hybrid I/O carried out as direct I/O, because of their size."),
        ("direct_reads", "Buffered reads that hybrid I/O carried out as direct I/O, because of their size."),
    )
)
NO_OPERATIONS: dict[bytes, tuple[Counter | None, Counter | None]] = {
    b"opencount": (None, None),
    b"openclosetime": (REOPENS, CLOSED_SECONDS),
    b"hybrid_noswitch": (HYBRID_BUFFERED, None),
    b"hybrid_writesize_switch": (HYBRID_WRITES, None),
    b"hybrid_readsize_switch": (HYBRID_READS, None),
}
"""Families for samples and sum of counters that are not operations. ``opencount`` adds, at each open, how often the
file was opened within some time: neither its samples (the opens, counted as ``open``) nor its sum is worth a series."""
RULE = StatsRule(
    OPERATIONS, SECONDS, BYTES, implied={b"read_bytes": b"read", b"write_bytes": b"write"}, special=NO_OPERATIONS
)


LLITE_COLLECTOR = Collector(
    "llite", "bytes, operations and their times as applications see them", RULE.families(),
    reads("llite", "stats", lambda: stats_renderer(RULE)))
EXTENT_SIZES = OF_MOUNT.of("extents_stats").histogram(
    "extent_size_bytes",
    "Sizes of applications' reads and writes. Lustre counts them only after a value was written to"
    " llite.*.extents_stats.", tuple([upper - 1 for upper in doubling(4096, 1 << 30)]), "direction")


def _extents(page: MetricsPage, labels: bytes, data: bytes) -> int:
    parsed = extents_stats.parse(data)
    if (table := parsed.histogram) is not None:
        for direction, counts in zip((READ, WRITE), table.columns, strict=True):
            page.add(EXTENT_SIZES, EXTENT_SIZES.buckets(labels + direction, bounds_of(table), counts))
    return parsed.skipped


EXTENTS_COLLECTOR = Collector(
    "extents", "sizes of applications' reads and writes", (EXTENT_SIZES,),
    reads("llite", "extents_stats", lambda: paged(_extents)))
OF_CACHE, OF_UNSTABLE = OF_MOUNT.of("max_cached_mb"), OF_MOUNT.of("unstable_stats")
CACHE_MAX = OF_CACHE.gauge("page_cache_max_bytes", "Limit on file data that the mount caches in memory.")
CACHE_USED = OF_CACHE.gauge("page_cache_used_bytes", "File data cached in memory by the mount, rounded to MiB.")
CACHE_UNEVICTABLE = OF_CACHE.gauge(
    "page_cache_unevictable_bytes", "Cached file data of the mount that cannot be evicted now, rounded to MiB.",
    versions="2.16+")
CACHE_RECLAIMS = OF_CACHE.counter(
    "page_cache_reclaims", "Times the client evicted cached pages because the page cache was full.")
READ_AHEAD_USED = OF_CACHE.gauge(
    "read_ahead_used_bytes", "Memory of pages being read ahead now, rounded to MiB.", versions="2.15+")
UNSTABLE_PAGES = OF_UNSTABLE.gauge(
    "unstable_pages", "Pages written to object servers but not yet committed to disk. The client keeps them in memory.")
UNSTABLE_BYTES = OF_UNSTABLE.gauge(
    "unstable_bytes",
    "Data written to object servers but not yet committed to disk, rounded to MiB. The client keeps it in memory.")


def _max_cached_mb(page: MetricsPage, labels: bytes, data: bytes) -> int:
    parsed = max_cached_mb.parse(data)
    page.sample(CACHE_MAX, labels, parsed.max_bytes)
    page.sample(CACHE_USED, labels, parsed.used_bytes)
    page.sample(CACHE_UNEVICTABLE, labels, parsed.unevictable_bytes)
    page.sample(CACHE_RECLAIMS, labels, parsed.reclaims)
    page.sample(READ_AHEAD_USED, labels, parsed.used_read_ahead_bytes)
    return parsed.skipped


def _unstable_stats(page: MetricsPage, labels: bytes, data: bytes) -> int:
    parsed = unstable_stats.parse(data)
    page.sample(UNSTABLE_PAGES, labels, parsed.pages)
    page.sample(UNSTABLE_BYTES, labels, parsed.size_bytes)
    return parsed.skipped


PAGE_CACHE_FAMILIES = (
    CACHE_MAX, CACHE_USED, CACHE_UNEVICTABLE, CACHE_RECLAIMS, READ_AHEAD_USED, UNSTABLE_PAGES, UNSTABLE_BYTES)
PAGE_CACHE_COLLECTOR = Collector(
    "page_cache", "file data cached in memory by clients", PAGE_CACHE_FAMILIES, all_of(
        reads("llite", "max_cached_mb", lambda: paged(_max_cached_mb)),
        reads("llite", "unstable_stats", lambda: paged(_unstable_stats))))
CAPACITY = capacity_families(
    FamilyMaker("lustre_filesystem", ("fs", "mount"), "llite.*"),
    "the file system. It is left out while a connection of the mount is idle")


def collect_filesystem(node: Node, page: MetricsPage) -> None:
    mounts, idle = node.mounts(), node.idle_clients()
    idle_mounts = {(one.device.fsname, one.device.instance) for one in node.clients("osc") if one.name in idle}
    for device, labels in mounts:
        mount = parse_device(device)
        if (mount.fsname, mount.instance) not in idle_mounts:  # a request for all targets would connect them
            put_capacity(page, CAPACITY, labels, node.room("llite", device))


FILESYSTEM_COLLECTOR = Collector(
    "filesystem", "size and free space of mounted file systems", CAPACITY, stateless(collect_filesystem))

PCC_BACKEND = OF_MOUNT.of("pcc").gauge(
    "pcc_backend_info",
    "Always 1, labelled with the path of a backend of the persistent client cache (PCC), and with its archive ids for"
    " caching with writes (rwid) and for reads only (roid). 0 means that the mode is off.",
    "path", "rwid", "roid", versions="2.13+")


def collect_pcc(node: Node, page: MetricsPage) -> None:
    for device, labels in node.mounts():
        parsed = node.parsed("llite", device, "pcc", pcc.parse, may_be_empty=True)
        for backend in () if parsed is None else parsed.rows:
            more = label_text(path=backend.path, rwid=str(backend.read_write_id), roid=str(backend.read_only_id))
            page.sample(PCC_BACKEND, b"%b,%b" % (labels, more), 1)


PCC_COLLECTOR = Collector("pcc", "backends of the persistent client cache", (PCC_BACKEND,), stateless(collect_pcc))
