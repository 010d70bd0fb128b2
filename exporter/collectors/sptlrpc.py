"""Page pools for encryption and compression: ``sptlrpc.encrypt_page_pools``, ``sptlrpc.page_pools``.

Encryption uses pages, compression also larger objects. Pools that were never used have no series.
"""

from __future__ import annotations

from exporter.collector import Collector, stateless
from exporter.exposition import MetricsPage
from exporter.families import FamilyMaker
from exporter.node import Node
from lustre.formats import page_pools

POOLS = "sptlrpc.encrypt_page_pools"
BY_SIZE = "sptlrpc.page_pools"


OF_POOLS = FamilyMaker("lustre_sptlrpc", (), POOLS)
NUMBERS = {
    "max_pages": OF_POOLS.gauge("max_pages", "Limit on pages in the encryption page pool."),
    "pages": OF_POOLS.gauge("pages", "Pages in the encryption page pool."),
    "free_pages": OF_POOLS.gauge("free_pages", "Unused pages in the encryption page pool."),
    "grows": OF_POOLS.counter("pool_grows", "Times the encryption page pool grew."),
    "grow_failures": OF_POOLS.counter(
        "pool_grow_failures", "Times the encryption page pool could not grow for lack of memory."),
    "shrinks": OF_POOLS.counter(
        "pool_shrinks", "Times the encryption page pool shrank because the kernel was short of memory."),
    "accesses": OF_POOLS.counter("pool_accesses", "Requests for pages from the encryption page pool."),
    "misses": OF_POOLS.counter(
        "pool_misses", "Requests for pages that found too few free pages in the encryption page pool."),
    "out_of_memory": OF_POOLS.counter(
        "pool_out_of_memory",
        "Requests for pages that failed because the encryption page pool was empty and could not grow."),
}


OF_SIZE = FamilyMaker("lustre_page_pool", ("size",), BY_SIZE)
SIZES = {
    field: make(name, f"{text}, by object size in bytes.", versions="2.16+")
    for field, make, name, text in (
        ("max_pages", OF_SIZE.gauge, "max_objects", "Limit on objects in the page pool"),
        ("pages", OF_SIZE.gauge, "objects", "Objects in the page pool"),
        ("free_pages", OF_SIZE.gauge, "free_objects", "Unused objects in the page pool"),
        ("grows", OF_SIZE.counter, "grows", "Times the page pool grew"),
        ("grow_failures", OF_SIZE.counter, "grow_failures",
         "Times the page pool could not grow for lack of memory"),
        ("shrinks", OF_SIZE.counter, "shrinks",
         "Times the page pool shrank because the kernel was short of memory"),
        ("accesses", OF_SIZE.counter, "accesses", "Requests for objects from the page pool"),
        ("misses", OF_SIZE.counter, "misses", "Requests that found too few free objects in the page pool"),
        ("out_of_memory", OF_SIZE.counter, "out_of_memory",
         "Requests that failed because the page pool was empty and could not grow"),
    )
}


def _collect(node: Node, page: MetricsPage) -> None:
    if (pools := node.parsed_global(POOLS, page_pools.parse)) is not None:
        used = pools.accesses or pools.pages
        for name, family in NUMBERS.items() if used else ():
            page.sample(family, b"", getattr(pools, name))
    if (by_size := node.parsed_global(BY_SIZE, page_pools.parse_by_size)) is not None:
        for of in by_size.rows:
            for name, family in SIZES.items():
                page.sample(family, b'size="%d"' % of.size_bytes, getattr(of.pool, name))


FAMILIES = (*NUMBERS.values(), *SIZES.values())
COLLECTOR = Collector("sptlrpc", "memory pools for encryption and compression", FAMILIES, stateless(_collect))
