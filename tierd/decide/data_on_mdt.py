"""Small files that are read much more than written may lie on the MDT itself (DoM): an open brings the bytes along.

Off unless asked for. Measured (Cray, CUG 2018, table 1, empty files): a third more reads; random writes of 4 KiB were
slower than on flash targets and 20 to 40% faster than on disks. And an MDT that runs full stops a whole file system,
where a full pool stops a few files. For new files only: Lustre cannot move the bytes of a file from a target to the MDT
by a swap of layouts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Lt

from lustre.layout.model import Component, Layout
from tierd.model import Room


@dataclass(frozen=True)
class Settings:
    """When a first component lies on the MDT in place of flash."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    enabled: bool = False
    largest_bytes: Annotated[int, Gt(0)] = 64 << 10
    """End of such a component, at the most; ``lod.*.dom_stripesize`` is Lustre's own limit (1 MiB as a rule)."""
    reads_per_write: Annotated[float, Ge(1)] = 3.0
    least_free: Annotated[float, Gt(0), Lt(1)] = 0.3
    """Share of bytes and of inodes free on every MDT."""


def instead(layout: Layout, read_share: float, room: Room, settings: Settings) -> Layout:
    """The layout with its first component on the MDT where that fits; as it is where it does not, or nobody knows."""
    first = layout.components[0]
    if (not settings.enabled or first.extent_end is None or first.extent_end > settings.largest_bytes
            or read_share < settings.reads_per_write * (1 - read_share)
            or room.metadata_free is None or room.metadata_free < settings.least_free):
        return layout
    return replace(layout, components=(Component(0, first.extent_end, pattern="mdt"), *layout.components[1:]))
