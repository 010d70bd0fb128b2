r"""Pools of pages for encrypted data: ``sptlrpc.encrypt_page_pools``.

Data that is encrypted on the wire or by keys of the client needs a second page for each page sent. Up to 2.15::

    physical pages:          1516315
    pages per pool:          512
    max pages:               189539
    max pools:               371
    total pages:             512
    total free:              512
    idle index:              100/100
    last shrink:             1073s
    last access:             1073s
    max pages reached:       24
    grows:                   1
    grows failure:           0
    shrinks:                 0
    cache access:            88
    cache missing:           1
    low free mark:           488
    max waitqueue depth:     0
    max wait time ms:        0
    out of mem:              0

Since 2.16 the pages are called objects, and further pools have larger objects, whose sizes are powers of two pages.
``sptlrpc.page_pools`` shows each pool that was ever used, including the pool of single pages::

    physical_pages: 1516315
    pools:
      pool_64k:
        max_objects: 6769
        max_items: 7168
        total_objects: 512
        total_free: 500
        idle_index: 98/100
        last_shrink: 1073s
        last_access: 3s
        max_objects_reached: 24
        grows: 1
        grows_failure: 0
        shrinks: 0
        cache_access: 88
        cache_missing: 1
        low_free_mark: 488
        max_waitqueue_depth: 0
        max_wait_time_ms: 0
        out_of_mem: 0

>>> pools = parse(b"max objects:               108308\ntotal objects:             512\ntotal free:              500\n"
...               b"grows:                   1\ncache access:            88\nout of mem:              0\n")
>>> pools.max_pages, pools.pages, pools.free_pages, pools.grows, pools.accesses, pools.misses, pools.out_of_memory
(108308, 512, 500, 1, 88, None, 0)
>>> by_size = parse_by_size(b"physical_pages: 9\npools:\n  pool_64k:\n    max_objects: 6769\n    total_objects: 512\n"
...                         b"  pool_128k:\n    max_objects: 3384\n    grows_failure: 2\n")
>>> [(of.size_bytes, of.pool.max_pages, of.pool.pages, of.pool.grow_failures) for of in by_size.rows]
[(65536, 6769, 512, None), (131072, 3384, None, 2)]
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import itemgetter

from lustre.formats import fields, header
from lustre.formats.rows import Rows


@dataclass(frozen=True, slots=True)
class PagePools:
    """Counters of all pools, or of one size; None for fields that are not printed."""

    max_pages: int | None
    pages: int | None
    free_pages: int | None
    grows: int | None
    grow_failures: int | None
    shrinks: int | None
    accesses: int | None
    misses: int | None
    """Number of times too few pages were available."""
    out_of_memory: int | None
    skipped: int


@dataclass(frozen=True, slots=True)
class PoolOfSize:
    """A pool of objects of one size."""

    size_bytes: int
    pool: PagePools
    """The counters, in which a page means an object of that size."""


_POOL = re.compile(rb"^  pool_(\d{1,9}+)k:\n", re.MULTILINE)


def parse(data: bytes) -> PagePools:
    everything = fields.parse(data)
    numbers = fields.Naturals(
        {name.replace(b"_", b" ").replace(b"objects", b"pages"): value for name, value in everything.values.items()}
    )
    return PagePools(
        max_pages=numbers.get(b"max pages"),
        pages=numbers.get(b"total pages"),
        free_pages=numbers.get(b"total free"),
        grows=numbers.get(b"grows"),
        grow_failures=numbers.get(b"grows failure"),
        shrinks=numbers.get(b"shrinks"),
        accesses=numbers.get(b"cache access"),
        misses=numbers.get(b"cache missing"),
        out_of_memory=numbers.get(b"out of mem"),
        skipped=header.skipped_lines(data, everything.understood) + numbers.refused,
    )


def parse_by_size(data: bytes) -> Rows[PoolOfSize]:
    """Pools that were ever used, the smallest objects first."""
    head, *parts = _POOL.split(data)
    pools = [(int(kib) << 10, parse(body)) for kib, body in zip(parts[::2], parts[1::2], strict=True)]
    sizes = dict(reversed(pools))
    skipped = header.skipped_lines(head, fields.parse(head).understood) + len(pools) - len(sizes)
    in_order = tuple([PoolOfSize(*of) for of in sorted(sizes.items(), key=itemgetter(0))])
    return Rows(in_order, skipped + sum([pool.skipped for _, pool in pools]))
