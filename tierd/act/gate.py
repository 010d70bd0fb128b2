"""The one gate: nothing else changes a file system. A dry run walks it too, and spends the same budget.

Before each act the gate looks again at what it is about to change: if somebody else moved it since the plan was made,
the act is refused, not forced.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass

from lustre.filesystem import Filesystem
from lustre.layout import Layout, same_shape
from tierd.act.breaker import Breaker
from tierd.act.budget import Budget
from tierd.act.guard import Guard, Unguarded
from tierd.act.journal import Journal
from tierd.act.movers.outcome import Move, Mover, Result
from tierd.clock import Clock
from tierd.model import Action

BATCH = 16
"""Moves handed to the engine at a time: it may do them in one process."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one act went, and why.

    ``done``, ``already``, ``dry-run``, ``refused``, ``gave-way``, ``failed``, ``doubtful``, or ``gone``: the job had
    unlinked the file before its turn came.
    """

    action: Action
    result: str
    detail: str
    entry: int
    """Its number in the journal; 0 for a file that was gone before."""
    before: Layout | None = None


class Gate:
    """Default layouts are set at once; moves wait in a queue and go as the budget allows."""

    def __init__(self, filesystem: Filesystem, mover: Mover, budget: Budget, breaker: Breaker, journal: Journal,
                 clock: Clock, dry_run: bool, guard: Guard | None = None) -> None:
        self._filesystem = filesystem
        self._guard = guard or Unguarded()
        self._mover = mover
        self._budget = budget
        self._breaker = breaker
        self._journal = journal
        self._clock = clock
        self._dry_run = dry_run
        self._queue: deque[tuple[Action, int]] = deque()
        self._queued: set[str] = set()
        self.outcomes: Counter[tuple[str, str]] = Counter()
        """By kind of act and result."""
        self.last: dict[tuple[str, str], float] = {}
        """When each kind of act last had each result."""
        self.moved_bytes = 0
        state = journal.state()
        self.paused = state.get("paused", "")
        """Why nothing is done at present; "" when things are done. Kept over a restart."""
        self.tripped = bool(state.get("tripped"))
        """Whether the circuit breaker says so, and not a person."""
        self.draining = state.get("draining", "")
        """Why nothing new is begun, while what is queued is finished; "" when it is not so."""

    def pause(self, reason: str, *, tripped: bool = False) -> None:
        """Change nothing until :meth:`resume`. What is under way comes to its end."""
        self.paused, self.tripped = reason, tripped

    def drain(self, reason: str) -> None:
        """Begin nothing new until :meth:`resume`; what is queued goes on."""
        self.draining = reason

    def resume(self) -> None:
        """Go on."""
        self.paused, self.tripped, self.draining = "", False, ""

    def keep_state(self) -> None:
        """Enter in the journal whether things are paused: a restart shall not set loose what somebody has stopped."""
        self._journal.keep_state({"paused": self.paused, "tripped": "yes" * self.tripped, "draining": self.draining})

    @property
    def waiting(self) -> int:
        """Moves in the queue."""
        return len(self._queue)

    def waiting_for(self, finding_key: tuple[str, str, str]) -> int:
        """Moves of one finding in the queue."""
        return sum(action.finding == finding_key for action, _ in self._queue)

    def submit(self, actions: Iterable[Action], finding: int) -> list[Outcome]:
        """Set default layouts now, queue the moves. Advice passes by: it is for people."""
        outcomes = []
        for action in actions:
            if action.kind == "set-default-layout":
                outcomes.append(self._set_default(action, finding))
            elif action.kind == "migrate" and action.path not in self._queued:
                self._queue.append((action, finding))
                self._queued.add(action.path)
        return outcomes

    def objection(self, directory: str) -> str:
        """Why a directory's owner wants it left alone, or ""."""
        return self._guard.objection(directory)

    def drop(self, finding_key: tuple[str, str, str]) -> int:
        """Forget the moves of one finding; how many there were."""
        kept = deque((action, number) for action, number in self._queue if action.finding != finding_key)
        dropped = len(self._queue) - len(kept)
        self._queue = kept
        self._queued = {action.path for action, _ in kept}
        return dropped

    def pump(self, deadline: float) -> list[Outcome]:
        """Carry out waiting moves until the budget is spent, the queue empty, the time up or the breaker open."""
        outcomes: list[Outcome] = []
        while self._queue and not self.paused and self._clock.now() < deadline and not self._guard.hindrance():
            batch, gone = self._next_batch()
            outcomes += gone
            if not batch:
                break
            outcomes += self._move(batch)
        return outcomes

    def _next_batch(self) -> tuple[list[tuple[Action, int]], list[Outcome]]:
        """Moves the budget allows now, and those whose files are gone."""
        batch: list[tuple[Action, int]] = []
        gone: list[Outcome] = []
        later: deque[tuple[Action, int]] = deque()
        while self._queue and len(batch) < BATCH:
            action, finding = self._queue[0]
            if self._guard.spent(action, self._clock.now()):
                later.append(self._queue.popleft())  # its scope has reached its limits; others go on
                continue
            if self._is_gone(action.path):
                gone.append(self._counted(Outcome(action, "gone", "", 0)))
            elif self._budget.take(action.size_bytes, self._clock.now()):
                break
            else:
                self._guard.spend(action, self._clock.now())
                batch.append((action, finding))
            self._queue.popleft()
            self._queued.discard(action.path)
        self._queue.extendleft(reversed(later))
        return batch, gone

    def _is_gone(self, path: str) -> bool:
        """Whether the job has unlinked the file itself: no act, and nothing to spend budget on."""
        try:
            self._filesystem.status(path)
        except FileNotFoundError:
            return True
        except OSError:
            return False  # the mover will find out, and say
        return False

    def _move(self, batch: list[tuple[Action, int]]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        entries: dict[str, tuple[Action, int, Layout | None]] = {}
        for action, finding in batch:
            before, refusal = self._look(action)
            refusal = refusal or self._guard.refusal(action)
            entry = self._journal.intend(action, finding, before, self._clock.now(), self._dry_run)
            if refusal or self._dry_run:
                outcomes.append(self._ended(action, "refused" if refusal else "dry-run", refusal, entry, before))
            else:
                entries[action.path] = action, entry, before
        moves = [Move(a.path, a.layout, a.fid, a.size_bytes or None) for a, _, _ in entries.values()]
        for moved in self._mover.move(moves) if moves else ():
            action, entry, before = entries.pop(moved.move.path)
            if moved.result is Result.DONE:
                self.moved_bytes += action.size_bytes
            result = "gone" if moved.reason == "gone" else str(moved.result)
            outcomes.append(self._ended(action, result, moved.detail, entry, before))
            if trouble := self._breaker.note(str(moved.result), action.path):
                self.pause(self.paused or trouble, tripped=True)
        for action, entry, before in entries.values():  # the engine said nothing of them
            outcomes.append(self._ended(action, "failed", "the mover did not say how it went", entry, before))
        return outcomes

    def _look(self, action: Action) -> tuple[Layout | None, str]:
        """The layout now, and why the file should not be moved, seen at the last moment."""
        try:
            before = self._filesystem.layout(action.path)
            status = self._filesystem.status(action.path)
        except OSError as error:
            return None, error.strerror or str(error)
        if before is not None and same_shape(before, action.layout):
            return before, "it has this layout already"
        if status.is_directory:
            return before, "it is a directory now"
        end = action.layout.components[0].extent_end
        if end is not None and status.size_bytes > end:
            return before, f"it has grown to {status.size_bytes} bytes and no longer fits the flash component"
        return before, ""

    def _set_default(self, action: Action, finding: int) -> Outcome:
        before: Layout | None = None
        entry = 0
        try:
            before = self._filesystem.layout(action.directory)
            entry = self._journal.intend(action, finding, before, self._clock.now(), self._dry_run)
            result, detail = "dry-run" if self._dry_run else "done", ""
            refusal = self._guard.hindrance() or self._guard.refusal(action)
            if before is not None and same_shape(before, action.layout):
                refusal = "it has this layout already"
            if refusal:
                result, detail = "refused", refusal
            elif not self._dry_run:
                self._filesystem.set_default_layout(action.directory, action.layout)
        except OSError as error:
            result, detail = "failed", error.strerror or str(error)
        entry = entry or self._journal.intend(action, finding, before, self._clock.now(), self._dry_run)
        return self._ended(action, result, detail, entry, before)

    def _ended(self, action: Action, result: str, detail: str, entry: int, before: Layout | None) -> Outcome:
        self._journal.ended(entry, result, detail, self._clock.now())
        return self._counted(Outcome(action, result, detail, entry, before))

    def _counted(self, outcome: Outcome) -> Outcome:
        self.outcomes[outcome.action.kind, outcome.result] += 1
        self.last[outcome.action.kind, outcome.result] = self._clock.now()
        return outcome
