"""How writes change a layout: mirrors become stale and are resynced, self-extending components grow.

File-level redundancy decides which mirror is read and which is written, and which are stale. A self-extending component
grows piece by piece while its targets have space; otherwise the next component begins. An ``extension`` component
stands behind the component it extends: it begins where that one ends now and ends where that one may end at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lustre.layout.model import Component, Layout

if TYPE_CHECKING:
    from simulator.servers.ost import Ost


def mirrors_of(layout: Layout) -> dict[int, list[Component]]:
    groups: dict[int, list[Component]] = {}
    for part in layout.components:
        groups.setdefault(part.mirror_id, []).append(part)
    return groups


def mirror_to_read(layout: Layout, osts: Sequence[Ost]) -> Layout:
    """Return the mirror that a client reads: the preferred one, else the fastest that is in sync and reachable."""
    if layout.mirror_count == 1:
        return layout

    def rank(parts: list[Component]) -> tuple[bool, bool, bool]:
        targets = [osts[stripe.ost_index] for part in parts for stripe in part.objects]
        stale = is_stale(parts)
        away = any(ost.health.away for ost in targets)
        slow = any(ost.rotational for ost in targets)
        return stale or away, not any("prefer" in part.flags for part in parts), slow

    best = min(mirrors_of(layout).values(), key=rank)
    return replace(layout, components=tuple(best))


def mirror_to_write(layout: Layout, osts: Sequence[Ost] = ()) -> Layout:
    """Return the mirror that takes writes: of the mirrors in sync the preferred one, else the first.

    Since 2.15, without a preferred mirror, the MDS prefers the mirror with the most objects on non-rotational OSTs
    (``lod_fill_mirrors``); ``osts`` has the OSTs for this choice. Unreachable mirrors come last.
    """
    if layout.mirror_count == 1:
        return layout
    true = [parts for parts in mirrors_of(layout).values() if not is_stale(parts)]

    def rank(parts: list[Component]) -> tuple[bool, bool, int]:
        targets = [osts[stripe.ost_index] for part in parts for stripe in part.objects] if osts else []
        fast = sum(not ost.rotational for ost in targets)
        return any(ost.health.away for ost in targets), not any("prefer" in part.flags for part in parts), -fast

    best = min(true, key=rank)
    return replace(layout, components=tuple(best))


def is_stale(parts: Sequence[Component]) -> bool:
    return any("stale" in part.flags for part in parts)


def with_mirror(layout: Layout, copy: Layout) -> Layout:
    """Layout with a copy as the preferred mirror of the file."""
    taken = max(part.component_id for part in layout.components) & 0xFFFF
    first = tuple(replace(part, mirror_id=1, component_id=part.component_id or 1) for part in layout.components)
    second = tuple(replace(part, mirror_id=2, component_id=2 << 16 | taken + number, flags=("prefer", *part.flags))
                   for number, part in enumerate(copy.components, start=1))
    return Layout((*first, *second), layout.generation + 1, 2, state="ro")


def with_one_mirror(layout: Layout, kept: int) -> Layout:
    """Layout after a split: only one mirror is left."""
    parts = tuple(part for part in layout.components if part.mirror_id == kept)
    return replace(layout, components=parts, generation=layout.generation + 1, mirror_count=1, state="")


def mirrors_in_sync(layout: Layout) -> bool:
    """Whether a write must first mark the other mirrors as stale."""
    return layout.mirror_count > 1 and layout.state != "wp"


def with_stale_mirrors(layout: Layout, osts: Sequence[Ost] = ()) -> Layout:
    """Layout after a write to one mirror: the others are stale until a resync."""
    primary = mirror_to_write(layout, osts).components[0].mirror_id
    parts = tuple(
        part if part.mirror_id == primary or "stale" in part.flags else replace(part, flags=(*part.flags, "stale"))
        for part in layout.components
    )
    return replace(layout, components=parts, generation=layout.generation + 1, state="wp")


def with_synced_mirrors(layout: Layout) -> Layout:
    """Layout after a resync: all mirrors are in sync."""
    parts = tuple(replace(part, flags=tuple(flag for flag in part.flags if flag != "stale"))
                  for part in layout.components)  # fmt: skip
    return replace(layout, components=parts, generation=layout.generation + 1, state="ro")


def extended(layout: Layout, end_bytes: int, room: Callable[[Component], int]) -> Layout:
    """Layout with self-extending components grown so that they cover a write up to an offset.

    >>> flash = Component(0, 1 << 20, "flash", flags=("init",))
    >>> space = Component(1 << 20, 1 << 30, "flash", flags=("extension",), extension_size=64 << 20)
    >>> disks = Component(1 << 30, None, "hdd")
    >>> plenty = extended(Layout((flash, space, disks)), 2 << 20, lambda part: 1 << 40)
    >>> [(p.pool, p.extent_start >> 20, p.extent_end and p.extent_end >> 20) for p in plenty.components]
    [('flash', 0, 65), ('flash', 65, 1024), ('hdd', 1024, None)]
    >>> full = extended(Layout((flash, space, disks)), 2 << 20, lambda part: 0)
    >>> [(p.pool, p.extent_start >> 20, p.extent_end and p.extent_end >> 20) for p in full.components]
    [('flash', 0, 1), ('hdd', 1, None)]
    """
    parts = list(layout.components)
    if not any("extension" in part.flags for part in parts):
        return layout
    index = 1
    while index < len(parts):
        if "extension" in parts[index].flags and parts[index].extent_start < end_bytes:
            _extend_or_end(parts, index, end_bytes, room)
        index += 1
    return replace(layout, components=tuple(parts))


def _extend_or_end(parts: list[Component], index: int, end_bytes: int, room: Callable[[Component], int]) -> None:
    before, space = parts[index - 1], parts[index]
    last = space.extent_end
    step = space.extension_size or space.stripe_size or 64 << 20
    at = space.extent_start
    following = parts[index + 1] if index + 1 < len(parts) and parts[index + 1].mirror_id == space.mirror_id else None
    left = room(before)
    while at < end_bytes and (last is None or at < last) and (left >= step or following is None):
        left -= step
        at = at + step if last is None else min(at + step, last)
    parts[index - 1] = replace(before, extent_end=at)
    if at < end_bytes and following is not None:  # no space: the next component begins here
        parts[index + 1] = replace(following, extent_start=at)
        del parts[index]
    elif last is not None and at >= last:
        del parts[index]
    else:
        parts[index] = replace(space, extent_start=at)
