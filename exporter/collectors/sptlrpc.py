"""Page pools for encryption and compression: ``sptlrpc.encrypt_page_pools``, ``sptlrpc.page_pools``.

Encryption uses pages, compression also larger objects. Pools that were never used have no series.
"""

from __future__ import annotations

from exporter.collector import Collector, stateless
from exporter.exposition import Counter, Gauge, MetricsPage
from exporter.node import Node
from lustre.formats import page_pools

POOLS = "sptlrpc.encrypt_page_pools"
BY_SIZE = "sptlrpc.page_pools"


def _gauge(name: str, text: str) -> Gauge:
    return Gauge(f"lustre_sptlrpc_{name}", text, (), POOLS)


def _counter(name: str, text: str) -> Counter:
    return Counter(f"lustre_sptlrpc_{name}_total", text, (), POOLS)


NUMBERS = {
    "max_pages": _gauge("max_pages", "Limit on pages in the encryption page pool."),
    "pages": _gauge("pages", "Pages in the encryption page pool."),
    "free_pages": _gauge("free_pages", "Unused pages in the encryption page pool."),
    "grows": _counter("pool_grows", "Times the encryption page pool grew."),
    "grow_failures": _counter(
        "pool_grow_failures", "Times the encryption page pool could not grow for lack of memory."),
    "shrinks": _counter(
        "pool_shrinks", "Times the encryption page pool shrank because the kernel was short of memory."),
    "accesses": _counter("pool_accesses", "Requests for pages from the encryption page pool."),
    "misses": _counter("pool_misses", "Requests for pages that found too few free pages in the encryption page pool."),
    "out_of_memory": _counter(
        "pool_out_of_memory",
        "Requests for pages that failed because the encryption page pool was empty and could not grow."),
}


def _gauge_of_size(name: str, text: str) -> Gauge:
    return Gauge(f"lustre_page_pool_{name}", f"{text}, by object size in bytes.", ("size",), BY_SIZE, "2.16+")


def _counter_of_size(name: str, text: str) -> Counter:
    help_ = f"{text}, by object size in bytes."
    return Counter(f"lustre_page_pool_{name}_total", help_, ("size",), BY_SIZE, "2.16+")


SIZES = {
    "max_pages": _gauge_of_size("max_objects", "Limit on objects in the page pool"),
    "pages": _gauge_of_size("objects", "Objects in the page pool"),
    "free_pages": _gauge_of_size("free_objects", "Unused objects in the page pool"),
    "grows": _counter_of_size("grows", "Times the page pool grew"),
    "grow_failures": _counter_of_size("grow_failures", "Times the page pool could not grow for lack of memory"),
    "shrinks": _counter_of_size("shrinks", "Times the page pool shrank because the kernel was short of memory"),
    "accesses": _counter_of_size("accesses", "Requests for objects from the page pool"),
    "misses": _counter_of_size("misses", "Requests that found too few free objects in the page pool"),
    "out_of_memory": _counter_of_size(
        "out_of_memory", "Requests that failed because the page pool was empty and could not grow"),
}


def _collect(node: Node, page: MetricsPage) -> None:
    if (data := node.read_global(POOLS)) is not None:
        pools = page_pools.parse(data)
        node.skipped_global(POOLS, pools.skipped)
        used = pools.accesses or pools.pages
        for name, family in NUMBERS.items() if used else ():
            page.sample(family, b"", getattr(pools, name))

    if (data := node.read_global(BY_SIZE)) is not None:
        by_size = page_pools.parse_by_size(data)
        node.skipped_global(BY_SIZE, by_size.skipped)
        for of in by_size.rows:
            for name, family in SIZES.items():
                page.sample(family, b'size="%d"' % of.size_bytes, getattr(of.pool, name))


FAMILIES = (*NUMBERS.values(), *SIZES.values())
COLLECTOR = Collector("sptlrpc", "memory pools for encryption and compression", FAMILIES, stateless(_collect))
