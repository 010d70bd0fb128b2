r"""Pages kept ready for encrypted data: ``sptlrpc.encrypt_page_pools``.

Data that is encrypted on the wire, or by the client's own keys, needs a second page for each page sent. Up to 2.15::

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

Since 2.16 the pages are called objects; the number of pools in 2.17 is told by ``page_pools``, which is not read.

>>> pools = parse(b"max objects:               108308\ntotal objects:             512\ntotal free:              500\n"
...               b"grows:                   1\ncache access:            88\nout of mem:              0\n")
>>> pools.max_pages, pools.pages, pools.free_pages, pools.grows, pools.accesses, pools.misses, pools.out_of_memory
(108308, 512, 500, 1, 88, None, 0)
"""

from __future__ import annotations

from dataclasses import dataclass

from lustre.text import fields, header


@dataclass(frozen=True, slots=True)
class PagePools:
    """The pools together; None for what is not printed."""

    max_pages: int | None
    pages: int | None
    free_pages: int | None
    grows: int | None
    grow_failures: int | None
    shrinks: int | None
    accesses: int | None
    misses: int | None
    """Times there were too few pages ready."""
    out_of_memory: int | None
    skipped: int


def parse(data: bytes) -> PagePools:
    """Read ``encrypt_page_pools``."""
    everything = fields.parse(data)
    found = everything.values

    def number(*names: bytes) -> int | None:
        return next((fields.number(found[name]) for name in names if name in found), None)

    return PagePools(
        max_pages=number(b"max objects", b"max pages"),
        pages=number(b"total objects", b"total pages"),
        free_pages=number(b"total free"),
        grows=number(b"grows"),
        grow_failures=number(b"grows failure"),
        shrinks=number(b"shrinks"),
        accesses=number(b"cache access"),
        misses=number(b"cache missing"),
        out_of_memory=number(b"out of mem"),
        skipped=header.skipped_lines(data, everything.understood),
    )
