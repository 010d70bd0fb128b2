"""The look before a move, the same for both engines, and all there is of a dry run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lustre.errors import Stale
from lustre.filesystem import Calls
from tierd.act.movers import aftermath, checks
from tierd.act.movers.facts import Facts, look
from tierd.act.movers.outcome import Move, Outcome, Result, of_error
from tierd.act.movers.room import Batch

Also = Callable[[Move, Facts], checks.Refusal | None]
"""What one engine looks at in addition. May raise ValueError for a layout it cannot ask for."""


def facts_of(calls: Calls, move: Move, batch: Batch, also: Also, *, take: bool = True) -> Facts | Outcome:
    """The file as it is, if it is to be moved; else the outcome, with nothing tried.

    ``take`` False leaves the room it needs to others: it will be looked at once more.
    """
    try:
        facts = look(calls, move.path)
        return refusal_of(move, facts, batch, also, take=take) or facts
    except Stale as error:  # nothing has been leased yet: the name, or what it stood for, is gone
        return aftermath.removed(move, None, error)
    except OSError as error:
        return of_error(move, error)
    except ValueError as error:
        return Outcome(move, Result.REFUSED, "wanted-layout", str(error))


def refusal_of(move: Move, facts: Facts, batch: Batch, also: Also, *, take: bool = True) -> Outcome | None:
    """Why a file that was looked at is left alone; None where it is to be moved, and then its room counts as taken.

    Raises OSError, and ValueError for a layout the engine cannot ask for.
    """
    refusal = checks.of_file(move, facts)
    if refusal is None and facts.layout is not None and aftermath.lies_as_wanted(facts.layout, move.layout,
                                                                                  batch.pools):
        return Outcome(move, Result.ALREADY, "already", "it has this layout", facts.layout, facts.layout)
    refusal = refusal or also(move, facts) or batch.refusal(move, facts, take=take)
    if refusal is None:
        return None
    return Outcome(move, Result.REFUSED, refusal.reason, refusal.detail, facts.layout, facts.layout)


def outcomes(calls: Calls, moves: Sequence[Move], batch: Batch, also: Also) -> Iterator[Outcome]:
    """How each would begin."""
    for move in moves:
        found = facts_of(calls, move, batch, also)
        yield found if isinstance(found, Outcome) else Outcome(move, Result.MOVABLE, before=found.layout)
