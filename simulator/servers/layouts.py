"""File-level redundancy: which mirror is read and which is written, which are stale after a write, and resyncs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lustre.layout.model import Component, Layout, in_sync, mirrors

if TYPE_CHECKING:
    from simulator.servers.ost import Ost


def mirror_to_read(layout: Layout, osts: Sequence[Ost]) -> Layout:
    """Return the mirror that a client reads: the preferred one, else the fastest that is in sync and reachable."""
    if layout.mirror_count == 1:
        return layout

    def rank(parts: Sequence[Component]) -> tuple[bool, bool, bool]:
        targets = [osts[stripe.ost_index] for part in parts for stripe in part.objects]
        slow = any(ost.rotational for ost in targets)
        return (is_stale(parts) or any(ost.health.away for ost in targets),
                not any("prefer" in part.flags for part in parts), slow)

    return replace(layout, components=min(mirrors(layout), key=rank))


def mirror_to_write(layout: Layout, osts: Sequence[Ost] = ()) -> Layout:
    """Return the mirror that takes writes: of the mirrors in sync the preferred one, else the first.

    Since 2.15, without a preferred mirror, the MDS prefers the mirror with the most objects on non-rotational OSTs
    (``lod_fill_mirrors``); ``osts`` has the OSTs for this choice. Unreachable mirrors come last.
    """
    if layout.mirror_count == 1:
        return layout

    def rank(parts: Sequence[Component]) -> tuple[bool, bool, int]:
        targets = [osts[stripe.ost_index] for part in parts for stripe in part.objects] if osts else []
        fast = sum(not ost.rotational for ost in targets)
        return any(ost.health.away for ost in targets), not any("prefer" in part.flags for part in parts), -fast

    return replace(layout, components=min((parts for parts in mirrors(layout) if not is_stale(parts)), key=rank))


def is_stale(parts: Sequence[Component]) -> bool:
    return not in_sync(Layout(tuple(parts)))


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
