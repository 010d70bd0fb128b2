"""Object placement: a template becomes a layout, and each component gets objects on OSTs of its pool.

A component gets its objects when the first write reaches it. The OSTs come from the pool: round robin while their free
space is similar, otherwise weighted by free space.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from lustre.fid import Fid
from lustre.layout.model import Component, Layout, StripeObject
from simulator.servers.ost import Ost

ROOM_BYTES_MIN = 4 << 20
"""Free space below which an OST gets no new objects."""
QOS_THRESHOLD = 0.17
"""Difference in free space up to which allocation is round robin; above it, weights apply (``qos_threshold_rr``)."""
STATFS_EACH_TIME_MAX = 32


DEFAULT_STRIPE_BYTES = 4 << 20


class Extent(NamedTuple):
    """A range of a file in one object."""

    ost_index: int
    fid: Fid
    offset: int
    size_bytes: int


NO_TEMPLATE = Layout((Component(),), composite=False)


def without_objects(template: Layout) -> tuple[Component, ...]:
    """Components of a new file before any of them has objects."""
    return tuple(
        replace(given, stripe_size=given.stripe_size or DEFAULT_STRIPE_BYTES, objects=(),
                flags=tuple(flag for flag in given.flags if flag == "prefer"),
                component_id=number if template.composite else 0)
        for number, given in enumerate(template.components, start=1))


class Placement:
    """Turns templates into layouts with objects, on OSTs that it chooses in turn or by weight."""

    def __init__(self, osts: Sequence[Ost], pools: Mapping[str, tuple[int, ...]], rng: Random) -> None:
        self._osts = osts
        self._pools = pools
        self._rng = rng
        self._turn: dict[str, int] = {}
        self._known: dict[str, tuple[int, list[Ost]]] = {}
        """By pool, the remaining uses of the list of OSTs with space, and the list."""

    def create(self, template: Layout | None) -> Layout:
        """Make the layout of a new file, with objects in the first component only. Raises OSError ENOSPC, EINVAL."""
        self.check(template)
        template = template or NO_TEMPLATE
        empty = without_objects(template)
        first = min(part.extent_start for part in empty)
        parts = self._with_objects(empty, [part.extent_start == first for part in empty])
        state = "ro" if template.mirror_count > 1 else template.state
        generation = len(parts) if template.composite else 0
        return Layout(tuple(parts), generation, template.mirror_count, template.composite, state)

    def reach(self, layout: Layout, end_bytes: int, only: Layout | None = None) -> Layout:
        """Return the layout with objects for all components of a write up to an offset. Raises OSError ENOSPC. ``only``
        is the mirror that the write uses.
        """
        touched = {part.component_id for part in (only or layout).components}
        wanted = [part.component_id in touched and _missing(part, end_bytes) for part in layout.components]
        parts = self._with_objects(layout.components, wanted)
        return replace(layout, components=tuple(parts), generation=layout.generation + 1)

    def check(self, template: Layout | None) -> None:
        for part in template.components if template is not None else ():
            if part.pool and part.pool not in self._pools:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), part.pool)

    def release(self, layout: Layout) -> None:
        """Destroy the objects of a file that was deleted, or of a layout that a migration replaced."""
        for part in layout.components:
            for stripe in part.objects:
                self._osts[stripe.ost_index].destroy_object(stripe.fid)

    def _with_objects(self, parts: Sequence[Component], wanted: Sequence[bool]) -> list[Component]:
        """Create the objects of wanted components. Raises OSError, and keeps none, when one fails."""
        done: list[Component] = []
        try:
            for part, needed in zip(parts, wanted, strict=True):
                done.append(self._instantiated(part) if needed else part)
        except OSError:
            self.release(Layout(tuple(part for part, needed in zip(done, wanted, strict=False) if needed)))
            raise
        return done

    def _instantiated(self, part: Component) -> Component:
        if part.on_mdt:
            return replace(part, stripe_count=0, flags=("init", *part.flags))
        targets = self._targets(part)
        objects = tuple(StripeObject(ost.index, ost.create_object().fid) for ost in targets)
        return replace(part, stripe_count=len(objects), stripe_offset=targets[0].index, ost_list=(),
                       flags=("init", *part.flags), objects=objects)  # fmt: skip

    def _targets(self, part: Component) -> list[Ost]:
        """Choose OSTs for the objects of a component. Raises OSError ENOSPC when no target has space."""
        if part.ost_list:
            return self._named(part)
        fit = self._fit(part.pool)
        if not fit:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        healthy = [ost for ost in fit if not ost.degraded]
        count = self._count(part, len(fit))
        # degraded ones only if there are too few others
        if len(healthy) >= min(count, len(fit)) or (part.stripe_count <= 0 and healthy):
            fit = healthy
            count = self._count(part, len(fit))
        if 0 <= part.stripe_offset < len(self._osts) and self._osts[part.stripe_offset] in fit:
            first = fit.index(self._osts[part.stripe_offset])
            return [fit[(first + i) % len(fit)] for i in range(count)]
        if count < len(fit) and self._uneven(fit):
            return self._weighted(fit, count)
        start = self._turn.get(part.pool, 0)
        self._turn[part.pool] = start + count
        return [fit[(start + i) % len(fit)] for i in range(count)]

    def _named(self, part: Component) -> list[Ost]:
        """The OSTs that a component names. Raises OSError EINVAL for an OST outside of its pool, and ENOSPC."""
        members = self._pools[part.pool] if part.pool else range(len(self._osts))
        if any(index not in members for index in part.ost_list):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        chosen = [self._osts[index] for index in part.ost_list]
        if not all(self._fits(ost) for ost in chosen):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return chosen

    def _fit(self, name: str) -> list[Ost]:
        """Targets of a pool with space. For a large pool the list is refreshed at intervals, as on an MDT."""
        members = self._pools[name] if name else tuple(range(len(self._osts)))
        if len(members) <= STATFS_EACH_TIME_MAX:
            return [self._osts[i] for i in members if self._fits(self._osts[i])]
        uses, fit = self._known.get(name, (0, []))
        # some of them: to ask all for each file is slow
        if not uses or not all(self._fits(ost) for ost in fit[:: max(len(fit) // 8, 1)]):
            uses, fit = len(members), [self._osts[i] for i in members if self._fits(self._osts[i])]
        self._known[name] = uses - 1, fit
        return fit

    def _count(self, part: Component, fit: int) -> int:
        if part.overstriped:
            return -part.stripe_count * fit if part.stripe_count < 0 else part.stripe_count or 1
        return fit if part.stripe_count < 0 else min(part.stripe_count or 1, fit)

    def _fits(self, ost: Ost) -> bool:
        return not ost.health.away and ost.max_create_count > 0 and ost.store.avail_bytes >= ROOM_BYTES_MIN

    def _uneven(self, fit: list[Ost]) -> bool:
        some = fit if len(fit) <= STATFS_EACH_TIME_MAX else self._rng.sample(fit, 8)
        room = [ost.store.avail_bytes for ost in some]
        return max(room) - min(room) > QOS_THRESHOLD * max(room)

    def _weighted(self, fit: list[Ost], count: int) -> list[Ost]:
        left, chosen = list(fit), []
        for _ in range(count):
            weights = [ost.store.avail_bytes for ost in left]
            (ost,) = self._rng.choices(left, weights)
            left.remove(ost)
            chosen.append(ost)
        return chosen


def _missing(part: Component, end_bytes: int) -> bool:
    return part.extent_start < end_bytes and "init" not in part.flags


def is_instantiated(layout: Layout, end_bytes: int) -> bool:
    """Whether every component up to an offset has its objects."""
    for part in layout.components:  # noqa: SIM110 -- called for every write; all() takes three times as long
        if part.extent_start < end_bytes and "init" not in part.flags:
            return False
    return True


def writable_end(layout: Layout | None, offset: int, end_bytes: int) -> int:
    """End of a write within the layout. Raises OSError ENODATA when the layout ends before the offset."""
    last = layout.components[-1].extent_end if layout is not None else None
    if last is None:
        return end_bytes
    if offset >= last:
        raise OSError(errno.ENODATA, os.strerror(errno.ENODATA))
    return min(end_bytes, last)


def extents(layout: Layout, offset: int, size_bytes: int) -> list[Extent]:
    """Split a range of a file into ranges of objects. Contiguous ranges of an object are joined.

    >>> one, two = StripeObject(2, Fid(1, 1)), StripeObject(3, Fid(2, 1))
    >>> striped = Layout((Component(stripe_count=2, stripe_size=1048576, objects=(one, two)),), composite=False)
    >>> [(e.ost_index, e.offset, e.size_bytes) for e in extents(striped, 1048576, 3145728)]
    [(2, 1048576, 1048576), (3, 0, 2097152)]
    """
    found: list[Extent] = []
    for part in layout.components:
        start = max(offset, part.extent_start)
        end = offset + size_bytes if part.extent_end is None else min(offset + size_bytes, part.extent_end)
        if len(part.objects) != 1:
            found += [Extent(stripe.ost_index, stripe.fid, at, size) for stripe, at, size in _pieces(part, start, end)]
        elif start < end:  # bytes of a single object have the same offsets as in the file
            found.append(Extent(part.objects[0].ost_index, part.objects[0].fid, start, end - start))
    return sorted(found)


def bytes_on_mdt(layout: Layout, offset: int, size_bytes: int) -> int:
    end = offset + size_bytes
    found = 0
    for part in layout.components:
        if part.on_mdt:
            last = end if part.extent_end is None else min(end, part.extent_end)
            found += max(last - max(offset, part.extent_start), 0)
    return found


def _pieces(part: Component, start: int, end: int) -> Iterator[tuple[StripeObject, int, int]]:
    unit, count = part.stripe_size, len(part.objects)
    if start >= end or not count:
        return
    first, last = start // unit, (end - 1) // unit
    for number in range(first, min(last, first + count - 1) + 1):
        row, column = divmod(number, count)
        more = (last - number) // count
        skipped = start - first * unit if number == first else 0
        missing = (last + 1) * unit - end if number + more * count == last else 0
        yield part.objects[column], row * unit + skipped, (more + 1) * unit - skipped - missing
