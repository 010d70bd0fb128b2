"""Findings that were acted on, until their acts are judged; those of before a restart come from the journal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from lustre.layout.model import Layout
from tierd.act.endings import Outcome
from tierd.act.journal import Journal
from tierd.model import Action, Finding

TAKEN_BACK = "taken-back"
"""What stands for a verdict once somebody has taken its default layouts back by hand."""
TAKEN_BACK_BY = frozenset({"did-not-help", "harmed-others", TAKEN_BACK})
"""Verdicts that end in taking back."""


@dataclass(slots=True)
class Case:
    """A finding that was acted on, until its acts are judged."""

    finding: Finding
    number: int
    begun_at: float
    """When the default layout was set: files created before that may lie on the disks."""
    acted_at: float
    """When the last default layout was set, or its moves were queued: what is measured begins then."""
    layout: Layout
    """What files of the case get, new ones and moved ones alike."""
    defaults: list[Outcome] = field(default_factory=list)
    places: set[str] = field(default_factory=set)
    """Directories it was planned for. A job may go on to others while its finding holds."""
    tried: set[str] = field(default_factory=set)
    """Files whose move was tried or is waiting: each file once in a case."""
    judged: bool = False
    verdict: str = ""
    """Empty until it is judged, and where there was nothing to judge."""
    over: bool = False
    """Whether the finding has ended since: once it is judged too, the same found again is another case."""
    taking_back: str = ""
    """Why its default layouts are taken back, while that has not come about for all of them."""
    queued: int = 0
    """Moves that were queued for it."""
    moved_at: float = 0.0
    """When the last of its files was moved, or tried; 0 before the first. Moves load the disks themselves: what was
    measured before this time speaks for the act, and never against it."""
    moves_held: bool = False
    """Whether its moves wait, so that the act is measured without them."""
    departed: bool = False
    """Whether its aggressor did nothing lately: then its files are not moved."""
    earlier: list[Outcome] = field(default_factory=list)
    """Default layouts of earlier cases between the two jobs, which stand, and still fill the flash pool."""

    @property
    def given_up(self) -> bool:
        """Whether what was done was taken back: no more is tried while the same finding holds."""
        return self.verdict in TAKEN_BACK_BY

    @property
    def closed(self) -> bool:
        """Whether nothing more will be done in it."""
        return self.over and self.judged

    def layout_in(self, directory: str) -> Layout:
        """What files of a directory get: what its new ones do."""
        return next((o.action.layout for o in self.defaults if o.action.directory == directory), self.layout)

    @property
    def pool(self) -> str:
        """Where the first bytes of its files go."""
        return self.layout.components[0].pool

    @property
    def size_bytes(self) -> int:
        """End of the first component: the class of files it is for. 0 where the whole file goes."""
        return self.layout.components[0].extent_end or 0


def reopened(journal: Journal, since: float) -> Iterator[Case]:
    """Cases whose default layouts stand since then, unjudged or with moves that wait: they go on after a restart."""
    for (number, finding, entries), verdict in chain(
            ((found, "") for found in journal.judgements.unjudged(since)),
            ((found, "helped") for found in journal.judgements.helped(since))):
        layout = entries[0].layout_after
        if layout is None:
            continue
        begun = min(entry.intended_at for entry in entries)
        case = Case(finding, number, begun, max(entry.intended_at for entry in entries), layout,
                    places={*finding.directories, *(entry.place for entry in entries)},
                    tried=set(journal.files_tried(number)), judged=bool(verdict), verdict=verdict)
        case.defaults = [
            Outcome(Action(entry.kind, layout, entry.reason, finding.key, directory=entry.place), entry.outcome,
                    entry.detail, entry.id, entry.layout_before) for entry in entries]
        yield case
