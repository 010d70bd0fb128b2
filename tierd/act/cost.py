"""What a move costs the file system: the targets its bytes come from, the pools they come from and go to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lustre.layout.model import Component, Layout


@dataclass(frozen=True, slots=True)
class Cost:
    """One file. What is on MDTs costs nothing here: no mover puts anything there."""

    size_bytes: int
    pools: Mapping[str, int] = field(default_factory=dict)
    """Bytes read from or written to each pool; a pool that is only named is there, with 0."""
    targets: Mapping[str, int] = field(default_factory=dict)
    """Bytes read from each target. Where they will be written nobody knows before: that counts for the pool."""


def of_move(size_bytes: int, before: Layout | None, wanted: Layout, fsname: str) -> Cost:
    """The cost of giving a file of this size another layout.

    >>> from lustre.fid import Fid
    >>> from lustre.layout.model import StripeObject
    >>> hdd = Component(pool="hdd", stripe_count=2, objects=(StripeObject(2, Fid(1, 1)), StripeObject(3, Fid(1, 2))))
    >>> of_move(3001, Layout((hdd,), composite=False), Layout((Component(pool="flash"),), composite=False), "fs")
    Cost(size_bytes=3001, pools={'hdd': 3001, 'flash': 3001}, targets={'fs-OST0002': 1501, 'fs-OST0003': 1501})
    """
    pools: Counter[str] = Counter()
    targets: Counter[str] = Counter()
    for component, held_bytes in shares(before, size_bytes):
        if component.pool:
            pools[component.pool] += held_bytes
        for number in component.objects:
            targets[f"{fsname}-OST{number.ost_index:04x}"] += -(-held_bytes // len(component.objects))
    for component, held_bytes in shares(wanted, size_bytes):
        if component.pool:
            pools[component.pool] += held_bytes
    return Cost(size_bytes, dict(pools), dict(targets))


def shares(layout: Layout | None, size_bytes: int) -> Iterator[tuple[Component, int]]:
    """The components on OSTs, and how many of the file's bytes each holds."""
    for component in layout.components if layout is not None else ():
        if not component.on_mdt:
            end = size_bytes if component.extent_end is None else min(component.extent_end, size_bytes)
            yield component, max(0, end - component.extent_start)
