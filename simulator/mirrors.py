"""Mirrored files: which copy is read, which is written, and which are no longer true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lustre.layout.model import Component, Layout

if TYPE_CHECKING:
    from simulator.ost import Ost


def copies(layout: Layout) -> dict[int, list[Component]]:
    """Components by mirror, in file order."""
    groups: dict[int, list[Component]] = {}
    for part in layout.components:
        groups.setdefault(part.mirror_id, []).append(part)
    return groups


def to_read(layout: Layout, osts: Sequence[Ost]) -> Layout:
    """The part of a layout that a client reads: the preferred copy, or the fastest that is true and can be reached."""
    if layout.mirror_count == 1:
        return layout

    def rank(parts: list[Component]) -> tuple[bool, bool, bool]:
        targets = [osts[stripe.ost_index] for part in parts for stripe in part.objects]
        stale = any("stale" in part.flags for part in parts)
        away = any(ost.away for ost in targets)
        slow = any(ost.rotational for ost in targets)
        return stale or away, not any("prefer" in part.flags for part in parts), slow

    best = min(copies(layout).values(), key=rank)
    return replace(layout, components=tuple(best))


def to_write(layout: Layout, osts: Sequence[Ost] = ()) -> Layout:
    """The part of a layout that takes writes: of the copies that are true the preferred, else the first.

    Since 2.15 the MDS prefers, where nobody has said otherwise, the copy with the most objects on OSTs that do not
    rotate (``lod_fill_mirrors``): then ``osts`` says which these are. Copies that cannot be reached come last.
    """
    if layout.mirror_count == 1:
        return layout
    true = [parts for parts in copies(layout).values() if not any("stale" in part.flags for part in parts)]

    def rank(parts: list[Component]) -> tuple[bool, bool, int]:
        targets = [osts[stripe.ost_index] for part in parts for stripe in part.objects] if osts else []
        fast = sum(not ost.rotational for ost in targets)
        return any(ost.away for ost in targets), not any("prefer" in part.flags for part in parts), -fast

    best = min(true, key=rank)
    return replace(layout, components=tuple(best))


def in_sync(layout: Layout) -> bool:
    """Whether a write has to mark the other copies first."""
    return layout.mirror_count > 1 and layout.state != "wp"


def written(layout: Layout, osts: Sequence[Ost] = ()) -> Layout:
    """The layout once one copy is being written to: the others are stale until somebody brings them up to date."""
    primary = to_write(layout, osts).components[0].mirror_id
    parts = tuple(
        part if part.mirror_id == primary or "stale" in part.flags else replace(part, flags=(*part.flags, "stale"))
        for part in layout.components
    )
    return replace(layout, components=parts, generation=layout.generation + 1, state="wp")


def resynced(layout: Layout) -> Layout:
    """The layout when all copies are the same again."""
    parts = tuple(replace(part, flags=tuple(flag for flag in part.flags if flag != "stale"))
                  for part in layout.components)  # fmt: skip
    return replace(layout, components=parts, generation=layout.generation + 1, state="ro")
