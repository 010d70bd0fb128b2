"""The queue of moves.

The queue examines each file again before it passes the move to the engine. It skips moves whose targets, pools or scope
have no budget left, so one busy target does not delay the others.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from threading import RLock

from lustre.errors import Stale
from lustre.fid import Fid
from lustre.filesystem import Filesystem
from lustre.layout.model import Layout, names_osts, same_shape
from tierd.act.background import BackgroundPace, Charge, is_background
from tierd.act.guard import ActGuard, JobCheck, NoJobCheck
from tierd.act.limits import Budget, LimitReached, MoveCost, Spent, cost_of_move
from tierd.act.movers.moves import Move
from tierd.acts import BY_ADMINISTRATOR, Outcome
from tierd.model import Action, StreamedTargets
from tierd.refusal import Reason, Refusal, of_error

BATCH_MOVES = 16
"""Moves in a batch. The engine may run a batch in one process."""
BATCH_MOVES_PER_THREAD = 4
"""Moves in a batch for each thread of a parallel engine. With fewer, threads idle at the end of a batch."""
BATCH_MOVES_REMOTE = 256
"""Moves in a batch for movers on other nodes. A smaller batch has only one or two files for each target and message."""
FindingKey = tuple[str, str, str]
MAX_SKIPPED = 256
"""Moves of one finding that a batch may skip, in search of moves whose targets have budget left. A choice: the check
of a move takes two requests to an MDT."""


@dataclass(frozen=True, slots=True)
class QueuedMove:
    """A move, the number of its finding, and the file as last examined."""

    action: Action
    finding: int
    before: Layout | None = None
    refusal: Refusal | None = None
    fid: Fid | None = None
    cost: MoveCost | None = None
    """None until the file has been examined."""
    spent: tuple[Spent, ...] = ()
    """What it took from the budgets of its scope and of all moves."""
    charge: Charge = field(default_factory=dict)
    """What it takes from streams, if it can wait."""

    @property
    def move(self) -> Move:
        """The move in the form that engines take."""
        action = self.action
        targets = frozenset(self.cost.targets) if self.cost is not None else frozenset()
        return Move(action.path, action.layout, action.fid or self.fid, action.size_bytes or None, targets=targets)


class MoveQueue:
    """Moves, as far as the budgets of pools and targets allow. Background moves come last.

    Findings take turns. The moves of one finding go in order of arrival.

    Any thread may add, drop and count; one thread at a time takes batches. No thread holds the lock during a call of
    the file system.
    """

    def __init__(self, filesystem: Filesystem, budget: Budget, guard: ActGuard, batch: int = BATCH_MOVES,
                 full_for: Callable[[MoveCost, Mapping[str, int]], Refusal | None] = lambda *_: None,
                 pace: BackgroundPace | None = None) -> None:
        """``batch`` is the maximum number of moves in a batch. ``pace`` spaces out background moves beside streams.

        ``full_for`` refuses a move while too many others are under way on its targets or pools. Its second argument
        has the number of moves from each target in the present batch.
        """
        self._chosen: Counter[str] = Counter()
        self._batch = batch
        self._full_for = full_for
        self._pace = pace or BackgroundPace()
        self._guard = guard
        self._filesystem = filesystem
        self._budget = budget
        self._lock = RLock()
        self._waiting: dict[FindingKey, deque[QueuedMove]] = {}
        """By finding, in the order of their turns."""
        self._examining: list[QueuedMove] = []
        """Moves whose files are being examined; they still count as waiting."""
        self._paths: set[str] = set()
        self._held: frozenset[FindingKey] = frozenset()
        self._held_directories: Container[str] = frozenset()
        self.jobs: JobCheck = NoJobCheck()
        self.closed: Mapping[str, str] = {}
        """Targets that take no files of moves, with the reasons."""
        self.delays: Mapping[FindingKey, Refusal] = {}
        """By finding, what delayed the first skipped move of the last batch."""

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._waiting.values())) + len(self._examining)

    def note_streams(self, streamed: StreamedTargets | None) -> None:
        """Background moves give way to the streams on these targets. None: they wait until these are known."""
        with self._lock:
            self._pace.streamed = streamed

    def add(self, action: Action, finding: int) -> bool:
        """Queue a move. False if a move of the same path is already queued."""
        with self._lock:
            if action.path in self._paths:
                return False
            self._waiting.setdefault(action.finding, deque()).append(QueuedMove(action, finding))
            self._paths.add(action.path)
            return True

    def has(self, path: str) -> bool:
        """Whether a move of this path is queued."""
        return path in self._paths

    @property
    def size_bytes(self) -> int:
        """Total size of the queued files."""
        return sum(each.action.size_bytes for each in self._all())

    @property
    def budget_left(self) -> tuple[float, float]:
        """Files and bytes that may be moved now, by the limit for all targets."""
        return self._budget.left

    @property
    def waits_for(self) -> str:
        """The limit that the first skipped move of the last batch had reached; "" for none."""
        return next((refusal.sentence for refusal in self.delays.values()), "")

    def of(self, finding_key: FindingKey) -> int:
        """Number of queued moves of one finding."""
        return sum(each.action.finding == finding_key for each in self._all())

    def by_finding(self) -> Counter[FindingKey]:
        """Number of queued moves by finding."""
        return Counter(each.action.finding for each in self._all())

    def _all(self) -> list[QueuedMove]:
        with self._lock:
            return [*self._examining, *chain.from_iterable(self._waiting.values())]

    def hold(self, finding_keys: Collection[FindingKey]) -> None:
        """Skip the moves of exactly these findings, until the next call."""
        self._held = frozenset(finding_keys)

    def hold_directories(self, directories: Container[str]) -> None:
        """Skip the moves in the directories that are in it at the time, but for those that were requested."""
        self._held_directories = directories

    def drop(self, finding_key: FindingKey, directory: str = "") -> list[Action]:
        """Drop the moves of one finding, or only its moves in one directory. Returns the dropped actions.

        This includes moves whose files are being examined. A move that the engine has begun is completed.
        """
        def wanted(each: QueuedMove) -> bool:
            return each.action.finding == finding_key and directory in {"", each.action.directory}

        with self._lock:
            dropped = [each.action for each in self._all() if wanted(each)]
            if finding_key in self._waiting:
                self._waiting[finding_key] = deque(each for each in self._waiting[finding_key] if not wanted(each))
            self._examining = [each for each in self._examining if not wanted(each)]
            self._paths -= {action.path for action in dropped}
        return dropped

    def next_batch(self, now: float, *, requests_only: bool = False, most: int = BATCH_MOVES_REMOTE,
                   enough: Callable[[], bool] = lambda: False) -> tuple[list[QueuedMove], list[tuple[Action, Outcome]]]:
        """The moves that the budget allows now, and the needless ones with their outcome: GONE or ALREADY.

        ``requests_only`` takes only moves that an administrator requested. ``most`` limits the batch further. When
        ``enough`` returns True, the batch ends with the moves examined so far.
        """
        batch: list[QueuedMove] = []
        needless: list[tuple[Action, Outcome]] = []
        skipped: dict[FindingKey, list[QueuedMove]] = {}
        delays: dict[FindingKey, Refusal] = {}
        self._chosen.clear()
        try:
            while (len(batch) < min(self._batch, most) and not ((batch or needless) and enough())
                   and (taken := self._take(skipped, requests_only)) is not None):
                finding = taken.action.finding
                if finding[0] not in BY_ADMINISTRATOR and taken.action.directory in self._held_directories:
                    skipped.setdefault(finding, []).append(taken)
                    continue
                each, why_not = self._checked(taken, now)
                if isinstance(why_not, LimitReached):
                    skipped.setdefault(each.action.finding, []).append(each)
                    delays.setdefault(each.action.finding, why_not.refusal)
                    if why_not.everything:
                        break
                    continue
                if why_not is not None:
                    needless.append((each.action, why_not))
                else:
                    batch.append(self._spend(each, now))
                    self._chosen.update(iter(each.cost.targets if each.cost is not None else ()))
                self._end_turn(each.action.finding)
        finally:
            batch, needless = self._settled(batch, needless, skipped, now)
            self.delays = delays
        return batch, needless

    def _take(self, skipped: Mapping[FindingKey, Sequence[QueuedMove]], requests_only: bool) -> QueuedMove | None:
        """Take a move for examination; None if none is left. Findings take turns, so none waits for another.

        The turn of a finding ends when its move is chosen, or needless.
        """
        with self._lock:
            ready = (key for key, moves in self._waiting.items()
                     if moves and key not in self._held and len(skipped.get(key, ())) < MAX_SKIPPED
                     and (key[0] in BY_ADMINISTRATOR or not requests_only))
            key = min(ready, key=is_background, default=None)
            if key is None:
                return None
            each = self._waiting[key].popleft()
            self._examining.append(each)
            return each

    def _end_turn(self, key: FindingKey) -> None:
        with self._lock:
            self._waiting[key] = self._waiting.pop(key)

    def _checked(self, each: QueuedMove, now: float) -> tuple[QueuedMove, LimitReached | Outcome | None]:
        """The move as examined, and why it is not chosen: a limit, or the outcome of a needless move."""
        if (wait := self._wait(each.cost, each.action, now)) is not None:
            return each, wait
        try:
            each = self._examined(each)
        except (FileNotFoundError, Stale):  # no act, and nothing to spend budget on
            return each, Outcome.GONE
        if each.before is not None and same_shape(each.before, each.action.layout):
            return each, Outcome.ALREADY
        return each, self._wait(each.cost, each.action, now)

    def _settled(self, batch: list[QueuedMove], needless: list[tuple[Action, Outcome]],
                 skipped: Mapping[FindingKey, Sequence[QueuedMove]], now: float
                 ) -> tuple[list[QueuedMove], list[tuple[Action, Outcome]]]:
        """The batch without moves that were dropped meanwhile. All others that were examined wait again, in order."""
        with self._lock:
            there = {id(each.action) for each in self._examining}
            for each in [each for each in batch if id(each.action) not in there]:
                self.give_back(each, now)
            batch = [each for each in batch if id(each.action) in there]
            needless = [(action, why) for action, why in needless if id(action) in there]
            done = {id(each.action) for each in batch} | {id(action) for action, _ in needless}
            seen = {id(each.action): each for moves in skipped.values() for each in moves}
            for each in reversed([each for each in self._examining if id(each.action) not in done]):
                self._waiting[each.action.finding].appendleft(seen.get(id(each.action), each))
            self._examining = []
            self._paths -= {each.action.path for each in batch} | {action.path for action, _ in needless}
            self._waiting = {key: moves for key, moves in self._waiting.items() if moves}
        return batch, needless

    def give_back(self, waiting: QueuedMove, now: float, share: float = 1.0) -> None:
        """Return the byte tokens of data that was not copied, so that a large busy file does not delay other moves."""
        for spent in waiting.spent:
            spent.give_back(share, now)
        with self._lock:
            self._pace.give_back(waiting.charge, share)

    def _wait(self, cost: MoveCost | None, action: Action, now: float) -> LimitReached | None:
        """The limit that the move has reached, by its last known cost."""
        cost = cost or MoveCost(action.size_bytes)
        if refusal := self._guard.limit_refusal(action, cost, now):  # other scopes continue
            return LimitReached(refusal, everything=False)
        if refusal := self._full_for(cost, self._chosen) or self.jobs.idle(action):
            return LimitReached(refusal, everything=False)
        with self._lock:
            refusal = self._pace.refusal(action.finding, cost, now)
        if refusal:
            return LimitReached(refusal, everything=False)
        return self._budget.why_not(cost, now)

    def _spend(self, waiting: QueuedMove, now: float) -> QueuedMove:
        cost = waiting.cost or MoveCost(waiting.action.size_bytes)
        spent = self._guard.spend(waiting.action, cost, now), self._budget.spend(cost, now)
        with self._lock:
            charge = self._pace.spend(waiting.action.finding, cost, now)
        return QueuedMove(waiting.action, waiting.finding, waiting.before, waiting.refusal, waiting.fid, waiting.cost,
                          spent, charge)

    def _examined(self, waiting: QueuedMove) -> QueuedMove:
        """The move with its file's present layout, cost and refusal. Raises FileNotFoundError if the file is gone."""
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
            refusal = Refusal(Reason.IS_DIRECTORY, "the path is a directory now")
        elif end is not None and status.size_bytes > end and not names_osts(action.layout):
            refusal = Refusal(Reason.GROWN, f"the file has grown to {status.size_bytes} bytes and no longer fits "
                              "the flash component")
        cost = cost_of_move(status.size_bytes, before, action.layout, self._filesystem.fsname)
        closed = next((target for target in cost.written if target in self.closed), "")
        if closed:
            refusal = refusal or Refusal(Reason.TARGET_CLOSED, f"{closed} {self.closed[closed]}")
        refusal = refusal or self.jobs.elsewhere(action) or self._guard.refusal(action)
        return QueuedMove(action, waiting.finding, before, refusal, status.fid, cost)
