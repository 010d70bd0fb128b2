"""Moves whose turn has come: intents into the journal, then a look or the move, and what came of each.

For :mod:`tierd.act.gate` alone, which says when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lustre.fid import Fid
from tierd.act.breaker import Breaker
from tierd.act.endings import Endings, Outcome, word
from tierd.act.journal import Journal
from tierd.act.movers.outcome import Mover, Result
from tierd.act.stance import Stance
from tierd.act.standstill import Halt
from tierd.act.waiting import Queue, Waiting
from tierd.clock import Clock
from tierd.model import Action

Keep = Callable[[Sequence[Action], int], None]
"""Enters moves of a finding that wait into the journal."""

_NOTHING_READ = {str(Result.REFUSED), str(Result.ALREADY)}
"""How moves end before a byte of the file is read: they take nothing from the limits on bytes."""


class Batches:
    """A few moves at a time, as the engine takes them."""

    def __init__(self, mover: Mover, breaker: Breaker, journal: Journal, queue: Queue, endings: Endings,
                 stance: Stance, halt: Halt, clock: Clock, on_begin: Callable[[Fid], None]) -> None:
        self._mover = mover
        self._breaker = breaker
        self._journal = journal
        self._queue = queue
        self._endings = endings
        self._stance = stance
        self._halt = halt
        """Why no further act may be begun, or ""."""
        self._clock = clock
        self._on_begin = on_begin
        self.under_way = 0
        """Moves the engine was given and has not said of how they went."""

    def examine(self, batch: list[Waiting]) -> Iterator[Outcome]:
        """The same look as before a move, and no more."""
        found = {outcome.move.path: outcome for outcome in self._mover.examine([each.move for each in batch])}
        for each, entry in self._intend(batch, dry_run=True):
            outcome = found[each.action.path]
            result, detail = word(outcome), outcome.detail
            if each.refusal:
                result, detail = "refused", each.refusal
            if result in _NOTHING_READ:
                self._queue.give_back(each, self._clock.now())
            yield self._endings.ended(each.action, result, detail, entry, each.before)

    def move(self, batch: list[Waiting], keep: Keep) -> Iterator[Outcome]:
        """Move them. One that was halted waits for its turn again, and is kept in the journal as before."""
        entries: dict[str, tuple[Waiting, int]] = {}
        for each, entry in self._intend(batch, dry_run=False):
            if each.refusal:
                self._queue.give_back(each, self._clock.now())
                yield self._endings.ended(each.action, "refused", each.refusal, entry, each.before)
            else:
                entries[each.action.path] = each, entry
        moves = [each.move for each, _ in entries.values()]
        for move in moves:
            if move.fid is not None:
                self._on_begin(move.fid)
        self.under_way = len(moves)
        for moved in self._mover.move(moves, self._halt) if moves else ():
            each, entry = entries.pop(moved.move.path)
            self.under_way = len(entries)
            if str(moved.result) in _NOTHING_READ:
                self._queue.give_back(each, self._clock.now())
            if moved.result is Result.DONE:
                self._endings.moved_bytes += each.action.size_bytes
            if moved.reason == "halted" and self._queue.add(each.action, each.finding):  # its turn comes again
                keep([each.action], each.finding)
            if trouble := self._breaker.note(str(moved.result), each.action.path):
                self._stance.pause(self._stance.paused or trouble, tripped=True)
            yield self._endings.ended(each.action, word(moved), moved.detail, entry, each.before, each.move.fid)
        for each, entry in entries.values():  # the engine said nothing of them
            yield self._endings.ended(each.action, "failed", "the mover did not say how it went", entry, each.before)

    def _intend(self, batch: list[Waiting], *, dry_run: bool) -> list[tuple[Waiting, int]]:
        """Enter the intents of a batch, and their numbers: from now on each is an act, and no longer waits."""
        now = self._clock.now()
        with self._journal.transaction():
            self._journal.queue.remove(each.action.path for each in batch)
            return [(each, self._journal.intend(each.action, each.finding, each.before, now, dry_run, each.move.fid))
                    for each in batch]
