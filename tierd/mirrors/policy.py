"""Chooses a mirror on flash instead of a move, for files that are read again and not written.

Reads use the mirror on flash, which is marked as preferred. Its space is free again without a copy: the mirror is
removed, and the file on disks is as it was. The price is that the file needs space on both pools. A write goes to the
mirror on flash and makes the one on disks stale, so nothing is won with files that are written: they move.

A stale mirror is brought up to date if its file is found hot once more, and before the mirror on flash is removed.
"""

from __future__ import annotations

from dataclasses import replace

from lustre.layout.model import Layout, mirrors, one_mirror
from tierd.model import StoredFile
from tierd.policies.protocol import Policy, Use

READ_SHARE = 0.9
"""Minimum share of reads among the job's reads and writes. A choice."""


def added(layout: Layout, use: Use) -> Layout:
    """The layout as a mirror of the present one, or as it is if files with this use should move."""
    if layout.components[0].on_mdt or use.read_share < READ_SHARE:
        return layout
    return Layout(tuple(replace(part, mirror_id=2) for part in layout.components), mirror_count=2)


def kept(file: StoredFile, flash_pool: str) -> Layout | None:
    """The layout of a file without its preferred mirror on a flash pool. None if it has no such mirror, or others."""
    groups = mirrors(file.layout) if file.layout is not None else ()
    rest = [group for group in groups
            if group[0].pool != flash_pool or not any("prefer" in part.flags for part in group)]
    return one_mirror(rest[0]) if len(groups) == 2 and len(rest) == 1 else None


POLICY = Policy("mirror-on-flash", option="gives files that are read again a mirror on flash instead of moving them",
                mirrored=added, unmirrored=kept)
