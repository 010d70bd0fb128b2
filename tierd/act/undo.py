"""Taking acts back from the journal, unless somebody changed their place since."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from lustre.filesystem import Filesystem
from lustre.layout.model import same_shape
from tierd.act.changing_defaults import same
from tierd.act.journal import Entry, Journal
from tierd.act.movers.outcome import Move, Mover, Result
from tierd.act.passed_on import LONGEST_SECONDS, Passing, take_back
from tierd.act.standstill import never
from tierd.act.way_back import wish
from tierd.clock import Clock


class Undo:
    """Part of the gate: the other way round, by the same mover."""

    def __init__(self, filesystem: Filesystem, mover: Mover, journal: Journal, clock: Clock,
                 hindrance: Callable[[], str] = never) -> None:
        """``hindrance`` says why nothing may even be taken back: the pause file, another tierd's claim."""
        self._hindrance = hindrance
        self._filesystem = filesystem
        self._mover = mover
        self._journal = journal
        self._clock = clock
        self._lock = Lock()
        self._busy: set[int] = set()
        """Acts that a thread takes back at this moment."""
        self.undone = 0
        """Acts taken back since the start."""
        self.undone_at = 0.0

    def held(self) -> str:
        """Why nothing may be taken back now, or ""."""
        return self._hindrance()

    def __call__(self, entry: Entry, reason: str) -> tuple[str, str]:
        """Undo one act: ``undone`` and the reason, or why not. Maintenance windows do not keep it from being done."""
        with self._lock:
            if entry.id in self._busy:
                return "refused", "it is being taken back already"
            self._busy.add(entry.id)
        try:
            return self._taken_back(self._journal.entry(entry.id) or entry, reason)
        finally:
            with self._lock:
                self._busy.discard(entry.id)

    def _taken_back(self, entry: Entry, reason: str) -> tuple[str, str]:
        result, detail = "refused", f"it is {entry.outcome or 'under way'}, so there is nothing to undo"
        if entry.outcome == "dry-run":
            result, detail = "undone", reason
        elif entry.outcome == "done":
            try:
                hindrance = self._hindrance()
                result, detail = ("refused", hindrance) if hindrance else self._undone(entry, reason)
            except OSError as error:
                result, detail = "failed", error.strerror or str(error)
            except ValueError as error:
                result, detail = "refused", str(error)
        if result == "undone":
            with self._lock:
                self.undone, self.undone_at = self.undone + 1, self._clock.now()
            self._journal.end(entry.id, result, detail, self._clock.now())
        return result, detail

    def _undone(self, entry: Entry, reason: str) -> tuple[str, str]:
        present = self._filesystem.layout(entry.place)
        if entry.fid is not None and self._filesystem.status(entry.place).fid != entry.fid:
            return "refused", "another file or directory has this name now"
        if entry.kind == "set-default-layout" and same(present, entry.layout_before):
            return "undone", self._told("it has the default again that it had", entry)
        if present is None or entry.layout_after is None or not same_shape(present, entry.layout_after):
            return "refused", "somebody changed its layout since"
        if entry.kind == "set-default-layout":
            return self._default_put_back(entry, reason)
        if entry.layout_before is None:
            return "refused", "the layout it had is not known"
        move = Move(entry.place, wish(entry.layout_before, self._filesystem.pools()), entry.fid)
        self._journal.begin_undo(entry.id, self._clock.now())
        result, detail = self._moved_back(move)
        if result != "undone":
            self._journal.end(entry.id, "done", f"not undone: {detail}", self._clock.now())
        return result, reason if result == "undone" else detail

    def _default_put_back(self, entry: Entry, reason: str) -> tuple[str, str]:
        self._journal.begin_undo(entry.id, self._clock.now())
        try:
            self._filesystem.set_default_layout(entry.place, entry.layout_before)
            if same(self._filesystem.layout(entry.place), entry.layout_before):
                return "undone", self._told(reason, entry)
            detail = "Lustre made another default of the one it had"
        except (OSError, ValueError) as error:  # whether it was done in spite of it, the next one who tries will see
            detail = getattr(error, "strerror", None) or str(error)
        self._journal.end(entry.id, "done", f"not undone: {detail}", self._clock.now())
        return "failed", detail

    def _told(self, reason: str, entry: Entry) -> str:
        """The reason, and what became of directories that were made below meanwhile."""
        if entry.layout_after is None:
            return reason
        until = self._clock.now() + LONGEST_SECONDS
        spared = self._journal.default_layout_directories() - {entry.place}
        passing = Passing(entry.layout_after, entry.layout_before, entry.intended_at, spared)
        late = "there was no time to look further"
        more = take_back(self._filesystem, entry.place, passing,
                         lambda: self._hindrance() or (late if self._clock.now() > until else ""))
        return "; ".join(filter(None, (reason, more)))

    def _moved_back(self, move: Move) -> tuple[str, str]:
        for moved in self._mover.move([move]):
            done = moved.result in {Result.DONE, Result.ALREADY}
            return "undone" if done else str(moved.result), moved.detail
        return "failed", "the mover did not say how it went"
