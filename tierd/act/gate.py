"""The gate: nothing else in tierd changes a file system.

A dry run passes it too, and spends the same budget. Before each act the gate reads again what it is about to change:
if somebody changed it since the plan was made, the gate refuses the act. The intent of an act is in the journal before
the act begins; its outcome follows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial

from lustre.fid import Fid
from lustre.filesystem import Filesystem
from tierd.act.default_layouts import DefaultLayoutQueue
from tierd.act.guard import ActGuard, NoGuard
from tierd.act.journal.queue_store import Stamp, StoredMove
from tierd.act.journal.writer import Journal
from tierd.act.limits import Budget, CircuitBreaker, TokenBucket
from tierd.act.movers.moves import Halt, Mover, MoveResult
from tierd.act.operating_state import MaintenanceGuard, OperatingState
from tierd.act.outcomes import CompletedAct, CompletedActs, outcome_of_move
from tierd.act.queue import BATCH_MOVES, MoveQueue, QueuedMove
from tierd.act.recovery import RequeueList
from tierd.acts import ActKind, Outcome
from tierd.clock import Clock
from tierd.config.act import Rate
from tierd.model import Action
from tierd.refusal import Reason, Refusal

StoreMoves = Callable[[Sequence[Action], int], None]
"""Enters moves of a finding that wait into the journal."""
_NO_BYTES_READ = {MoveResult.REFUSED, MoveResult.ALREADY}
"""How moves end before a byte of the file is read: they take nothing from the limits on bytes."""


class MoveBatches:
    """A few moves at a time, as the engine takes them."""

    def __init__(
        self,
        mover: Mover,
        breaker: CircuitBreaker,
        journal: Journal,
        queue: MoveQueue,
        completed_acts: CompletedActs,
        operating_state: OperatingState,
        halt: Halt,
        clock: Clock,
        on_begin: Callable[[Fid], None],
    ) -> None:
        self._mover = mover
        self._breaker = breaker
        self._journal = journal
        self._queue = queue
        self._completed_acts = completed_acts
        self._operating_state = operating_state
        self._halt = halt
        """Why no further act may be begun, or ""."""
        self._clock = clock
        self._on_begin = on_begin
        self.under_way = 0
        """Moves the engine was given and has not said of how they went."""

    def examine(self, batch: list[QueuedMove]) -> Iterator[CompletedAct]:
        """The same look as before a move, and no more."""
        found = {outcome.move.path: outcome for outcome in self._mover.examine([each.move for each in batch])}
        for each, entry in self._intend(batch, dry_run=True):
            outcome = found[each.action.path]
            result, detail = outcome_of_move(outcome), outcome.detail
            if each.refusal:
                result, detail = Outcome.REFUSED, each.refusal.sentence
            if each.refusal or outcome.result in _NO_BYTES_READ:
                self._queue.give_back(each, self._clock.now())
            yield self._completed_acts.ended(each.action, result, detail, entry, each.before)

    def move(self, batch: list[QueuedMove], keep: StoreMoves) -> Iterator[CompletedAct]:
        """Move them. One that was halted waits for its turn again, and is kept in the journal as before."""
        entries: dict[str, tuple[QueuedMove, int]] = {}
        for each, entry in self._intend(batch, dry_run=False):
            if each.refusal:
                self._queue.give_back(each, self._clock.now())
                refused = each.refusal.sentence
                yield self._completed_acts.ended(each.action, Outcome.REFUSED, refused, entry, each.before)
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
            if moved.result in _NO_BYTES_READ:
                self._queue.give_back(each, self._clock.now())
            if moved.result is MoveResult.DONE:
                self._completed_acts.moved_bytes += each.action.size_bytes
            if moved.reason == "halted" and self._queue.add(each.action, each.finding):  # its turn comes again
                keep([each.action], each.finding)
            ended = outcome_of_move(moved)
            if tripped := self._breaker.note(ended, each.action.path):
                self._operating_state.pause(self._operating_state.paused or tripped.sentence, tripped=True)
            yield self._completed_acts.ended(
                each.action, ended, moved.detail, entry, each.before, each.move.fid
            )
        for each, entry in entries.values():  # the engine said nothing of them
            yield self._completed_acts.ended(each.action, Outcome.FAILED, "the mover did not report an outcome", entry,
                                      each.before)

    def _intend(self, batch: list[QueuedMove], *, dry_run: bool) -> list[tuple[QueuedMove, int]]:
        """Enter the intents of a batch, and their numbers: from now on each is an act, and no longer waits."""
        now = self._clock.now()
        with self._journal.transaction():
            self._journal.queue.remove(each.action.path for each in batch)
            return [(each, self._journal.intend(each.action, each.finding, each.before, now, dry_run, each.move.fid))
                    for each in batch]


BATCH_LOOKUP_SECONDS = 1.0
"""So long are files looked at until those that were are moved."""
DEFAULT_LAYOUT_BURST_SECONDS = 2.0
"""Default layouts of so long may be set at once."""


class Gate:
    """Default layouts and moves wait, each in a queue of its own, and go as the budget allows.

    Any thread may submit, drop and look. One thread sets default layouts, one moves files; neither waits for the other.
    """

    def __init__(self, filesystem: Filesystem, mover: Mover, budget: Budget, breaker: CircuitBreaker, journal: Journal,
                 clock: Clock, dry_run: bool, guard: ActGuard | None = None,
                 maintenance: MaintenanceGuard | None = None, executor: Executor | None = None,
                 default_layouts_per_second: float = 20.0, batch: int = BATCH_MOVES) -> None:
        """``executor`` sets several default layouts at the same time; ``batch`` moves go to the engine at a time."""
        self._filesystem = filesystem
        self._journal = journal
        self._clock = clock
        self._dry_run = dry_run
        self.operating_state = OperatingState(journal, maintenance or MaintenanceGuard(), clock)
        self.completed_acts = CompletedActs(journal, clock)
        self._guard = guard or NoGuard()
        self._queue = MoveQueue(filesystem, budget, self._guard, batch)
        bucket = TokenBucket(Rate(default_layouts_per_second), DEFAULT_LAYOUT_BURST_SECONDS, clock.now())
        self._default_layouts = DefaultLayoutQueue(
            filesystem, journal, self.completed_acts, self._guard, self._halt, clock, dry_run, bucket, executor
        )
        self.on_begin: Callable[[Fid], None] = lambda _: None
        """Called with each file just before it is moved."""
        self.on_queued: Callable[[], None] = lambda: None
        """Called when acts were queued, from the thread that queued them."""
        self._batches = MoveBatches(
            mover, breaker, journal, self._queue, self.completed_acts, self.operating_state, self._halt, clock,
            self._begins,
        )
        self._requeue_list = RequeueList(journal.queue.all())
        self._waiting_since = clock.now()
        self._stopping: Refusal | None = None
        self.not_requeued: Counter[str] = Counter()
        """Moves that waited before a restart and do not any more, by reason."""

    @property
    def dry_run(self) -> bool:
        """Whether nothing is really done."""
        return self._dry_run

    @property
    def waiting(self) -> int:
        """Moves in the queue, with those from before a restart."""
        return len(self._queue) + len(self._requeue_list)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the files in the queue."""
        return self._queue.size_bytes + self._requeue_list.size_bytes

    @property
    def under_way(self) -> int:
        """Moves the engine is at work on, or has in hand."""
        return self._batches.under_way

    @property
    def waits_for(self) -> str:
        """Which limit the first of them has reached; "" for none."""
        return self._queue.waits_for if len(self._queue) else ""

    @property
    def to_requeue(self) -> int:
        """Those from before a restart that were not looked at yet."""
        return len(self._requeue_list)

    @property
    def not_persisted(self) -> int:
        """Moves that a restart would lose: there are more than the journal keeps."""
        return max(0, self.waiting - len(self._journal.queue))

    @property
    def budget_left(self) -> tuple[float, float]:
        """Files and bytes that may be moved at once."""
        return self._queue.budget_left

    @property
    def waiting_since(self) -> float:
        """When the queue was last empty, or moves were last queued into an empty one; 0 for a queue that never was."""
        return self._waiting_since

    @property
    def last_move_at(self) -> float:
        """When a move last came to an end, whatever end; 0 before the first."""
        last = tuple(self.completed_acts.last.items())
        return max((at for (kind, _), at in last if kind == ActKind.MIGRATE), default=0.0)

    def stop(self) -> None:
        """Begin no further act: the process ends. What waits stands in the journal."""
        self._stopping = Refusal(Reason.STOPPING, "tierd is stopping")

    @property
    def waiting_defaults(self) -> int:
        """Default layouts that wait to be set."""
        return len(self._default_layouts)

    def waiting_for(self, finding_key: tuple[str, str, str]) -> int:
        """Moves of one finding in the queue."""
        return self._queue.of(finding_key) + self._requeue_list.of(finding_key)

    def waiting_by_finding(self) -> Counter[tuple[str, str, str]]:
        """Moves in the queue, with those from before a restart, by finding: the queue is gone over once."""
        return self._queue.by_finding() + self._requeue_list.by_finding()

    def defaults_waiting_for(self, finding_key: tuple[str, str, str]) -> int:
        """Default layouts of one finding that wait to be set."""
        return self._default_layouts.of(finding_key)

    def default_waits(self, directory: str) -> bool:
        """Whether the default layout of a directory is about to be set, for whatever finding."""
        return self._default_layouts.has(directory)

    def submit(self, actions: Iterable[Action], finding: int) -> None:
        """Let default layouts and moves wait for their turn. Advice passes by: it is for people."""
        every = tuple(actions)
        self._default_layouts.add([action for action in every if action.kind == ActKind.SET_DEFAULT_LAYOUT], finding)
        was_empty = not self.waiting
        moves = {action.path: action for action in every
                 if action.kind == ActKind.MIGRATE and not self._queue.has(action.path)}
        if moves and was_empty:
            self._waiting_since = self._clock.now()
        if moves:
            with self._journal.transaction():  # before their turn can come, which takes them out of the journal
                self._keep(tuple(moves.values()), finding)
            for action in moves.values():
                self._queue.add(action, finding)
        self.on_queued()

    def set_defaults(self) -> list[CompletedAct]:
        """Set the next few default layouts that wait, as the budget allows; how each went."""
        return self._default_layouts.set_next()

    def _keep(self, moves: Sequence[Action], finding: int) -> None:
        stamp = Stamp(self._filesystem.fsname, self._dry_run, self._clock.now())
        self._journal.queue.add(moves, finding, stamp)

    def first_to_requeue(self, most: int) -> list[StoredMove]:
        """Moves from before a restart, the oldest, for somebody to look at."""
        return self._requeue_list.first(most)

    def requeue(self, again: Sequence[tuple[Action, int]], left: Sequence[tuple[StoredMove, Refusal]]) -> None:
        """What was looked at waits for its turn again, or is forgotten. The journal keeps the first as it was."""
        still = self._requeue_list.looked_at({*(action.path for action, _ in again), *(move.path for move, _ in left)})
        for action, finding in again:
            if action.path in still:  # not dropped since
                self._queue.add(action, finding)
        with self._journal.transaction():
            self._journal.queue.remove(move.path for move, _ in left if not self._queue.has(move.path))
        self.not_requeued.update(why.sentence for _, why in left)
        self.on_queued()

    def opt_out_refusal(self, directory: str) -> Refusal | None:
        """Refuses acts in a directory whose owner opted out."""
        return self._guard.opt_out_refusal(directory)

    def refusal(self, action: Action) -> Refusal | None:
        """Refuses one act by the opt-out of its owner and the mode of its scope, before its turn comes."""
        return self._guard.refusal(action)

    def drop(self, finding_key: tuple[str, str, str], directory: str = "") -> list[Action]:
        """Forget the moves of one finding, or only those in one directory; what was forgotten.

        Moves from before a restart that were not looked at yet are dropped with the whole finding. A move the engine
        has begun comes to its end.
        """
        dropped = self._queue.drop(finding_key, directory)
        if directory:
            with self._journal.transaction():
                self._journal.queue.remove(action.path for action in dropped)
            return dropped
        self._journal.queue.drop(finding_key)
        return dropped + self._requeue_list.drop(finding_key)

    def drop_defaults(self, finding_key: tuple[str, str, str]) -> list[Action]:
        """Forget default layouts of one finding that wait to be set; which they were."""
        return self._default_layouts.drop(finding_key)

    def hold_moves(self, finding_keys: Collection[tuple[str, str, str]]) -> None:
        """Let the moves of these findings wait while their acts are measured; those of all others go on."""
        self._queue.hold(finding_keys)

    def pump(self, deadline: float, *, requests_only: bool = False) -> list[CompletedAct]:
        """Carry out waiting moves until the budget is spent, the queue empty, the time up or something holds them.

        ``requests_only``: those that a person asked for by name, while tierd does nothing by itself.
        """
        outcomes: list[CompletedAct] = []
        while len(self._queue) and self._clock.now() < deadline and not self._halt():
            now = self._clock.now()
            batch, needless = self._queue.next_batch(now, requests_only=requests_only,
                                                 enough=partial(self._past, now + BATCH_LOOKUP_SECONDS))
            if needless:
                with self._journal.transaction():
                    self._journal.queue.remove(action.path for action, _ in needless)
            outcomes += [self.completed_acts.counted(CompletedAct(action, why, "", 0)) for action, why in needless]
            if not batch:
                break
            outcomes += self._batches.examine(batch) if self._dry_run else self._batches.move(batch, self._keep)
        return outcomes

    def _past(self, time: float) -> bool:
        return self._clock.now() > time

    def _begins(self, fid: Fid) -> None:
        self.on_begin(fid)

    def _halt(self) -> Refusal | None:
        """Refuses further acts."""
        return self._stopping or self.operating_state.held or self._guard.blocked_by()
