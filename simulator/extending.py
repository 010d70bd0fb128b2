"""Self-extending layouts: a component gets longer a piece at a time while its targets have room; else the next begins.

An ``extension`` component stands behind the one it gives room to, from where that ends now to where it may end at
most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lustre.layout.model import Component, Layout


def extended(layout: Layout, end_bytes: int, room: Callable[[Component], int]) -> Layout:
    """The layout with boundaries moved so that a write up to there has components.

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
    index = 0
    while index < len(parts):
        space = parts[index]
        if "extension" in space.flags and index and space.extent_start < end_bytes:
            _extend_or_end(parts, index, end_bytes, room)
            continue_at = index if index < len(parts) and "extension" not in parts[index].flags else index + 1
            index = continue_at
        else:
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
    if at < end_bytes and following is not None:  # no room: the next component takes over from here
        parts[index + 1] = replace(following, extent_start=at)
        del parts[index]
    elif last is not None and at >= last:
        del parts[index]
    else:
        parts[index] = replace(space, extent_start=at)
