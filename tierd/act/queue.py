"""Moves that wait for their turn.

The queue reads a file again when its turn comes. It passes over moves whose targets, pools or scope have no budget
left, so one busy target does not hold up the others.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from threading import RLock

from lustre.errors import Stale
from lustre.fid import Fid
from lustre.filesystem import Filesystem
from lustre.layout.model import Layout, same_shape
from tierd.act.guard import REQUEST, ActGuard
from tierd.act.limits import Budget, LimitReached, MoveCost, cost_of_move
from tierd.act.movers.moves import Move
from tierd.acts import Outcome
from tierd.model import Action
from tierd.refusal import Reason, Refusal, of_error

BATCH_MOVES = 16
"""Moves handed to the engine at a time: it may do them in one process."""
BATCH_MOVES_PER_THREAD = 4
"""The same for each thread of an engine that has several: with fewer they wait for each other at the end."""
FindingKey = tuple[str, str, str]
MAX_SKIPPED = 256
"""Moves that are looked past for others whose targets have budget left."""


@dataclass(frozen=True, slots=True)
class QueuedMove:
    """A move, the finding it belongs to, and what was seen of the file last."""

    action: Action
    finding: int
    before: Layout | None = None
    refusal: Refusal | None = None
    fid: Fid | None = None
    cost: MoveCost | None = None
    """None until it has been looked at."""

    @property
    def move(self) -> Move:
        """What the engine is asked for."""
        action = self.action
        targets = frozenset(self.cost.targets) if self.cost is not None else frozenset()
        return Move(action.path, action.layout, action.fid or self.fid, action.size_bytes or None, targets=targets)


class MoveQueue:
    """First come, first served, as far as the budget of each pool and target goes.

    Any thread may add, drop and count; one thread at a time takes batches out. The lock is never held while the file
    system is asked about a file.
    """

    def __init__(self, filesystem: Filesystem, budget: Budget, guard: ActGuard, batch: int = BATCH_MOVES) -> None:
        """``batch``: moves handed to the engine at a time."""
        self._batch = batch
        self._guard = guard
        self._filesystem = filesystem
        self._budget = budget
        self._lock = RLock()
        self._waiting: deque[QueuedMove] = deque()
        self._in_hand: list[QueuedMove] = []
        """Taken out of the queue to be looked at; still counted as waiting."""
        self._paths: set[str] = set()
        self._held: frozenset[FindingKey] = frozenset()
        self.waits_for = ""
        """What the first of those that could not go waited for, when it was last asked."""

    def __len__(self) -> int:
        return len(self._waiting) + len(self._in_hand)

    def add(self, action: Action, finding: int) -> bool:
        """Let it wait, unless a move of that path does already: then False."""
        with self._lock:
            if action.path in self._paths:
                return False
            self._waiting.append(QueuedMove(action, finding))
            self._paths.add(action.path)
            return True

    def has(self, path: str) -> bool:
        """Whether a move of that path waits."""
        return path in self._paths

    @property
    def size_bytes(self) -> int:
        """Of the files that wait."""
        return sum(each.action.size_bytes for each in self._all())

    @property
    def budget_left(self) -> tuple[float, float]:
        """Files and bytes that may be moved at once, whatever their targets."""
        return self._budget.left

    def of(self, finding_key: FindingKey) -> int:
        """How many moves of one finding wait."""
        return sum(each.action.finding == finding_key for each in self._all())

    def by_finding(self) -> Counter[FindingKey]:
        """How many moves of each finding wait."""
        return Counter(each.action.finding for each in self._all())

    def _all(self) -> list[QueuedMove]:
        with self._lock:
            return [*self._in_hand, *self._waiting]

    def hold(self, finding_keys: Collection[FindingKey]) -> None:
        """Pass over the moves of these findings, and of no others, until it is called again."""
        self._held = frozenset(finding_keys)

    def drop(self, finding_key: FindingKey, directory: str = "") -> list[Action]:
        """Forget the moves of one finding, or only those in one directory; what was forgotten.

        A move that is being looked at is among them. One that the engine has begun comes to its end.
        """
        def wanted(each: QueuedMove) -> bool:
            return each.action.finding == finding_key and directory in {"", each.action.directory}

        with self._lock:
            dropped = [each.action for each in self._all() if wanted(each)]
            self._waiting = deque(each for each in self._waiting if not wanted(each))
            self._in_hand = [each for each in self._in_hand if not wanted(each)]
            self._paths -= {action.path for action in dropped}
        return dropped

    def next_batch(self, now: float, *, requests_only: bool = False,
                   enough: Callable[[], bool] = lambda: False) -> tuple[list[QueuedMove], list[tuple[Action, Outcome]]]:
        """Moves the budget allows now; and those that need not be made, with GONE or ALREADY as their outcome.

        ``requests_only``: only what a person asked for.
        Once ``enough`` says so, what was looked at until then has to do.
        """
        batch: list[QueuedMove] = []
        needless: list[tuple[Action, Outcome]] = []
        passed: list[QueuedMove] = []
        waits_for = ""
        try:
            while (len(batch) < self._batch and len(passed) < MAX_SKIPPED and not (batch and enough())
                   and (each := self._take()) is not None):
                kind = each.action.finding[0]
                if (requests_only and kind != REQUEST) or each.action.finding in self._held:
                    passed.append(each)
                    continue
                try:
                    wait = self._wait(each.cost, each.action, now)
                    if wait is None:
                        each = self._looked_at(each)
                        wait = self._wait(each.cost, each.action, now)
                except (FileNotFoundError, Stale):  # no act, and nothing to spend budget on
                    needless.append((each.action, Outcome.GONE))
                    continue
                if each.before is not None and same_shape(each.before, each.action.layout):
                    needless.append((each.action, Outcome.ALREADY))
                    continue
                if wait is not None:
                    passed.append(each)
                    waits_for = waits_for or wait.refusal.sentence
                    if wait.everything:
                        break
                    continue
                self._spend(each, now)
                batch.append(each)
        finally:  # what was dropped meanwhile stays dropped; what a failure left unseen waits again
            with self._lock:
                there = {id(each.action) for each in self._in_hand}
                done = {id(each.action) for each in batch} | {id(action) for action, _ in needless}
                for each in [each for each in batch if id(each.action) not in there]:
                    self.give_back(each, now)
                batch = [each for each in batch if id(each.action) in there]
                needless = [(action, why) for action, why in needless if id(action) in there]
                seen = {id(each.action): each for each in passed}
                self._waiting.extendleft(reversed([seen.get(id(each.action), each) for each in self._in_hand
                                                   if id(each.action) not in done]))
                self._in_hand = []
                self._paths -= {each.action.path for each in batch} | {action.path for action, _ in needless}
                self.waits_for = waits_for
        return batch, needless

    def _take(self) -> QueuedMove | None:
        """The first that waits, which is in hand from now on; None where none does."""
        with self._lock:
            if not self._waiting:
                return None
            each = self._waiting.popleft()
            self._in_hand.append(each)
            return each

    def give_back(self, waiting: QueuedMove, now: float) -> None:
        """Return the bytes of a move that was refused: one large file that stays where it is holds up no others."""
        cost = waiting.cost or MoveCost(waiting.action.size_bytes)
        self._guard.give_back(waiting.action, cost, now)
        self._budget.give_back(cost, now)

    def _wait(self, cost: MoveCost | None, action: Action, now: float) -> LimitReached | None:
        """Why it has to wait, as far as can be told without looking at it again."""
        cost = cost or MoveCost(action.size_bytes)
        if refusal := self._guard.limit_refusal(action, cost, now):  # other scopes continue
            return LimitReached(refusal, everything=False)
        return self._budget.why_not(cost, now)

    def _spend(self, waiting: QueuedMove, now: float) -> None:
        cost = waiting.cost or MoveCost(waiting.action.size_bytes)
        self._guard.spend(waiting.action, cost, now)
        self._budget.take(cost, now)

    def _looked_at(self, waiting: QueuedMove) -> QueuedMove:
        """The file now: its layout, its cost, why it should not be moved. Raises FileNotFoundError when it is gone."""
        action = waiting.action
        try:
            status = self._filesystem.status(action.path)
            before = self._filesystem.layout(action.path)
        except (FileNotFoundError, Stale):
            raise
        except OSError as error:
            return replace(waiting, refusal=of_error(error), cost=MoveCost(action.size_bytes))
        refusal: Refusal | None = None
        end = action.layout.components[0].extent_end
        if status.is_directory:
            refusal = Refusal(Reason.IS_DIRECTORY, "it is a directory now")
        elif end is not None and status.size_bytes > end:
            refusal = Refusal(Reason.GROWN, f"it has grown to {status.size_bytes} bytes and no longer fits the flash "
                              "component")
        refusal = refusal or self._guard.refusal(action)
        cost = cost_of_move(status.size_bytes, before, action.layout, self._filesystem.fsname)
        return replace(waiting, before=before, refusal=refusal, fid=status.fid, cost=cost)
