"""Memory kept ready for data that is sent in another form: ``sptlrpc.encrypt_page_pools``, ``sptlrpc.page_pools``.

Encryption takes pages, compression larger objects too. Pools that were never used show nothing.
"""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.families import Counter, Gauge
from exporter.node import Node
from exporter.page import Page
from lustre.formats import page_pools

POOLS = "sptlrpc.encrypt_page_pools"
BY_SIZE = "sptlrpc.page_pools"


def _gauge(name: str, text: str) -> Gauge:
    return Gauge(f"lustre_sptlrpc_{name}", text, (), POOLS)


def _counter(name: str, text: str) -> Counter:
    return Counter(f"lustre_sptlrpc_{name}_total", text, (), POOLS)


NUMBERS = {
    "max_pages": _gauge("max_pages", "Pages that may be kept for encryption."),
    "pages": _gauge("pages", "Pages kept for encryption."),
    "free_pages": _gauge("free_pages", "Those of them that are not in use."),
    "grows": _counter("pool_grows", "Times pages were added."),
    "grow_failures": _counter("pool_grow_failures", "Times there was no memory to add pages."),
    "shrinks": _counter("pool_shrinks", "Times pages were given back because the kernel was short of memory."),
    "accesses": _counter("pool_accesses", "Times pages were taken."),
    "misses": _counter("pool_misses", "Times too few were ready, so that data waited."),
    "out_of_memory": _counter("pool_out_of_memory", "Times data could not be encrypted for want of pages."),
}


def _of_size(name: str, text: str) -> tuple[str, str, tuple[str, ...], str, str, str]:
    return f"lustre_page_pool_{name}", text, ("size",), BY_SIZE, "", "2.16+"


SIZES = {
    "max_pages": Gauge(*_of_size("max_objects", "Objects of that many bytes the pool may keep ready.")),
    "pages": Gauge(*_of_size("objects", "Objects it keeps.")),
    "free_pages": Gauge(*_of_size("free_objects", "Those of them that are not in use.")),
    "grows": Counter(*_of_size("grows_total", "Times objects were added.")),
    "grow_failures": Counter(*_of_size("grow_failures_total", "Times there was no memory to add any.")),
    "shrinks": Counter(*_of_size("shrinks_total", "Times objects were given back as the kernel was short of memory.")),
    "accesses": Counter(*_of_size("accesses_total", "Times objects were taken.")),
    "misses": Counter(*_of_size("misses_total", "Times too few were ready, so that data waited.")),
    "out_of_memory": Counter(*_of_size("out_of_memory_total", "Times there were none to be had.")),
}


def start(_: Context) -> Collect:
    """Nothing to keep."""

    def collect(node: Node, page: Page) -> None:
        if (data := node.read_of_node(POOLS)) is not None:
            pools = page_pools.parse(data)
            node.skipped_of_node(POOLS, pools.skipped)
            used = pools.accesses or pools.pages
            for name, family in NUMBERS.items() if used else ():
                page.sample(family, b"", getattr(pools, name))

        if (data := node.read_of_node(BY_SIZE)) is not None:
            by_size = page_pools.parse_by_size(data)
            node.skipped_of_node(BY_SIZE, by_size.skipped)
            for of in by_size.sizes:
                for name, family in SIZES.items():
                    page.sample(family, b'size="%d"' % of.size_bytes, getattr(of.pool, name))

    return collect


FAMILIES = (*NUMBERS.values(), *SIZES.values())
COLLECTOR = Collector("sptlrpc", "memory kept ready for data that is encrypted or compressed", FAMILIES, start)
