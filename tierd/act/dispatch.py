"""How moves get to the movers: ``Dispatch``, which runs an engine in this process and returns when it has ended.

The gate enters the intents of moves in the journal, hands the moves over, and enters the outcomes as they come.
The dispatch over NATS (:mod:`tierd.cluster.dispatch`) sends moves to movers on other nodes; outcomes come later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal

from annotated_types import Ge, Lt, MaxLen

from tierd.act.limits import MoveCost
from tierd.act.movers.moves import Halt, Move, MoveOutcome, Mover, never_halt, outcome_of_each
from tierd.refusal import Refusal

UNLIMITED = 1 << 30
Natural = Annotated[int, Ge(0), Lt(1 << 63)]
Version = Literal[1]
"""Of a message between processes; a later one is refused."""


@dataclass(frozen=True, slots=True)
class RemoteMover:
    """What a mover on another node reports of itself every few seconds."""

    name: str
    host: str
    engine: str
    threads: Natural
    seen: float
    """Epoch seconds by the mover's clock."""
    stopped: str = ""
    """Why it begins no file; "" while it works."""
    under_way: dict[str, Natural] = field(default_factory=dict)
    """Files being moved, or waiting in its messages, by source target."""
    results: dict[str, Natural] = field(default_factory=dict)
    """Files since its start, by result."""
    redelivered: Natural = 0
    """Messages that another mover had before."""
    refused: Natural = 0
    """Messages that were malformed, or not signed by the leader."""
    copied_bytes: Natural = 0
    nids: Annotated[tuple[str, ...], MaxLen(64)] = ()
    """NIDs of its node, by which the leader knows changelog records of its moves; empty if unknown."""
    version: Version = 1


@dataclass(frozen=True, slots=True)
class RemoteStandby:
    """What a standby reports of itself every few seconds."""

    name: str
    host: str
    seen: float
    """Epoch seconds by the standby's clock."""
    leader: str = ""
    """Who holds the claim on Lustre, in words; "" if nobody does, or it cannot be read."""
    generation: Natural = 0
    """Generation of the leader's claim; 0 without a leader."""
    position: Natural = 0
    """Sequence of the last message of the journal's stream that the copy contains."""
    behind_messages: Natural | None = None
    """Messages of the journal that its copy lacks; None if unknown."""
    copy_age_seconds: float | None = None
    """Time since its copy was complete; None if it never was since the start."""
    problem: str = ""
    """Why it could not lead; "" if it could."""
    version: Version = 1


@dataclass(slots=True)
class DispatchCounts:
    """What a dispatch to other nodes counted since the start."""

    messages: int = 0
    results: Counter[str] = field(default_factory=Counter)
    """Results of movers, by result."""
    redelivered: int = 0
    """Results of messages that another mover had before."""
    stale: int = 0
    expired: int = 0
    """Moves without a result at their deadline. The leader checked the files."""
    refused: int = 0
    """Results that were malformed or not signed."""


@dataclass(frozen=True, slots=True)
class DispatchState:
    """Moves on other nodes, for status and metrics."""

    connected: bool
    """Whether NATS answers. Too few of its servers keep a connection, and refuse requests."""
    trouble: str
    """Why it does not; "" while it does."""
    movers: Sequence[RemoteMover]
    standbys: Sequence[RemoteStandby]
    under_way: Mapping[str, int]
    """Files without a result, by source target."""
    oldest_seconds: float
    """Age of the oldest message without its last result; 0 without one."""
    journal_lag: int
    """Changes of the journal that followers cannot get yet."""
    counts: DispatchCounts


class Dispatch:
    """Hands moves over to movers. One thread uses it; any thread may ask for its state.

    This one moves files with an engine in this process, while the outcomes of a batch are read. The engine has limits
    of its own. There is nothing to withdraw: a batch has ended when its outcomes were read.
    """

    remote = False
    """Whether movers on other nodes work on their own, so that several outcomes may have come at a time."""

    def __init__(self, mover: Mover, *, dry_run: bool = False) -> None:
        """In a dry run files are examined as before a move, and not moved."""
        self._mover, self._dry_run = mover, dry_run
        self._batch: list[Move] = []
        self._halt: Halt = never_halt

    def trouble(self) -> Refusal | None:
        """Why no move can be handed over now; None if moves can."""
        return None

    def room(self) -> int:
        """Number of moves that may be handed over now."""
        return UNLIMITED

    def full_for(self, cost: MoveCost, chosen: Mapping[str, int]) -> Refusal | None:
        """Refuses a move while too many moves from its targets or to its pools are under way. ``chosen`` has the number
        of moves from each target that will be handed over together with it.
        """
        return None

    def begin(self, moves: Sequence[Move], halt: Halt) -> None:
        """Hand moves over. Their intents are in the journal. ``halt`` refuses moves that were not begun yet."""
        self._batch, self._halt = [*self._batch, *moves], halt

    def outcomes(self, wait_seconds: float = 0.0) -> Generator[MoveOutcome, None, None]:
        """The outcomes since the last call. Waits up to ``wait_seconds`` for the first, if moves are under way."""
        batch, self._batch = self._batch, []
        if batch:
            call = self._mover.examine if self._dry_run else partial(self._mover.move, halt=self._halt)
            yield from outcome_of_each(call, batch)

    def state(self) -> DispatchState | None:
        """Movers on other nodes, and what is under way there; None if moves are made in this process."""
        return None

    def nids(self) -> Collection[str] | None:
        """NIDs of the nodes of movers on other nodes; None if those of a mover are unknown."""
        return ()

    def recorded(self) -> None:
        """All outcomes that were returned are in the journal. The dispatch may forget them."""

    def withdraw(self, why: Refusal) -> None:
        """Withdraw all moves that were not begun. Their outcomes have the reason ``halted``."""
