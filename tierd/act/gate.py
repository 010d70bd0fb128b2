"""The one gate: nothing else changes a file system. A dry run walks it too, and spends the same budget.

Before each act the gate looks again at what it is about to change: if somebody else moved it since the plan was made,
the act is refused, not forced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lustre.filesystem import Filesystem
from tierd.act.batches import Batches
from tierd.act.breaker import Breaker
from tierd.act.budget import Budget
from tierd.act.default_layouts import DefaultLayouts
from tierd.act.endings import Endings, Outcome
from tierd.act.guard import Guard, Unguarded
from tierd.act.journal import Journal
from tierd.act.kept import KeptMove, Stamp
from tierd.act.left_over import LeftOver
from tierd.act.movers.outcome import Mover
from tierd.act.stance import Stance
from tierd.act.standstill import Standstill
from tierd.act.waiting import Queue
from tierd.clock import Clock
from tierd.model import Action


class Gate:
    """Default layouts are set at once; moves wait in a queue and go as the budget allows."""

    def __init__(self, filesystem: Filesystem, mover: Mover, budget: Budget, breaker: Breaker, journal: Journal,
                 clock: Clock, dry_run: bool, guard: Guard | None = None,
                 standstill: Standstill | None = None) -> None:
        self._filesystem = filesystem
        self._journal = journal
        self._clock = clock
        self._dry_run = dry_run
        self.stance = Stance(journal, standstill or Standstill(), clock)
        self.endings = Endings(journal, clock)
        self._guard = guard or Unguarded()
        self._queue = Queue(filesystem, budget, self._guard)
        self._default_layouts = DefaultLayouts(filesystem, journal, self.endings, self._guard, self._halt, clock,
                                               dry_run)
        self._batches = Batches(mover, breaker, journal, self._queue, self.endings, self.stance, self._halt, clock)
        self._left_over = LeftOver(journal.waiting.all())
        self.not_taken_up: Counter[str] = Counter()
        """Moves that waited before a restart and do not any more, by reason."""

    @property
    def dry_run(self) -> bool:
        """Whether nothing is really done."""
        return self._dry_run

    @property
    def waiting(self) -> int:
        """Moves in the queue, with those from before a restart."""
        return len(self._queue) + len(self._left_over)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the files in the queue."""
        return self._queue.size_bytes + self._left_over.size_bytes

    @property
    def waits_for(self) -> str:
        """Which limit the first of them has reached; "" for none."""
        return self._queue.waits_for if len(self._queue) else ""

    @property
    def left_over(self) -> int:
        """Those from before a restart that were not looked at yet."""
        return len(self._left_over)

    @property
    def not_kept(self) -> int:
        """Moves that a restart would lose: there are more than the journal keeps."""
        return max(0, self.waiting - len(self._journal.waiting))

    @property
    def budget_left(self) -> tuple[float, float]:
        """Files and bytes that may be moved at once."""
        return self._queue.budget_left

    def waiting_for(self, finding_key: tuple[str, str, str]) -> int:
        """Moves of one finding in the queue."""
        return self._queue.of(finding_key) + self._left_over.of(finding_key)

    def submit(self, actions: Iterable[Action], finding: int) -> list[Outcome]:
        """Set default layouts now, queue the moves. Advice passes by: it is for people."""
        every = tuple(actions)
        outcomes = [self._default_layouts.set(action, finding)
                    for action in every if action.kind == "set-default-layout"]
        moves = [action for action in every if action.kind == "migrate" and self._queue.add(action, finding)]
        if moves:
            with self._journal.together():
                self._keep(moves, finding)
        return outcomes

    def _keep(self, moves: Sequence[Action], finding: int) -> None:
        stamp = Stamp(self._filesystem.fsname, self._dry_run, self._clock.now())
        self._journal.waiting.add(moves, finding, stamp)

    def first_left_over(self, most: int) -> list[KeptMove]:
        """Moves from before a restart, the oldest, for somebody to look at."""
        return self._left_over.first(most)

    def take_up(self, again: Sequence[tuple[Action, int]], left: Sequence[tuple[KeptMove, str]]) -> None:
        """What was looked at waits for its turn again, or is forgotten. The journal keeps the first as it was."""
        self._left_over.looked_at(len(again) + len(left))
        for action, finding in again:
            self._queue.add(action, finding)
        with self._journal.together():
            self._journal.waiting.remove(move.path for move, _ in left if not self._queue.has(move.path))
        self.not_taken_up.update(why for _, why in left)

    def objection(self, directory: str) -> str:
        """Why a directory's owner wants it left alone, or ""."""
        return self._guard.objection(directory)

    def refusal(self, action: Action) -> str:
        """Why this would be left alone when its turn comes, as far as its owner and the mode there go; or ""."""
        return self._guard.refusal(action)

    def drop(self, finding_key: tuple[str, str, str]) -> int:
        """Forget the moves of one finding; how many there were."""
        self._journal.waiting.drop(finding_key)
        return self._queue.drop(finding_key) + self._left_over.drop(finding_key)

    def pump(self, deadline: float, *, asked_for_only: bool = False) -> list[Outcome]:
        """Carry out waiting moves until the budget is spent, the queue empty, the time up or something holds them.

        ``asked_for_only``: those that a person asked for by name, while tierd does nothing by itself.
        """
        outcomes: list[Outcome] = []
        while len(self._queue) and self._clock.now() < deadline and not self._halt():
            batch, gone = self._queue.next_batch(self._clock.now(), asked_for_only=asked_for_only)
            if gone:
                with self._journal.together():
                    self._journal.waiting.remove(action.path for action in gone)
            outcomes += [self.endings.counted(Outcome(action, "gone", "", 0)) for action in gone]
            if not batch:
                break
            outcomes += self._batches.examine(batch) if self._dry_run else self._batches.move(batch, self._keep)
        return outcomes

    def _halt(self) -> str:
        """Why no further act may be begun."""
        return self.stance.held or self._guard.hindrance()
