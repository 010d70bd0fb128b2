"""What a mount says of itself: operations, read-ahead, stat-ahead, page cache, extents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from tests.exporter.naive.forms import Sample, buckets, counters
from tests.exporter.naive.reader import Reader

CACHE = {
    "max_cached_mb": ("lustre_llite_page_cache_max_bytes", 1 << 20),
    "used_mb": ("lustre_llite_page_cache_used_bytes", 1 << 20),
    "unevict_mb": ("lustre_llite_page_cache_unevictable_bytes", 1 << 20),
    "reclaim_count": ("lustre_llite_page_cache_reclaims_total", 1),
    "used_read_ahead_mb": ("lustre_llite_read_ahead_used_bytes", 1 << 20),
}


def llite(reader: Reader) -> Iterator[Sample]:
    for device, text in reader.files("llite", "stats"):
        labels = reader.client(device)
        assert labels is not None
        yield from reader.operations("lustre_llite", labels, text)
    for device, text in reader.files("llite", "read_ahead_stats"):
        labels = reader.client(device)
        assert labels is not None
        for name, samples, _, total in counters(text):
            if name in {"hits", "misses"}:
                yield f"lustre_llite_read_ahead_{name}_total", labels, Decimal(samples)
                continue
            yield "lustre_llite_read_ahead_events_total", {**labels, "event": name}, Decimal(samples)
            if total is not None:
                yield "lustre_llite_read_ahead_pages_total", {**labels, "event": name}, Decimal(total)
    for device, text in reader.files("llite", "statahead_stats"):
        labels = reader.client(device)
        assert labels is not None
        for line in text.splitlines():
            key, _, value = line.partition(": ")
            name, more = {
                "statahead total": ("statahead_started", {}),
                "statahead wrong": ("statahead_wrong", {}),
                "agl total": ("statahead_async_glimpses", {}),
                "list_total": ("statahead_patterns", {"pattern": "list"}),
                "fname_total": ("statahead_patterns", {"pattern": "name"}),
                "hit_total": ("statahead_hits", {}),
                "miss_total": ("statahead_misses", {}),
            }[key]
            yield f"lustre_llite_{name}_total", {**labels, **more}, Decimal(int(value))
    yield from page_cache(reader)
    for parameter, name, factor in (
        ("max_read_ahead_mb", "read_ahead_max_bytes", 1 << 20),
        ("max_read_ahead_per_file_mb", "read_ahead_max_file_bytes", 1 << 20),
        ("max_read_ahead_whole_mb", "read_ahead_max_whole_bytes", 1 << 20),
        ("statahead_max", "statahead_max_entries", 1),
        ("statahead_running_max", "statahead_max_running", 1),
        ("statahead_batch_max", "statahead_batch_max_entries", 1),
    ):
        yield from reader.numbers("llite", parameter, f"lustre_llite_{name}", reader.client, factor)
    yield from reader.room("lustre_filesystem", "llite", reader.client)


def page_cache(reader: Reader) -> Iterator[Sample]:
    for device, text in reader.files("llite", "max_cached_mb"):
        labels = reader.client(device)
        assert labels is not None
        for line in text.splitlines():
            key, _, value = line.partition(": ")
            if key in CACHE:
                name, factor = CACHE[key]
                yield name, labels, Decimal(int(value) * factor)
    for device, text in reader.files("llite", "unstable_stats"):
        labels = reader.client(device)
        assert labels is not None
        yield "lustre_llite_unstable_pages", labels, Decimal(text.split()[3])
        yield "lustre_llite_unstable_bytes", labels, Decimal(int(text.split()[5]) * 1024 * 1024)


def extents(reader: Reader) -> Iterator[Sample]:
    for device, text in reader.files("llite", "extents_stats"):
        labels = reader.client(device)
        assert labels is not None
        rows = [re.findall(r"[\w.]+", line) for line in text.splitlines() if re.search(r"\d[KMG] -", line)]
        scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
        for column, direction in ((2, "read"), (5, "write")):
            table = [(int(row[1][:-1]) * scale[row[1][-1]] - 1, int(row[column])) for row in rows]
            if table:
                yield from buckets("lustre_llite_extent_size_bytes", {**labels, "direction": direction}, table)
