"""The queue of moves.

The queue examines each file again before it passes the move to the engine. Moves whose targets, pools or scope have no
budget left wait in lanes, so one busy target does not delay the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import chain
from threading import RLock

from lustre.errors import Stale
from lustre.fid import Fid
from lustre.filesystem import FileStatus, Filesystem
from lustre.layout.model import Layout, destination, in_sync, mirrors, names_osts, one_mirror, same_shape, with_mirror
from tierd.act.guard import ActGuard, JobCheck
from tierd.act.journal.entry import StoredMove
from tierd.act.limits import BackgroundPace, Budget, GiveBack, MoveCost, cost_of_move, is_background
from tierd.act.movers.moves import Move
from tierd.acts import BY_ADMINISTRATOR, Outcome
from tierd.model import Action, FindingKey, StreamedTargets
from tierd.policies.registry import policy_of
from tierd.refusal import Reason, Refusal, of_error
from tierd.text import quoted

BATCH_MOVES = 16
"""Moves in a batch. The engine may run a batch in one process."""
BATCH_MOVES_PER_THREAD = 4
"""Moves in a batch for each thread of a parallel engine. With fewer, threads idle at the end of a batch."""
BATCH_MOVES_REMOTE = 256
"""Moves in a batch for movers on other nodes. A smaller batch has only one or two files for each target and message."""
MAX_SORTED = 256
"""Moves of one lane that a batch may take out of it into others, in search of moves whose targets have budget left. A
choice: the check of a move takes three requests to an MDT."""
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
    spent: tuple[GiveBack, ...] = ()
    """Return what it took from the budgets of its scope and of all moves, and from streams if it can wait."""
    arrival: int = 0
    """Its place in the order of arrival."""
    own_mirrors: bool = False
    """Whether the file has mirrors that tierd gave it."""
    is_stored: bool = False
    """Whether an earlier run queued it, so that its layout names no more than the pool."""

    def __lt__(self, other: QueuedMove) -> bool:
        return self.arrival < other.arrival  # for the heaps of the lanes

    @property
    def move(self) -> Move:
        action = self.action
        ordered = action.finding[0] in BY_ADMINISTRATOR or action.undoes is not None
        return Move(action.path, action.layout, action.fid or self.fid, action.size_bytes or None, before=self.before,
                    targets=frozenset(self.cost.targets if self.cost is not None else ()), by_request=ordered,
                    own_mirrors=self.own_mirrors)


@dataclass(eq=False)
class MoveQueue:
    """Moves, as far as the budgets of pools and targets allow. Background moves come last.

    Findings take turns, and the moves of one finding go in order of arrival. Delayed ones stand in a lane for each
    limit. A batch asks once for each lane whether its limit still holds, so no number of them keeps it from others.

    Any thread may add, drop and count; one thread at a time takes batches. No thread holds the lock during a call of
    the file system.
    """

    filesystem: Filesystem
    budget: Budget
    guard: ActGuard
    batch: int = BATCH_MOVES
    """Maximum number of moves in a batch."""
    full_for: Callable[[MoveCost, Mapping[str, int]], Refusal | None] = lambda *_: None
    """Refuses a move while too many others are under way on its targets or pools. Its second argument has the number of
    moves from each target in the present batch."""
    pace: BackgroundPace = field(default_factory=BackgroundPace)
    """Spaces out background moves among streams."""
    jobs: JobCheck = field(default_factory=JobCheck)
    made_mirrors: Callable[[Fid, Layout], bool] = lambda *_: False
    """Whether tierd gave a file the mirrors of its layout."""
    closed: Mapping[str, str] = field(default_factory=dict)
    """Targets that take no files of moves, with the reasons."""
    planned_again: Callable[[Action, FileStatus, Layout | None], Action | Refusal] = lambda action, *_: action
    """Plans a move of an earlier run as it would be planned now, by the file and its present layout."""
    delays: Mapping[FindingKey, Refusal] = field(default_factory=dict, init=False)
    """By finding, what delayed its first delayed move of the last batch."""
    earlier: dict[str, StoredMove] = field(default_factory=dict)
    """Moves of an earlier run by path, oldest first. They are counted, and wait for :meth:`requeue`."""

    def __post_init__(self) -> None:
        self._lock = RLock()
        self._moves: dict[str, QueuedMove] = {}
        """All moves by path, also those that a batch is examining."""
        self._counts: Counter[FindingKey] = Counter()
        self._waiting: dict[FindingKey, dict[Lane, list[QueuedMove]]] = {}
        """By finding, in the order of their turns, and by what delayed them last: heaps in order of arrival."""
        self._arrivals = 0
        self._held: frozenset[FindingKey] = frozenset()
        self._chosen: Counter[str] = Counter()
        """Number of moves from each target in the present batch."""

    def __len__(self) -> int:
        return len(self._moves) + len(self.earlier)

    def note_streams(self, streamed: StreamedTargets | None) -> None:
        """Background moves give way to the streams on these targets. None: they wait until these are known."""
        with self._lock:
            self.pace.streamed = streamed

    def add(self, action: Action, finding: int, *, is_stored: bool = False) -> bool:
        """Queue a move. False if a move of the same path is already queued; one of an earlier run gives way to it."""
        with self._lock:
            if self.has(action.path):
                return False
            self.earlier.pop(action.path, None)
            self._arrivals += 1
            added = self._moves[action.path] = QueuedMove(action, finding, arrival=self._arrivals, is_stored=is_stored)
            self._counts[action.finding] += 1
            self._enter(added, None)
            return True

    def requeue(self, refused: Container[str]) -> list[str]:
        """Queue the moves of an earlier run but for these files. Returns the files of those that were not queued."""
        with self._lock:
            moves = list(self.earlier.values())
            for move in moves:
                if move.path not in refused:
                    self.add(move.action, move.finding, is_stored=True)
            left, self.earlier = list(self.earlier), {}
            return left

    def _enter(self, each: QueuedMove, name: Lane) -> None:
        if self._is_queued(each):  # else it was dropped while it was examined
            heappush(self._waiting.setdefault(each.action.finding, {}).setdefault(name, []), each)

    def has(self, path: str) -> bool:
        """Whether a move of this file is queued. One of an earlier run is not before :meth:`requeue`."""
        return path in self._moves

    def queued_refusal(self, path: str, _: object) -> Refusal | None:
        """Refuses an order for a file whose move is queued."""
        if not self.has(path):
            return None
        return Refusal(Reason.OTHER_MOVER, "tierd moves the file for another finding or order already")

    @property
    def size_bytes(self) -> int:
        with self._lock:
            return sum(each.action.size_bytes for each in self._moves.values())

    @property
    def waits_for(self) -> str:
        """The limit that the first delayed move of the last batch had reached; "" for none."""
        return next((refusal.sentence for refusal in self.delays.values()), "") if self._moves else ""

    @property
    def gives_way(self) -> bool:
        """Whether moves wait for streams, and none for anything else."""
        return bool(self._moves) and {refusal.reason for refusal in self.delays.values()} == {Reason.STREAMS}

    def delay_of(self, finding_key: FindingKey) -> Refusal | None:
        """What delays the moves of one finding; None if nothing does, or it has none."""
        return self.delays.get(finding_key) if self.waiting_for(finding_key) else None

    def waiting_for(self, finding_key: FindingKey) -> int:
        """Number of moves of one finding."""
        return self._counts[finding_key]

    def by_finding(self) -> Counter[FindingKey]:
        with self._lock:
            return self._counts.copy()

    def hold(self, finding_keys: Collection[FindingKey]) -> None:
        """Skip the moves of exactly these findings, until the next call."""
        self._held = frozenset(finding_keys)

    def drop(self, chosen: Callable[[QueuedMove | StoredMove], bool]) -> list[Action]:
        """Drop these moves. Returns the dropped actions. This includes moves whose files are being examined. A move
        that the engine has begun is completed.
        """
        with self._lock:
            dropped = [each for each in self._moves.values() if chosen(each)]
            for each in dropped:
                self._remove(each)
            # a heap loses nothing from its middle: the lanes are made again without those that were dropped
            for key in {each.action.finding for each in dropped}:
                for each in chain(*self._waiting.pop(key, {}).values()):
                    self._enter(each, None)
            stored = [move for move in self.earlier.values() if chosen(move)]
            for move in stored:
                del self.earlier[move.path]
        return [each.action for each in dropped] + [move.action for move in stored]

    def _is_queued(self, each: QueuedMove) -> bool:
        known = self._moves.get(each.action.path)
        # another move of the path may have been queued since
        return known is not None and known.arrival == each.arrival

    def _remove(self, each: QueuedMove) -> bool:
        if not self._is_queued(each):
            return False
        key = each.action.finding
        del self._moves[each.action.path]
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]
        return True

    def next_batch(self, now: float, *, requests_only: bool = False, most: int = BATCH_MOVES_REMOTE,
                   enough: Callable[[], bool] = lambda: False
                   ) -> tuple[list[QueuedMove], list[tuple[QueuedMove, Outcome]]]:
        """The moves that the budget allows now, and the needless ones with their outcome: GONE or ALREADY.

        ``requests_only`` takes only moves that an administrator requested. ``most`` limits the batch further. When
        ``enough`` returns True, the batch ends with the moves examined so far.
        """
        batch: list[QueuedMove] = []
        needless: list[tuple[QueuedMove, Outcome]] = []
        delays: dict[FindingKey, Refusal] = {}
        sorted_out: Counter[tuple[FindingKey, Lane]] = Counter()
        examined: list[QueuedMove] = []
        self._chosen.clear()
        try:
            # at least one, however long it took: else a client under load would never move a file
            while (len(batch) < min(self.batch, most) and not ((batch or needless) and enough())
                   and (found := self._take(sorted_out, requests_only)) is not None):
                taken, lane = found
                examined.append(taken)
                each, why_not = self._checked(taken, now)
                if isinstance(why_not, Refusal):
                    examined.pop()  # it goes back into a lane
                    delays.setdefault(each.action.finding, why_not)
                    self._delay(each, lane, why_not, sorted_out)
                    if why_not.reason is Reason.LIMIT and not why_not.what:
                        break  # the limit of all moves
                    continue
                if why_not is not None:
                    needless.append((each, why_not))
                else:
                    batch.append(self._spend(each, now))
                    self._chosen.update(iter(each.cost.targets if each.cost is not None else ()))
                self._end_turn(each.action.finding)
        # whatever failed, neither the moves nor their budget may be lost
        except BaseException:
            with self._lock:
                for each in examined:
                    self._enter(each, None)
            for each in batch:
                self.give_back(each, now)
            raise
        # at the end and at once: a drop during the calls above counts, and the engine gets none of its moves
        with self._lock:
            self.delays, kept = delays, {each.arrival for each in examined if self._remove(each)}
        for each in batch:
            if each.arrival not in kept:  # it was dropped meanwhile
                self.give_back(each, now)
        return ([each for each in batch if each.arrival in kept],
                [(each, why) for each, why in needless if each.arrival in kept])

    def _take(self, sorted_out: Mapping[tuple[FindingKey, Lane], int], requests_only: bool
              ) -> tuple[QueuedMove, Lane] | None:
        """Take the next move that no limit is known to delay, and its lane; None if all moves wait."""
        with self._lock:
            ready = ((key, open_lanes) for key, lanes in self._waiting.items()
                     if key not in self._held and (key[0] in BY_ADMINISTRATOR or not requests_only)
                     and (open_lanes := [name for name in lanes if sorted_out[key, name] < MAX_SORTED]))
            # the order of turns decides among equals: min() takes the first
            found = min(ready, key=lambda each: is_background(each[0]), default=None)
            if found is None:
                return None
            lanes = self._waiting[found[0]]
            name = min(found[1], key=lambda name: lanes[name][0])  # the oldest of all
            each = heappop(lanes[name])
            if not lanes[name]:
                del lanes[name]
            return each, name

    def _delay(self, each: QueuedMove, name: Lane, why: Refusal, sorted_out: Counter[tuple[FindingKey, Lane]]) -> None:
        key, limit = each.action.finding, (why.reason, why.what)
        # a lane that gave many useless moves is left alone in this batch
        sorted_out[key, name] += 1
        sorted_out[key, limit] = MAX_SORTED  # its limit is reached: no more are taken from it
        with self._lock:
            self._enter(each, limit)

    def _end_turn(self, key: FindingKey) -> None:
        with self._lock:
            # to the end: a dictionary keeps the order of insertion
            if lanes := self._waiting.pop(key, None):
                self._waiting[key] = lanes

    def _checked(self, each: QueuedMove, now: float) -> tuple[QueuedMove, Refusal | Outcome | None]:
        """The move as examined, and why it is not chosen: a limit, or the outcome of a needless move."""
        # by the last known cost, before three requests to an MDT
        if (wait := self._wait(each.cost, each.action, now)) is not None:
            return each, wait
        try:
            each = self._examined(each)
        except (FileNotFoundError, Stale):  # no act, no budget; but after an unmount everything looks removed
            return each, self.guard.blocked_by() or Outcome.GONE
        if each.before is not None and in_sync(each.before) and (
                same_shape(each.before, each.action.layout) or has_more_stripes(each.before, each.action)):
            return each, Outcome.ALREADY
        if each.refusal is not None and each.refusal.reason is Reason.HAS_LAYOUT:
            return each, Outcome.ALREADY
        # again: only now are its pools, targets and size known
        return each, self._wait(each.cost, each.action, now)

    def give_back(self, waiting: QueuedMove, now: float, share: float = 1.0) -> None:
        """Return the byte tokens of data that was not copied, so that a large busy file does not delay other moves."""
        with self._lock:  # the buckets have none of their own
            for give_back in waiting.spent:
                give_back(share, now)

    def _wait(self, cost: MoveCost | None, action: Action, now: float) -> Refusal | None:
        cost = cost or MoveCost(action.size_bytes)
        refusal = self.full_for(cost, self._chosen) or self.jobs.idle(action)
        if refusal is None:
            with self._lock:
                refusal = self.pace.refusal(action.finding, cost, now)
        return refusal or next(filter(None, (budget.why_not(cost, now) for budget in self._budgets(action))), None)

    def _budgets(self, action: Action) -> list[Budget]:
        own = self.guard.budget_of(action)
        return [self.budget] if own is None else [own, self.budget]

    def _spend(self, waiting: QueuedMove, now: float) -> QueuedMove:
        cost = waiting.cost or MoveCost(waiting.action.size_bytes)
        with self._lock:
            return replace(waiting, spent=tuple(chain(
                *(budget.spend(cost, now) for budget in self._budgets(waiting.action)),
                self.pace.spend(waiting.action.finding, cost, now))))

    def _examined(self, waiting: QueuedMove) -> QueuedMove:
        action, refusal = waiting.action, None
        try:
            status = self.filesystem.status(action.path)
            before = self.filesystem.layout(action.path)
            if waiting.is_stored:
                made = self.planned_again(action, status, before)
                action, refusal = (action, made) if isinstance(made, Refusal) else (made, None)
            names = [self.filesystem.path_of(status.fid)]
            # an MDT knows about a hundred, and then answers with the first one
            while (len(names) < status.link_count
                   and (name := self.filesystem.path_of(status.fid, len(names))) not in names):
                names.append(name)
        except (FileNotFoundError, Stale):
            raise
        except OSError as error:
            return replace(waiting, refusal=of_error(error), cost=MoveCost(action.size_bytes))
        layout, cost = planned(action.layout, before, status.size_bytes, self.filesystem.fsname)
        mirrored = before is not None and before.mirror_count > 1
        own_mirrors = before is not None and mirrored and self.made_mirrors(status.fid, before)
        end = destination(layout).extent_end
        if status.is_directory:
            refusal = Refusal(Reason.IS_DIRECTORY, "the path is a directory now")
        elif mirrored and not own_mirrors:
            refusal = Refusal(Reason.MIRRORED, "the file has mirrors that tierd did not make")
        # a flash component that is smaller than the file is worse than none; the others are no such components
        elif (end is not None and status.size_bytes > end and not names_osts(action.layout) and not own_mirrors
              and action.undoes is None):
            refusal = Refusal(Reason.GROWN, f"the file has grown to {status.size_bytes} bytes and no longer fits "
                              "the flash component")
        if closed := next((target for target in cost.written if target in self.closed), ""):
            refusal = refusal or Refusal(Reason.TARGET_CLOSED, f"{closed} {self.closed[closed]}")
        refusal = refusal or self.jobs.elsewhere(action)
        if len(names) < status.link_count:
            refusal = refusal or Refusal(Reason.OPT_OUT_UNREADABLE, f"the file has {status.link_count} names, of which "
                                         f"its MDT knows {len(names)}: one of the others may be opted out")
        # somebody else's file behind a symbolic link
        if action.path not in names and action.finding[0] not in BY_ADMINISTRATOR and action.undoes is None:
            refusal = refusal or Refusal(Reason.PATH_CHANGED, f"the path leads to {quoted(names[0])} now")
        for name in dict.fromkeys((action.path, *names)):
            refusal = refusal or self.guard.refusal(replace(action, path=name))
        # since the move that is undone, the file may have grown
        size_bytes = action.size_bytes if action.undoes is None else status.size_bytes
        return replace(waiting, action=replace(action, layout=layout, size_bytes=size_bytes), before=before,
                       refusal=refusal, fid=status.fid, cost=cost, own_mirrors=own_mirrors)


def has_more_stripes(present: Layout, action: Action) -> bool:
    """Whether a file has more stripes than a policy that restripes files would give it."""
    wanted = action.layout.components[0].stripe_count
    return policy_of(action.finding[0]).restores_layouts and action.undoes is None and any(
        len(part.objects) > wanted > 1 for part in present.components)


def planned(wanted: Layout, before: Layout | None, size_bytes: int, fsname: str) -> tuple[Layout, MoveCost]:
    """The whole layout for a file, with the mirrors that it keeps, and the cost of the copy. ``wanted`` may be one
    mirror alone, to be added. Where mirrors in sync are given up, nothing is copied.
    """
    copied = one_mirror(mirrors(wanted)[-1]) if wanted.mirror_count > 1 else wanted
    # mirrors are given up, and nothing is copied
    if before is not None and before.mirror_count > 1 and in_sync(before):
        size_bytes = 0
    cost = cost_of_move(size_bytes, before, copied, fsname)
    if before is None or copied is wanted or same_shape(before, copied):
        return copied, cost
    return with_mirror(before, wanted), cost
