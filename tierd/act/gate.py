"""The one gate: nothing else changes a file system. A dry run walks it too, and spends the same budget.

Before each act the gate looks again at what it is about to change: if somebody else moved it since the plan was made,
the act is refused, not forced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from lustre.fid import Fid
from lustre.filesystem import Filesystem
from lustre.layout import Layout, same_shape
from tierd.act.breaker import Breaker
from tierd.act.budget import Budget
from tierd.act.endings import Endings, Outcome, word
from tierd.act.guard import Guard, Unguarded
from tierd.act.journal import Journal
from tierd.act.kept import KeptMove, Stamp
from tierd.act.left_over import LeftOver
from tierd.act.movers.outcome import Mover, Result
from tierd.act.stance import Stance
from tierd.act.standstill import Standstill
from tierd.act.waiting import Queue, Waiting
from tierd.clock import Clock
from tierd.model import Action
from tierd.text import quoted

_NOTHING_READ = {str(Result.REFUSED), str(Result.ALREADY)}
"""How moves end before a byte of the file is read: they take nothing from the limits on bytes."""


class Gate:
    """Default layouts are set at once; moves wait in a queue and go as the budget allows."""

    def __init__(self, filesystem: Filesystem, mover: Mover, budget: Budget, breaker: Breaker, journal: Journal,
                 clock: Clock, dry_run: bool, guard: Guard | None = None,
                 standstill: Standstill | None = None) -> None:
        self._filesystem = filesystem
        self._mover = mover
        self._breaker = breaker
        self._journal = journal
        self._clock = clock
        self._dry_run = dry_run
        self.stance = Stance(journal, standstill or Standstill(), clock)
        self.endings = Endings(journal, clock)
        self._guard = guard or Unguarded()
        self._queue = Queue(filesystem, budget, self._guard)
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
        outcomes = [self._set_default(action, finding) for action in every if action.kind == "set-default-layout"]
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
            outcomes += self._dry(batch) if self._dry_run else self._move(batch)
        return outcomes

    def _dry(self, batch: list[Waiting]) -> Iterator[Outcome]:
        """The same look as before a move, and no more."""
        found = {outcome.move.path: outcome for outcome in self._mover.examine([each.move for each in batch])}
        for each, entry in self._intend_all(batch):
            outcome = found[each.action.path]
            result, detail = word(outcome), outcome.detail
            if each.refusal:
                result, detail = "refused", each.refusal
            if result in _NOTHING_READ:
                self._queue.give_back(each, self._clock.now())
            yield self.endings.ended(each.action, result, detail, entry, each.before)

    def _move(self, batch: list[Waiting]) -> Iterator[Outcome]:
        entries: dict[str, tuple[Waiting, int]] = {}
        for each, entry in self._intend_all(batch):
            if each.refusal:
                self._queue.give_back(each, self._clock.now())
                yield self.endings.ended(each.action, "refused", each.refusal, entry, each.before)
            else:
                entries[each.action.path] = each, entry
        moves = [each.move for each, _ in entries.values()]
        for moved in self._mover.move(moves, self._halt) if moves else ():
            each, entry = entries.pop(moved.move.path)
            if str(moved.result) in _NOTHING_READ:
                self._queue.give_back(each, self._clock.now())
            if moved.result is Result.DONE:
                self.endings.moved_bytes += each.action.size_bytes
            if moved.reason == "halted" and self._queue.add(each.action, each.finding):  # its turn comes again
                self._keep([each.action], each.finding)
            if trouble := self._breaker.note(str(moved.result), each.action.path):
                self.stance.pause(self.stance.paused or trouble, tripped=True)
            yield self.endings.ended(each.action, word(moved), moved.detail, entry, each.before, each.move.fid)
        for each, entry in entries.values():  # the engine said nothing of them
            yield self.endings.ended(each.action, "failed", "the mover did not say how it went", entry, each.before)

    def _intend_all(self, batch: list[Waiting]) -> list[tuple[Waiting, int]]:
        """Enter the intents of a batch, and their numbers: from now on each is an act, and no longer waits."""
        now = self._clock.now()
        with self._journal.together():
            self._journal.waiting.remove(each.action.path for each in batch)
            return [(each, self._journal.intend(each.action, each.finding, each.before, now, self._dry_run,
                                                each.move.fid)) for each in batch]

    def _set_default(self, action: Action, finding: int) -> Outcome:
        before: Layout | None = None
        fid: Fid | None = None
        refusal = failure = ""
        try:
            before = self._filesystem.layout(action.directory)
            fid = self._filesystem.status(action.directory).fid
            real = self._filesystem.path_of(fid)
            if real != action.directory:  # somebody's link where a directory was leads anywhere
                refusal = f"the path leads to {quoted(real)} now"
        except OSError as error:
            failure = error.strerror or str(error)
        entry = self._journal.intend(action, finding, before, self._clock.now(), self._dry_run, fid)
        if not refusal and before is not None and same_shape(before, action.layout):
            refusal = "it has this layout already"
        refusal = refusal or self._halt() or self._guard.refusal(action)
        try:
            if not (failure or refusal or self._dry_run):
                self._filesystem.set_default_layout(action.directory, action.layout)
        except (OSError, ValueError) as error:  # the latter: a layout Lustre cannot have
            failure = getattr(error, "strerror", None) or str(error)
        result = "failed" if failure else "refused" if refusal else "dry-run" if self._dry_run else "done"
        return self.endings.ended(action, result, failure or refusal, entry, before)

    def _halt(self) -> str:
        """Why no further act may be begun."""
        return self.stance.held or self._guard.hindrance()
