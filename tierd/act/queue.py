"""The queue of moves.

The queue examines each file again before it passes the move to the engine. Moves whose targets, pools or scope have no
budget left wait in lanes, so one busy target does not delay the others.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter
from threading import RLock

from lustre.errors import Stale
from lustre.fid import Fid
from lustre.filesystem import Filesystem
from lustre.layout.model import (
    Layout,
    destination,
    in_sync,
    mirrors,
    names_osts,
    one_mirror,
    same_shape,
    with_mirror,
)
from tierd.act.guard import ActGuard, JobCheck, NoJobCheck
from tierd.act.limits import BackgroundPace, Budget, Charge, LimitReached, MoveCost, Spent, cost_of_move, is_background
from tierd.act.movers.moves import Move
from tierd.acts import BY_ADMINISTRATOR, Outcome
from tierd.model import Action, StreamedTargets
from tierd.refusal import Reason, Refusal, of_error
from tierd.text import quoted

BATCH_MOVES = 16
"""Moves in a batch. The engine may run a batch in one process."""
BATCH_MOVES_PER_THREAD = 4
"""Moves in a batch for each thread of a parallel engine. With fewer, threads idle at the end of a batch."""
BATCH_MOVES_REMOTE = 256
"""Moves in a batch for movers on other nodes. A smaller batch has only one or two files for each target and message."""
FindingKey = tuple[str, str, str]
MAX_SORTED = 256
"""Moves of one lane that a batch may take out of it into others, in search of moves whose targets have budget left. A
choice: the check of a move takes two requests to an MDT."""
Lane = tuple[Reason, str] | None
"""What delayed moves when they were last checked: the reason, and which limit or directory. None: nothing."""


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
    arrival: int = 0
    """Its place in the order of arrival."""
    own_mirrors: bool = False
    """Whether the file has mirrors that tierd gave it."""

    @property
    def move(self) -> Move:
        action = self.action
        targets = frozenset(self.cost.targets) if self.cost is not None else frozenset()
        return Move(action.path, action.layout, action.fid or self.fid, action.size_bytes or None, targets=targets,
                    own_mirrors=self.own_mirrors)


_arrival = attrgetter("arrival")


class MoveQueue:
    """Moves, as far as the budgets of pools and targets allow. Background moves come last.

    Findings take turns, and the moves of one finding go in order of arrival. Delayed ones stand in a lane for each
    limit. A batch asks once for each lane whether its limit still holds, so no number of them keeps it from others.

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
        self._waiting: dict[FindingKey, dict[Lane, deque[QueuedMove]]] = {}
        """By finding, in the order of their turns, and by what delayed them last."""
        self._examining: list[QueuedMove] = []
        """Moves that a batch has taken; they still count as waiting."""
        self._paths: set[str] = set()
        self._arrivals = 0
        self._held: frozenset[FindingKey] = frozenset()
        self._held_directories: Container[str] = frozenset()
        self.jobs: JobCheck = NoJobCheck()
        self.made_mirrors: Callable[[Fid, Layout], bool] = lambda *_: False
        """Whether tierd gave a file the mirrors of its layout."""
        self.closed: Mapping[str, str] = {}
        """Targets that take no files of moves, with the reasons."""
        self.delays: Mapping[FindingKey, Refusal] = {}
        """By finding, what delayed its first delayed move of the last batch."""

    def __len__(self) -> int:
        return len(self._paths)

    def note_streams(self, streamed: StreamedTargets | None) -> None:
        """Background moves give way to the streams on these targets. None: they wait until these are known."""
        with self._lock:
            self._pace.streamed = streamed

    def add(self, action: Action, finding: int) -> bool:
        """Queue a move. False if a move of the same path is already queued."""
        with self._lock:
            if action.path in self._paths:
                return False
            self._arrivals += 1
            self._enter(QueuedMove(action, finding, arrival=self._arrivals), None)
            self._paths.add(action.path)
            return True

    def _enter(self, each: QueuedMove, name: Lane) -> None:
        lane = self._waiting.setdefault(each.action.finding, {}).setdefault(name, deque())
        if lane and lane[0].arrival > each.arrival:
            lane.appendleft(each)
        elif lane and lane[-1].arrival > each.arrival:
            insort(lane, each, key=_arrival)
        else:
            lane.append(each)

    def has(self, path: str) -> bool:
        return path in self._paths

    @property
    def size_bytes(self) -> int:
        return sum(each.action.size_bytes for each in self._all())

    @property
    def budget_left(self) -> tuple[float, float]:
        """Files and bytes that may be moved now, by the limit for all targets."""
        return self._budget.left

    @property
    def waits_for(self) -> str:
        """The limit that the first delayed move of the last batch had reached; "" for none."""
        return next((refusal.sentence for refusal in self.delays.values()), "")

    def of(self, finding_key: FindingKey) -> int:
        return self.by_finding()[finding_key]

    def by_finding(self) -> Counter[FindingKey]:
        with self._lock:
            found = Counter({key: sum(map(len, lanes.values())) for key, lanes in self._waiting.items()})
            found.update(each.action.finding for each in self._examining)
            return found

    def _all(self) -> list[QueuedMove]:
        with self._lock:
            return [*self._examining, *(each for lanes in self._waiting.values() for each in chain(*lanes.values()))]

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
        with self._lock:
            taken = [each for each in self._examining if each.action.finding == finding_key]
            every = [*taken, *chain(*self._waiting.pop(finding_key, {}).values())]
            left = {each.arrival for each in every if directory not in {"", each.action.directory}}
            self._examining = [each for each in self._examining
                               if each.action.finding != finding_key or each.arrival in left]
            for each in every[len(taken):]:
                if each.arrival in left:
                    self._enter(each, None)
            dropped = [each.action for each in sorted(every, key=_arrival) if each.arrival not in left]
            self._paths -= {action.path for action in dropped}
        return dropped

    def next_batch(self, now: float, *, requests_only: bool = False, most: int = BATCH_MOVES_REMOTE,
                   enough: Callable[[], bool] = lambda: False) -> tuple[list[QueuedMove], list[tuple[Action, Outcome]]]:
        """The moves that the budget allows now, and the needless ones with their outcome: GONE or ALREADY.

        ``requests_only`` takes only moves that an administrator requested. ``most`` limits the batch further. When
        ``enough`` returns True, the batch ends with the moves examined so far.
        """
        batch: list[QueuedMove] = []
        needless: list[tuple[QueuedMove, Outcome]] = []
        delays: dict[FindingKey, Refusal] = {}
        sorted_out: Counter[tuple[FindingKey, Lane]] = Counter()
        self._chosen.clear()
        try:
            while (len(batch) < min(self._batch, most) and not ((batch or needless) and enough())
                   and (taken := self._take(sorted_out, requests_only)) is not None):
                each, why_not = self._checked(taken[0], now)
                if isinstance(why_not, LimitReached):
                    delays.setdefault(each.action.finding, why_not.refusal)
                    self._delay(each, taken[1], why_not.refusal, sorted_out)
                    if why_not.everything:
                        break
                    continue
                if why_not is not None:
                    needless.append((each, why_not))
                else:
                    batch.append(self._spend(each, now))
                    self._chosen.update(iter(each.cost.targets if each.cost is not None else ()))
                self._end_turn(each.action.finding)
        except BaseException:
            self._end_batch(again=True)
            for each in batch:
                self.give_back(each, now)
            raise
        self.delays, kept = delays, self._end_batch()
        for each in batch:
            if each.arrival not in kept:
                self.give_back(each, now)
        return ([each for each in batch if each.arrival in kept],
                [(each.action, why) for each, why in needless if each.arrival in kept])

    def _take(self, sorted_out: Mapping[tuple[FindingKey, Lane], int], requests_only: bool
              ) -> tuple[QueuedMove, Lane] | None:
        """Take the next move that no limit is known to delay, and its lane; None if all moves wait."""
        with self._lock:
            ready = ((key, open_lanes) for key, lanes in self._waiting.items()
                     if key not in self._held and (key[0] in BY_ADMINISTRATOR or not requests_only)
                     and (open_lanes := [name for name in lanes if sorted_out[key, name] < MAX_SORTED]))
            found = min(ready, key=lambda each: is_background(each[0]), default=None)
            if found is None:
                return None
            lanes = self._waiting[found[0]]
            name = min(found[1], key=lambda name: lanes[name][0].arrival)
            each = lanes[name].popleft()
            if not lanes[name]:
                del lanes[name]
            self._examining.append(each)
            return each, name

    def _delay(self, each: QueuedMove, name: Lane, why: Refusal, sorted_out: Counter[tuple[FindingKey, Lane]]) -> None:
        """Put a move into the lane of what delays it, which waits until the next batch."""
        key, limit = each.action.finding, (why.reason, why.what)
        sorted_out[key, name] += 1
        sorted_out[key, limit] = MAX_SORTED
        with self._lock:
            left = [other for other in self._examining if other.arrival != each.arrival]
            if len(left) < len(self._examining):  # it was not dropped meanwhile
                self._examining = left
                self._enter(each, limit)

    def _end_turn(self, key: FindingKey) -> None:
        with self._lock:
            if lanes := self._waiting.pop(key, None):
                self._waiting[key] = lanes

    def _end_batch(self, *, again: bool = False) -> set[int]:
        """Returns the arrivals of the moves that were taken, but for those that were dropped meanwhile."""
        with self._lock:
            taken, self._examining = self._examining, []
            for each in taken:
                if again:
                    self._enter(each, None)
                else:
                    self._paths.discard(each.action.path)
            return {each.arrival for each in taken}

    def _checked(self, each: QueuedMove, now: float) -> tuple[QueuedMove, LimitReached | Outcome | None]:
        """The move as examined, and why it is not chosen: a limit, or the outcome of a needless move."""
        if (wait := self._wait(each.cost, each.action, now)) is not None:
            return each, wait
        try:
            each = self._examined(each)
        except (FileNotFoundError, Stale):  # no act, and nothing to spend budget on
            return each, Outcome.GONE
        if each.before is not None and same_shape(each.before, each.action.layout) and in_sync(each.before):
            return each, Outcome.ALREADY
        return each, self._wait(each.cost, each.action, now)

    def give_back(self, waiting: QueuedMove, now: float, share: float = 1.0) -> None:
        """Return the byte tokens of data that was not copied, so that a large busy file does not delay other moves."""
        for spent in waiting.spent:
            spent.give_back(share, now)
        with self._lock:
            self._pace.give_back(waiting.charge, share)

    def _wait(self, cost: MoveCost | None, action: Action, now: float) -> LimitReached | None:
        """The limit that the move has reached, by its last known cost."""
        cost = cost or MoveCost(action.size_bytes)
        refusal = (self._directory_refusal(action) or self._guard.limit_refusal(action, cost, now)
                   or self._full_for(cost, self._chosen) or self.jobs.idle(action))
        if refusal is None:
            with self._lock:
                refusal = self._pace.refusal(action.finding, cost, now)
        return LimitReached(refusal, everything=False) if refusal else self._budget.why_not(cost, now)

    def _directory_refusal(self, action: Action) -> Refusal | None:
        if action.finding[0] in BY_ADMINISTRATOR or action.directory not in self._held_directories:
            return None
        return Refusal(Reason.RECORDS_MISSING, "changelog records are missing: no file moves until it is listed again"
                       ).about(quoted(action.directory))

    def _spend(self, waiting: QueuedMove, now: float) -> QueuedMove:
        cost = waiting.cost or MoveCost(waiting.action.size_bytes)
        spent = self._guard.spend(waiting.action, cost, now), self._budget.spend(cost, now)
        with self._lock:
            charge = self._pace.spend(waiting.action.finding, cost, now)
        return replace(waiting, spent=spent, charge=charge)

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
        layout, cost = planned(action.layout, before, status.size_bytes, self._filesystem.fsname)
        mirrored = before is not None and before.mirror_count > 1
        own_mirrors = before is not None and mirrored and self.made_mirrors(status.fid, before)
        end = destination(layout).extent_end
        if status.is_directory:
            refusal = Refusal(Reason.IS_DIRECTORY, "the path is a directory now")
        elif mirrored and not own_mirrors:
            refusal = Refusal(Reason.MIRRORED, "the file has mirrors that tierd did not make")
        elif (end is not None and status.size_bytes > end and not names_osts(action.layout) and not own_mirrors
              and action.undoes is None):
            refusal = Refusal(Reason.GROWN, f"the file has grown to {status.size_bytes} bytes and no longer fits "
                              "the flash component")
        closed = next((target for target in cost.written if target in self.closed), "")
        if closed:
            refusal = refusal or Refusal(Reason.TARGET_CLOSED, f"{closed} {self.closed[closed]}")
        refusal = refusal or self.jobs.elsewhere(action) or self._guard.refusal(action)
        return replace(waiting, action=replace(action, layout=layout), before=before, refusal=refusal, fid=status.fid,
                       cost=cost, own_mirrors=own_mirrors)


def planned(wanted: Layout, before: Layout | None, size_bytes: int, fsname: str) -> tuple[Layout, MoveCost]:
    """The whole layout that a file shall get, with mirrors that it keeps, and the cost of the copy.

    ``wanted`` may be one mirror alone, to be added. Where mirrors in sync are given up, nothing is copied.
    """
    copied = one_mirror(mirrors(wanted)[-1]) if wanted.mirror_count > 1 else wanted
    if before is not None and before.mirror_count > 1 and in_sync(before):
        size_bytes = 0
    cost = cost_of_move(size_bytes, before, copied, fsname)
    if before is None or copied is wanted or same_shape(before, copied):
        return copied, cost
    return with_mirror(before, wanted), cost
