"""Where a file's bytes go: a template becomes a layout; a component gets objects when the first write reaches it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from lustre.fid import Fid
from lustre.layout import Component, Layout, StripeObject
from simulator.ost import Ost

DEFAULT_STRIPE_BYTES = 4 << 20
_ROOM_BYTES_MIN = 4 << 20
"""An OST with less room than this gets no new objects."""


class Extent(NamedTuple):
    """A piece of a file in one object."""

    ost_index: int
    fid: Fid
    offset: int
    size_bytes: int


class Placement:
    """Chooses targets: within the pool, one after the other, leaving out the full ones."""

    def __init__(self, osts: Sequence[Ost], pools: Mapping[str, tuple[int, ...]]) -> None:
        self._osts = osts
        self._pools = pools
        self._turn: dict[str, int] = {}

    def create(self, template: Layout | None) -> Layout:
        """The layout of a new file: all components without objects but the first. Raises OSError ENOSPC, EINVAL."""
        self.check(template)
        template = template or Layout((Component(),), composite=False)
        parts = [
            replace(part, stripe_size=part.stripe_size or DEFAULT_STRIPE_BYTES, component_id=i, flags=(), objects=())
            for i, part in enumerate(template.components, start=1)
        ]
        if not template.composite:
            parts[0] = replace(parts[0], component_id=0)
        parts[0] = _with_objects(parts[0], self._choose(parts[0]))
        return Layout(tuple(parts), len(parts) if template.composite else 0, 1, template.composite)

    def reach(self, layout: Layout, end_bytes: int) -> Layout:
        """The layout with objects for all components a write up to there needs. Raises OSError ENOSPC."""
        missing = {
            part.component_id: self._choose(part)
            for part in layout.components
            if part.extent_start < end_bytes and "init" not in part.flags
        }
        parts = tuple(
            _with_objects(part, missing[part.component_id]) if part.component_id in missing else part
            for part in layout.components
        )
        return replace(layout, components=parts, generation=layout.generation + 1)

    def check(self, template: Layout | None) -> None:
        """Raise OSError EINVAL for an unknown pool, EOPNOTSUPP for what the model has not."""
        if template is None:
            return
        if template.mirror_count != 1 or any("mdt" in part.pattern for part in template.components):
            raise OSError(errno.EOPNOTSUPP, "the simulator has neither mirrors nor data on MDT yet")
        for part in template.components:
            if part.pool and part.pool not in self._pools:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), part.pool)

    def release(self, layout: Layout) -> None:
        """Destroy the objects of a file that is gone, or of the layout it had before a migration."""
        for part in layout.components:
            for stripe in part.objects:
                self._osts[stripe.ost_index].destroy_object(stripe.fid)

    def _choose(self, part: Component) -> list[Ost]:
        members = self._pools[part.pool] if part.pool else tuple(range(len(self._osts)))
        open_to_new = [self._osts[i] for i in members if self._osts[i].store.space().avail_bytes >= _ROOM_BYTES_MIN]
        if not open_to_new:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = len(open_to_new) if part.stripe_count == -1 else min(part.stripe_count or 1, len(open_to_new))
        start = self._turn.get(part.pool, 0)
        self._turn[part.pool] = start + count
        return [open_to_new[(start + i) % len(open_to_new)] for i in range(count)]


def _with_objects(part: Component, targets: list[Ost]) -> Component:
    objects = tuple(StripeObject(ost.index, ost.create_object().fid) for ost in targets)
    return replace(part, stripe_count=len(objects), stripe_offset=targets[0].index, flags=("init",), objects=objects)


def covers(layout: Layout, end_bytes: int) -> bool:
    """Whether every component that a write up to there needs has its objects."""
    return all("init" in part.flags or part.extent_start >= end_bytes for part in layout.components)


def extents(layout: Layout, offset: int, size_bytes: int) -> list[Extent]:
    """The pieces of a range of a file, those that lie together in an object joined.

    >>> one, two = StripeObject(2, Fid(1, 1)), StripeObject(3, Fid(2, 1))
    >>> striped = Layout((Component(stripe_count=2, stripe_size=1048576, objects=(one, two)),), composite=False)
    >>> [(e.ost_index, e.offset, e.size_bytes) for e in extents(striped, 1048576, 3145728)]
    [(2, 1048576, 1048576), (3, 0, 2097152)]
    """
    found: dict[Fid, Extent] = {}
    for part in layout.components:
        start = max(offset, part.extent_start)
        end = offset + size_bytes if part.extent_end is None else min(offset + size_bytes, part.extent_end)
        for stripe, place, size in _pieces(part, start, end):
            known = found.get(stripe.fid)
            if known is None:
                found[stripe.fid] = Extent(stripe.ost_index, stripe.fid, place, size)
            else:
                found[stripe.fid] = known._replace(size_bytes=known.size_bytes + size)
    return sorted(found.values())


def _pieces(part: Component, start: int, end: int) -> Iterator[tuple[StripeObject, int, int]]:
    unit, count = part.stripe_size, len(part.objects)
    while start < end and count:
        stripe_number, within = divmod(start, unit)
        size = min(unit - within, end - start) if count > 1 else end - start
        row, column = divmod(stripe_number, count)
        yield part.objects[column], row * unit + within, size
        start += size
