"""Taking acts back from the journal, unless somebody changed their place since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lustre.filesystem import Filesystem
from lustre.layout import Layout, same_shape
from tierd.act.journal import Entry, Journal
from tierd.act.movers.outcome import Move, Mover, Result
from tierd.clock import Clock


class Undo:
    """Part of the gate: the other way round, by the same mover."""

    def __init__(self, filesystem: Filesystem, mover: Mover, journal: Journal, clock: Clock,
                 hindrance: Callable[[], str] = lambda: "") -> None:
        self._hindrance = hindrance
        self._filesystem = filesystem
        self._mover = mover
        self._journal = journal
        self._clock = clock
        self.undone = 0
        """Acts taken back since the start."""
        self.undone_at = 0.0

    def __call__(self, entry: Entry, reason: str) -> tuple[str, str]:
        """Undo one act: ``undone`` and the reason, or why not."""
        result, detail = "refused", f"it is {entry.outcome or 'under way'}, so there is nothing to undo"
        if entry.outcome == "dry-run":
            result, detail = "undone", reason
        elif entry.outcome == "done":
            try:
                hindrance = self._hindrance()
                result, detail = ("refused", hindrance) if hindrance else self._undone(entry, reason)
            except OSError as error:
                result, detail = "failed", error.strerror or str(error)
        if result == "undone":
            self.undone, self.undone_at = self.undone + 1, self._clock.now()
            self._journal.ended(entry.id, result, detail, self._clock.now())
        return result, detail

    def _undone(self, entry: Entry, reason: str) -> tuple[str, str]:
        present = self._filesystem.layout(entry.place)
        if present is None or entry.layout_after is None or not same_shape(present, entry.layout_after):
            return "refused", "somebody changed its layout since"
        if entry.kind == "set-default-layout":
            self._filesystem.set_default_layout(entry.place, entry.layout_before)
            return "undone", reason
        if entry.layout_before is None:
            return "refused", "the layout it had is not known"
        for moved in self._mover.move([Move(entry.place, blank(entry.layout_before))]):
            if moved.result is Result.DONE:
                return "undone", reason
            return str(moved.result), moved.detail
        return "failed", "the mover did not say how it went"


def blank(layout: Layout) -> Layout:
    """The layout as a wish: without the objects and flags of the file that had it."""
    return replace(layout, generation=0, components=tuple(
        replace(c, objects=(), flags=(), component_id=0, stripe_offset=-1) for c in layout.components))
