"""One engine, and another one for the files that only that one can move.

``lfs`` refuses files whose data would leave the MDT, because their modification time would change, and before 2.17
overstriped layouts, which it would not request. ``lease`` refuses
files whose data would go to the MDT, because Lustre does not exchange such layouts. The configured engine examines each
file first, so the other one costs nothing where it is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tierd.act.movers.moves import Halt, Move, MoveOutcome, MoveResult, never_halt
from tierd.act.movers.parallel import Engine
from tierd.act.movers.space_and_quota import DestinationState
from tierd.refusal import Reason

OTHER_ENGINE = frozenset({Reason.TIMES, Reason.TO_MDT, Reason.OVERSTRIPED})
"""Reasons for which an engine refuses a file that the other one can move."""


class EitherEngine:
    """Implements :class:`~tierd.act.movers.parallel.Engine` with two engines."""

    def __init__(self, first: Engine, other: Engine) -> None:
        self.first = first
        self.other = other

    @property
    def files_at_a_time(self) -> int:
        """See the protocol."""
        return self.first.files_at_a_time

    def batch(self) -> DestinationState:
        """See the protocol."""
        return self.first.batch()

    def move(
        self, moves: Iterable[Move], halt: Halt = never_halt, batch: DestinationState | None = None
    ) -> Iterator[MoveOutcome]:
        """See the protocol."""
        shared = self.batch() if batch is None else batch
        for outcome in self.first.move(moves, halt, shared):
            if needs_other(outcome):
                yield from self.other.move([outcome.move], halt, shared)
            else:
                yield outcome

    def examine(self, moves: Sequence[Move]) -> Iterator[MoveOutcome]:
        """See the protocol."""
        for outcome in self.first.examine(moves):
            if needs_other(outcome):
                yield from self.other.examine([outcome.move])
            else:
                yield outcome


def needs_other(outcome: MoveOutcome) -> bool:
    """Whether the engine left the file to the other one."""
    return outcome.result is MoveResult.REFUSED and outcome.reason in OTHER_ENGINE
