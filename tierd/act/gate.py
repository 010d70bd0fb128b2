"""The gate: the only part of tierd that changes a file system.

A dry run passes the gate too, and spends the same budget. Before each act the gate reads the file or directory again,
and refuses the act if somebody changed it since the plan was made. The gate enters the intent of an act in the journal
before the act begins, and the outcome when it ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial

from lustre.fid import Fid
from lustre.filesystem import Filesystem
from tierd.act.default_layouts import DefaultLayoutQueue
from tierd.act.dispatch import Dispatch
from tierd.act.guard import ActGuard
from tierd.act.journal.entry import Stamp, StoredMove
from tierd.act.journal.writer import Journal
from tierd.act.limits import BackgroundPace, Budget, CircuitBreaker, TokenBucket
from tierd.act.movers.moves import Move, MoveOutcome, Mover, MoveResult
from tierd.act.operating_state import Approvals, MaintenanceGuard, OperatingState
from tierd.act.outcomes import CompletedAct, CompletedActs, outcome_of_move
from tierd.act.queue import BATCH_MOVES, BATCH_MOVES_REMOTE, MoveQueue, QueuedMove
from tierd.acts import DEFAULT_KINDS, ActKind, OrderKind, Outcome
from tierd.clock import Clock
from tierd.config.act import Rate
from tierd.model import Action, FindingKey
from tierd.refusal import Reason, Refusal

_NO_BYTES_READ = {MoveResult.REFUSED, MoveResult.ALREADY}
"""Results of moves that read no byte of the file: they use no byte budget."""
BATCH_LOOKUP_SECONDS = 4.0
"""Time after which a batch is moved with the files examined so far. On a loaded client a file takes up to a second to
examine and ten to move, so a shorter time leaves the mover's threads (``movers.at_once``) without files."""
OUTCOME_WAIT_SECONDS = 0.25
"""Time to wait for the next outcome of a mover on another node, before limits and pauses are checked again."""
DEFAULT_LAYOUTS_PER_SECOND = 20.0
"""Default layouts that are set. Each takes half a dozen requests to an MDT, which serves thousands. A choice."""
DEFAULT_LAYOUT_BURST_SECONDS = 2.0
"""Burst of default layouts, in seconds of their rate."""


class Gate:
    """Queues default layouts and moves, and carries them out as the budget allows. Any thread may submit, drop and
    read. One thread sets default layouts, another moves files; neither waits for the other.
    """

    def __init__(self, filesystem: Filesystem, mover: Mover, budget: Budget, breaker: CircuitBreaker, journal: Journal,
                 clock: Clock, dry_run: bool, guard: ActGuard | None = None,
                 maintenance: MaintenanceGuard | None = None, executor: Executor | None = None,
                 batch: int = BATCH_MOVES,
                 dispatch: Dispatch | None = None, pace: BackgroundPace | None = None) -> None:
        """``executor`` sets several default layouts at the same time.

        ``dispatch`` hands moves over to movers on other nodes. Without it, ``mover`` moves them in this process, and
        ``batch`` is the maximum of moves in a batch. ``pace`` spaces out background moves on targets with streams.
        """
        self.dispatch = dispatch if dispatch is not None and not dry_run else Dispatch(mover, dry_run=dry_run)
        batch = BATCH_MOVES_REMOTE if self.dispatch.remote else batch
        self._filesystem, self._journal, self._clock = filesystem, journal, clock
        self.dry_run = dry_run
        self.operating_state = OperatingState(journal, maintenance or MaintenanceGuard(), clock)
        self.approvals = Approvals(journal, clock)
        self.completed_acts = CompletedActs(journal, clock)
        self.guard = guard or ActGuard()
        self.queue = MoveQueue(filesystem, budget, self.guard, batch, self.dispatch.full_for,
                               pace=pace or BackgroundPace(), made_mirrors=journal.made_mirrors)
        bucket = TokenBucket(Rate(DEFAULT_LAYOUTS_PER_SECOND), DEFAULT_LAYOUT_BURST_SECONDS, clock.now())
        self.default_layouts = DefaultLayoutQueue(
            filesystem, journal, self.completed_acts, self.guard, self._halt, clock=clock, dry_run=dry_run,
            bucket=bucket, executor=executor)
        self.on_begin: Callable[[Fid], None] = lambda _: None
        """Called with each file just before it is moved."""
        self.on_queued: Callable[[], None] = lambda: None
        """Called when acts were queued, from the thread that queued them."""
        self._breaker = breaker
        self._open: dict[int, QueuedMove] = {}
        """Moves that were handed over and whose outcome is not known yet, by act. Other threads read a copy of it."""
        self._not_again: set[int] = set()
        """Those of them that were dropped meanwhile: if they were not begun, they do not wait again."""
        self.waiting_since = clock.now()
        """Time when moves were last added to an empty queue, or of the start; epoch seconds."""
        self._stopping: Refusal | None = None
        self.not_requeued: Counter[str] = Counter()
        """Moves of an earlier run that were not queued again, by reason."""

    @property
    def waiting(self) -> int:
        return len(self.queue)

    @property
    def under_way(self) -> int:
        return len(self._open)

    def has_moves(self, finding_key: FindingKey) -> bool:
        """Whether moves of one finding wait, or were handed over."""
        return self.queue.waiting_for(finding_key) > 0 or any(
            each.action.finding == finding_key for each in self._open.copy().values())

    @property
    def not_persisted(self) -> int:
        """Queued moves that a restart would lose, because the journal stores a limited number."""
        return max(0, self.waiting - len(self._journal.queue))

    @property
    def last_move_at(self) -> float:
        """Time when a move last ended, with any outcome; 0 before the first."""
        # copied: the thread that moves files changes it meanwhile
        return max((at for (kind, _), at in self.completed_acts.last.copy().items() if kind == ActKind.MIGRATE),
                   default=0.0)

    def stop(self) -> None:
        """Begin no further act, because the process ends. The journal stores queued moves."""
        self._stopping = Refusal(Reason.STOPPING, "tierd is stopping")

    def submit(self, actions: Iterable[Action], finding: int) -> None:
        """Queue default layouts and moves."""
        every = tuple(actions)
        self.default_layouts.add([action for action in every if action.kind in DEFAULT_KINDS], finding)
        moves = {action.path: action for action in every
                 if action.kind == ActKind.MIGRATE and not self.queue.has(action.path)}
        if moves and not self.waiting:
            self.waiting_since = self._clock.now()
        if moves:
            # first: the start of a move removes it from the journal
            self._keep(tuple(moves.values()), finding)
            for action in moves.values():
                self.queue.add(action, finding)
        self.on_queued()

    def _keep(self, moves: Sequence[Action], finding: int) -> None:
        self._journal.queue.add(moves, finding, Stamp(self._filesystem.fsname, self.dry_run, self._clock.now()))

    def requeue(self, refused: Mapping[str, Refusal]) -> None:
        """Queue the moves of an earlier run, but for these files. The journal still stores the queued ones."""
        dropped = self.queue.requeue(refused)
        # the queue first: what a kill leaves in the journal is refused again
        self._journal.queue.remove(dropped)
        self.not_requeued.update(refused[path].sentence for path in dropped)
        self.on_queued()

    def drop(self, finding_key: tuple[str, str, str], directory: str = "") -> list[Action]:
        """Drop the queued moves of one finding, or only those in one directory. Returns them."""
        return self._drop(lambda each: each.action.finding == finding_key and directory in {"", each.action.directory})

    def drop_by_number(self, number: int) -> list[Action]:
        """Drop what is queued for a finding or order. Returns the moves."""
        self.default_layouts.drop(number)
        return self._drop(lambda each: each.finding == number)  # files that a program submits have several keys

    def _drop(self, chosen: Callable[[QueuedMove | StoredMove], bool]) -> list[Action]:
        # those handed over end as they may; but if they are halted before they begin, they must not wait again
        self._not_again.update(act for act, each in self._open.copy().items() if chosen(each))
        if dropped := self.queue.drop(chosen):
            self._journal.queue.remove(action.path for action in dropped)
        return dropped

    def pump(self, deadline: float, *, requests_only: bool = False) -> list[CompletedAct]:
        """Carry out queued moves until budget or queue is empty, the deadline passes, or acts are halted.
        ``requests_only`` takes only moves that an administrator requested.
        """
        # outcomes first: they return budget, and make room at the movers
        outcomes = self.attend()
        while len(self.queue) and self._clock.now() < deadline and not self._halt() and not self.dispatch.trouble():
            now = self._clock.now()
            batch, needless = self.queue.next_batch(now, requests_only=requests_only, most=self.dispatch.room(),
                                                 enough=partial(self._past, now + BATCH_LOOKUP_SECONDS))
            # the journal has no intent for these: they only leave the stored queue
            if needless:
                self._journal.queue.remove(each.action.path for each, _ in needless)
            outcomes += [self._needless(each, why) for each, why in needless]
            if not batch:
                # limits delay all that wait: the next outcome may return budget, or make room
                ended = list(self._collect(OUTCOME_WAIT_SECONDS)) if self.under_way else []
                outcomes += ended
                if not ended:
                    break
                continue
            outcomes += self._move(batch)
        return outcomes

    def _needless(self, each: QueuedMove, why: Outcome) -> CompletedAct:
        if why is Outcome.GONE or each.action.finding[0] != OrderKind.STAGING:
            return self.completed_acts.counted(CompletedAct(each.action, why, "", 0))
        ((_, entry),) = self._intend([each])  # a staging counts files that the journal has
        return self.completed_acts.ended(CompletedAct(each.action, why, "the file already has this layout", entry))

    def attend(self, wait_seconds: float = 0.0) -> list[CompletedAct]:
        """Enter outcomes of moves handed over; withdraw those not begun while acts are halted or their job is idle."""
        # movers on other nodes may report a move late, after it was given up and nothing is under way
        if not (self.under_way or self.dispatch.remote):
            return []
        outcomes = list(self._collect(wait_seconds))
        if self.under_way and (why := self._halt() or self._idle()):
            self.dispatch.withdraw(why)
            outcomes += self._collect()  # those withdrawn
        return outcomes

    def _move(self, batch: list[QueuedMove]) -> Iterator[CompletedAct]:
        moves: list[Move] = []
        for each, entry in self._intend(batch):
            if why := each.refusal:
                self.queue.give_back(each, self._clock.now())  # no byte was copied
                yield self.completed_acts.ended(
                    CompletedAct(each.action, Outcome.REFUSED, why.sentence, entry, reason=why.reason))
            else:
                self._open[entry] = each
                moves.append(replace(each.move, act=entry))
        # before any begins, so that the changelog records of the moves are known as tierd's own
        for move in moves:
            if move.fid is not None and not self.dry_run:
                self.on_begin(move.fid)
        if moves:
            # a pause, or a job that is not at work, stops the rest of the batch, which then waits again
            self.dispatch.begin(moves, lambda: self._halt() or self._idle(batch))
        yield from self._collect()

    def _idle(self, moves: Iterable[QueuedMove] | None = None) -> Refusal | None:
        """Why moves wait whose job is not at work; None if all jobs are. By default, of those that were handed over."""
        handed_over = self._open.copy().values() if moves is None else moves
        of_each = {each.action.finding: each.action for each in handed_over}
        return next((why for action in of_each.values() if (why := self.queue.jobs.idle(action))), None)

    def _collect(self, wait_seconds: float = 0.0) -> Iterator[CompletedAct]:
        with closing(self.dispatch.outcomes(wait_seconds)) as outcomes:  # else its threads go on if the journal fails
            if self.dispatch.remote:
                several = list(outcomes)
                # on the disk before recorded(): nobody repeats an outcome after that
                with self._journal.transaction() if several else nullcontext():
                    entered = [self._enter(each) for each in several]
                yield from (act for act in entered if act is not None)
            else:  # the engine moves the next file while an outcome is entered
                yield from (act for act in (self._enter(each) for each in outcomes) if act is not None)
        self.dispatch.recorded()

    def _enter(self, moved: MoveOutcome) -> CompletedAct | None:
        ended, act = outcome_of_move(moved), moved.move.act
        # a dry run changes no file, so its failures stop nothing
        if not self.dry_run and (tripped := self._breaker.note(ended, moved.move.path)):
            self.operating_state.trip(tripped.sentence)
        each = self._open.pop(act, None)
        if each is None:  # it was given up, and a mover has ended it after all
            self._journal.end(act, ended, moved.detail, self._clock.now())
            return None
        if not_copied := 1.0 if moved.result in _NO_BYTES_READ else moved.not_copied:
            self.queue.give_back(each, self._clock.now(), not_copied)
        if moved.result is MoveResult.DONE:
            self.completed_acts.moved_bytes += each.action.size_bytes
        dropped = act in self._not_again
        self._not_again.discard(act)
        if moved.reason == Reason.HALTED and not dropped and self.queue.add(each.action, each.finding):
            self._keep([each.action], each.finding)  # still to be done
        return self.completed_acts.ended(CompletedAct(each.action, ended, moved.detail, act))

    def _intend(self, batch: list[QueuedMove]) -> list[tuple[QueuedMove, int]]:
        now = self._clock.now()
        # with the intents: a kill leaves a move in the queue or among the acts, and in one of them only
        with self._journal.transaction():
            self._journal.queue.remove(each.action.path for each in batch)
            return [(each, self._journal.intend(each.action, each.finding, each.before, now, self.dry_run,
                                                fid=each.action.fid or each.fid)) for each in batch]

    def _past(self, time: float) -> bool:
        return self._clock.now() > time

    def _halt(self) -> Refusal | None:
        # cheap ones first: the claim asks Lustre
        return self._stopping or self.operating_state.held or self.guard.blocked_by()
