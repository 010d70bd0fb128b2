"""Pages kept ready for encrypted data: ``sptlrpc.encrypt_page_pools``. Nodes that never encrypted show nothing."""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.families import Counter, Gauge, Page
from exporter.node import Node
from lustre.text import page_pools

POOLS = "sptlrpc.encrypt_page_pools"


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


def start(_: Context) -> Collect:
    """Nothing to keep."""

    def collect(node: Node, page: Page) -> None:
        if (data := node.read_of_node(POOLS)) is not None:
            pools = page_pools.parse(data)
            node.skipped_of_node(POOLS, pools.skipped)
            used = pools.accesses or pools.pages
            for name, family in NUMBERS.items() if used else ():
                page.sample(family, b"", getattr(pools, name))

    return collect


COLLECTOR = Collector("sptlrpc", "pages kept ready for encrypted data", tuple(NUMBERS.values()), start)
