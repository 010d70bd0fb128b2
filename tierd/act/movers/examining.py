"""The look before a move, the same for both engines, and all there is of a dry run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lustre.calls import Calls
from tierd.act.movers import aftermath, checks
from tierd.act.movers.facts import Facts, look
from tierd.act.movers.outcome import Move, Outcome, Result, of_error
from tierd.act.movers.room import Batch

Also = Callable[[Move, Facts], checks.Refusal | None]
"""What one engine looks at in addition. May raise ValueError for a layout it cannot ask for."""


def facts_of(calls: Calls, move: Move, batch: Batch, also: Also) -> Facts | Outcome:
    """The file as it is, if it is to be moved; else the outcome, with nothing tried."""
    try:
        facts = look(calls, move.path)
        refusal = checks.of_file(move, facts)
        if refusal is None and facts.layout is not None and aftermath.lies_as_wanted(facts.layout, move.layout,
                                                                                      batch.pools):
            return Outcome(move, Result.ALREADY, "already", "it has this layout", facts.layout, facts.layout)
        refusal = refusal or also(move, facts) or batch.refusal(move, facts)
    except OSError as error:
        return of_error(move, error)
    except ValueError as error:
        return Outcome(move, Result.REFUSED, "wanted-layout", str(error))
    if refusal is not None:
        return Outcome(move, Result.REFUSED, refusal.reason, refusal.detail, facts.layout, facts.layout)
    return facts


def outcomes(calls: Calls, moves: Sequence[Move], batch: Batch, also: Also) -> Iterator[Outcome]:
    """How each would begin."""
    for move in moves:
        found = facts_of(calls, move, batch, also)
        yield found if isinstance(found, Outcome) else Outcome(move, Result.MOVABLE, before=found.layout)
