"""Where a file's bytes go: a template becomes a layout; a component gets objects when the first write reaches it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from lustre.fid import Fid
from lustre.layout.model import Component, Layout, StripeObject
from simulator.choice import Choice, Spill
from simulator.extending import extended
from simulator.ost import Ost

DEFAULT_STRIPE_BYTES = 4 << 20


class Extent(NamedTuple):
    """A piece of a file in one object."""

    ost_index: int
    fid: Fid
    offset: int
    size_bytes: int


class Placement:
    """Turns templates into layouts with objects."""

    def __init__(
        self, osts: Sequence[Ost], pools: Mapping[str, tuple[int, ...]], spills: Mapping[str, Spill] | None = None,
        rng: Random | None = None,
    ) -> None:  # fmt: skip
        self._osts = osts
        self._pools = pools
        self._choice = Choice(osts, pools, spills or {}, rng or Random(0))  # noqa: S311 - a model, not a secret

    def create(self, template: Layout | None) -> Layout:
        """The layout of a new file: objects only in the first component. Raises OSError ENOSPC, EINVAL."""
        self.check(template)
        template = template or Layout((Component(),), composite=False)
        first = {min(part.extent_start for part in template.components)}
        parts: list[Component] = []
        for number, given in enumerate(template.components, start=1):
            keep = tuple(flag for flag in given.flags if flag in ("prefer", "extension"))
            part = replace(given, stripe_size=given.stripe_size or DEFAULT_STRIPE_BYTES, flags=keep, objects=(),
                           component_id=number if template.composite else 0)  # fmt: skip
            parts.append(part)
        parts = self._with_objects(parts, [part.extent_start in first for part in parts])
        state = "ro" if template.mirror_count > 1 else template.state
        generation = len(parts) if template.composite else 0
        return Layout(tuple(parts), generation, template.mirror_count, template.composite, state)

    def reach(self, layout: Layout, end_bytes: int, only: Layout | None = None) -> Layout:
        """The layout with objects for all components a write up to there needs. Raises OSError ENOSPC.

        ``only`` is the part of a mirrored layout that is written to. A component that extends itself gets longer as
        long as its targets have room.
        """
        layout = extended(layout, end_bytes, self._room)
        touched = {part.component_id for part in (only or layout).components}
        wanted = [part.component_id in touched and _missing(part, end_bytes) for part in layout.components]
        parts = self._with_objects(layout.components, wanted)
        return replace(layout, components=tuple(parts), generation=layout.generation + 1)

    def check(self, template: Layout | None) -> None:
        """Raise OSError EINVAL for an unknown pool."""
        for part in template.components if template is not None else ():
            if part.pool and part.pool not in self._pools:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), part.pool)

    def release(self, layout: Layout) -> None:
        """Destroy the objects of a file that is gone, or of the layout it had before a migration."""
        for part in layout.components:
            for stripe in part.objects:
                self._osts[stripe.ost_index].destroy_object(stripe.fid)

    def _with_objects(self, parts: Sequence[Component], wanted: Sequence[bool]) -> list[Component]:
        """Components with objects where they are wanted. Raises OSError, and leaves none, when one cannot have them."""
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
        targets = self._choice.targets(part)
        pool = self._choice.pool(part.pool)
        objects = tuple(StripeObject(ost.index, ost.create_object().fid) for ost in targets)
        return replace(part, stripe_count=len(objects), stripe_offset=targets[0].index, pool=pool,
                       flags=("init", *part.flags), objects=objects)  # fmt: skip

    def _room(self, part: Component) -> int:
        """Room of the fullest target of a component."""
        osts = [self._osts[stripe.ost_index] for stripe in part.objects]
        if not osts:
            members = self._pools[part.pool] if part.pool else range(len(self._osts))
            return max((self._osts[i].store.space().avail_bytes for i in members), default=0)
        return min(ost.store.space().avail_bytes for ost in osts)


def _missing(part: Component, end_bytes: int) -> bool:
    return part.extent_start < end_bytes and "init" not in part.flags and "extension" not in part.flags


def covers(layout: Layout, end_bytes: int) -> bool:
    """Whether every component that a write up to there needs has its objects."""
    return all("init" in part.flags or part.extent_start >= end_bytes for part in layout.components)


def within(layout: Layout | None, offset: int, end_bytes: int) -> int:
    """How far a write may go before the layout ends. Raises OSError ENODATA when it has ended before."""
    last = layout.components[-1].extent_end if layout is not None else None
    if last is None:
        return end_bytes
    if offset >= last:
        raise OSError(errno.ENODATA, os.strerror(errno.ENODATA))
    return min(end_bytes, last)


def extents(layout: Layout, offset: int, size_bytes: int) -> list[Extent]:
    """The pieces of a range of a file, those that lie together in an object joined.

    >>> one, two = StripeObject(2, Fid(1, 1)), StripeObject(3, Fid(2, 1))
    >>> striped = Layout((Component(stripe_count=2, stripe_size=1048576, objects=(one, two)),), composite=False)
    >>> [(e.ost_index, e.offset, e.size_bytes) for e in extents(striped, 1048576, 3145728)]
    [(2, 1048576, 1048576), (3, 0, 2097152)]
    """
    found: list[Extent] = []
    for part in layout.components:
        start = max(offset, part.extent_start)
        end = offset + size_bytes if part.extent_end is None else min(offset + size_bytes, part.extent_end)
        found += [Extent(stripe.ost_index, stripe.fid, *place) for stripe, *place in _pieces(part, start, end)]
    return sorted(found)


def bytes_on_mdt(layout: Layout, offset: int, size_bytes: int) -> int:
    """How much of a range lies on the MDT."""
    end = offset + size_bytes
    return sum(
        max(min(end, end if part.extent_end is None else part.extent_end) - max(offset, part.extent_start), 0)
        for part in layout.components
        if part.on_mdt
    )


def _pieces(part: Component, start: int, end: int) -> Iterator[tuple[StripeObject, int, int]]:
    """For each object of a component that has a part of a range: from where in the object, and how much."""
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
