"""Acts that were under way when tierd ended: each is closed by a look at what it was done to.

A file is whole at any instruction, with the layout it had or the one it was to get; the journal only has to
learn which.
"""

from __future__ import annotations

from collections.abc import Iterator

from lustre.filesystem import Filesystem
from lustre.layout.model import explain, same_shape
from tierd.act.changing_defaults import same
from tierd.act.journal import Entry, Journal
from tierd.act.journal.writer import UNDOING


def close_unfinished(journal: Journal, filesystem: Filesystem, now: float) -> Iterator[tuple[Entry, str, str]]:
    """Close every one; each with its outcome and a sentence."""
    for entry in journal.unfinished():
        outcome, detail = _seen(entry, filesystem)
        journal.end(entry.id, outcome, detail, now)
        yield entry, outcome, detail


def _seen(entry: Entry, filesystem: Filesystem) -> tuple[str, str]:
    if entry.dry_run:
        return "dry-run", ""
    try:
        present = filesystem.layout(entry.place)
        fid = filesystem.status(entry.place).fid
    except FileNotFoundError:
        return "gone", "tierd ended while it was under way, and nothing has this name now"
    except OSError as error:
        return "interrupted", f"tierd ended while it was under way, and it cannot be looked at: {error}"
    if entry.fid is not None and fid != entry.fid:
        return "gone", "tierd ended while it was under way, and something else has this name now"
    changed = present is not None and entry.layout_after is not None and same_shape(present, entry.layout_after)
    if entry.kind == "set-default-layout" and not changed and not same(present, entry.layout_before):
        now = "none" if present is None else explain(present)
        return "interrupted", f"tierd ended while it was under way; its default is neither of the two now: {now}"
    if entry.outcome == UNDOING:
        if changed:
            return "done", "tierd ended before it was undone"
        below = "; directories made below it meanwhile may still have it: lfs getstripe -d -r"
        return "undone", "found undone" + (below if entry.kind == "set-default-layout" else "")
    if changed:
        return "done", "tierd ended before it could say so; found done"
    return "interrupted", "tierd ended before it was done; it has the layout it had"
