"""Outcomes of acts: entered into the journal, and counted for metrics and status."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from threading import Lock

from tierd.act.journal.entry import Default
from tierd.act.journal.writer import Journal
from tierd.act.movers.moves import MoveOutcome, MoveResult
from tierd.acts import ActKind, Outcome
from tierd.clock import Clock
from tierd.model import Action
from tierd.refusal import Reason
from tierd.text import without_figures


@dataclass(frozen=True, slots=True)
class CompletedAct:
    """The outcome of one act, and the reason for it."""

    action: Action
    result: Outcome
    detail: str
    entry: int
    """Number of the act in the journal; 0 if the file was gone before the act."""
    before: Default = None
    """What a directory had before."""
    begun_at: float = 0.0
    """Time when a default layout was set; epoch seconds."""
    reason: Reason | None = None
    """Of a refusal by tierd itself."""


EXPLAINED = frozenset({Outcome.REFUSED, Outcome.GAVE_WAY, Outcome.FAILED, Outcome.DOUBTFUL})
"""Outcomes whose details are counted."""
MAX_REASONS = 40
"""Different details that are counted; a detail may have a name in it. Further ones are counted together."""
OTHER_REASONS = "other reasons"
MOVES_PAUSE_SECONDS = 300.0
"""Moves after a longer pause are a new run of moves, which dashboards mark once."""


class CompletedActs:
    """Outcomes of all acts since the start, counted."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._lock = Lock()
        self.counts: Counter[tuple[ActKind, Outcome]] = Counter()
        """Number of acts by kind and outcome."""
        self.needless = Counter[tuple[ActKind, Outcome]]()
        """Those of them that needed no act, and that the journal does not have: the file was gone, or as wanted."""
        self.last: dict[tuple[ActKind, Outcome], float] = {}
        """Time of the last act by kind and outcome; epoch seconds."""
        self.moved_bytes = 0
        self.reasons: Counter[tuple[Outcome, str]] = Counter()
        """Number of acts that were not carried out, by outcome and detail, without the figures in it."""
        self.moves_begun_at = 0.0
        """When the first file moved after :data:`MOVES_PAUSE_SECONDS` without moves; 0 before the first."""

    def ended(self, act: CompletedAct) -> CompletedAct:
        """Enter the outcome of an act in the journal, and count it."""
        self._journal.end(act.entry, act.result, act.detail, self._clock.now())
        return self.counted(act)

    def counted(self, outcome: CompletedAct) -> CompletedAct:
        kind = outcome.action.kind, outcome.result
        with self._lock:
            now = self._clock.now()
            if kind == (ActKind.MIGRATE, Outcome.DONE) and now - self.last.get(kind, 0.0) > MOVES_PAUSE_SECONDS:
                self.moves_begun_at = now
            self.counts[kind] += 1
            self.needless[kind] += not outcome.entry
            self.last[kind] = now
            if outcome.result in EXPLAINED:
                reason = outcome.result, without_figures(outcome.detail)
                if reason not in self.reasons and len(self.reasons) >= MAX_REASONS:
                    reason = outcome.result, OTHER_REASONS
                self.reasons[reason] += 1
        return outcome


def outcome_of_move(moved: MoveOutcome) -> Outcome:
    if moved.reason == Reason.GONE:
        return Outcome.GONE
    return Outcome.DRY_RUN if moved.result is MoveResult.MOVABLE else Outcome(moved.result)
