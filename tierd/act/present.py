"""What a file or directory has now, compared with an act about it: undo and recovery decide by this one reading."""

from __future__ import annotations

from enum import Enum

from lustre.filesystem import Filesystem
from lustre.layout import directory
from lustre.layout.model import Layout, same_shape
from tierd.act.default_layouts import same_default
from tierd.act.journal.entry import Entry
from tierd.acts import ActKind


class Has(Enum):
    """What it has."""

    AFTER = "after"
    """What the act wanted."""
    BEFORE = "before"
    """What it had before, or what undoes the move."""
    OTHER = "other"
    REPLACED = "replaced"
    """Another file or directory has the name."""


def present_state(entry: Entry, filesystem: Filesystem, earlier: Layout | None = None) -> tuple[Has, Layout | None]:
    """What the place of an act has, and its layout. ``earlier`` is the layout that undoes a move.

    Raises FileNotFoundError if the place is gone, and OSError.
    """
    layout: Layout | None = None
    if entry.kind == ActKind.SET_DEFAULT_STRIPING:
        striping = filesystem.default_striping(entry.place)
        after, before = (directory.same_default(striping, other)
                         for other in (entry.striping_after, entry.striping_before))
    else:
        layout = filesystem.layout(entry.place)
        after = layout is not None and entry.layout_after is not None and same_shape(layout, entry.layout_after)
        before = (earlier is not None and layout is not None and same_shape(layout, earlier)
                  if entry.kind == ActKind.MIGRATE else same_default(layout, entry.layout_before))
    if filesystem.status(entry.place).fid != entry.fid and entry.fid is not None:
        return Has.REPLACED, layout
    return Has.AFTER if after else Has.BEFORE if before else Has.OTHER, layout
