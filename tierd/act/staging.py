"""Staging for a scheduler: files and trees of a job, moved to flash before it starts and to the disks after it.

A staging is an order with a job, a user, a deadline and a state that can be awaited. It becomes moves that pass the
gate like all others: modes, opt-outs, pins, budgets, room and quota hold. tierd moves only files that the user of the
job may read (to flash) or write (to the disks). At its deadline, tierd drops the moves that it has not begun.

The journal stores stagings, so neither a restart nor a kill loses them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from threading import RLock

from lustre.filesystem import Filesystem
from tierd.act.gate import Gate
from tierd.act.journal.connection import Row, SharedConnection
from tierd.act.journal.entry import to_bytes, to_path
from tierd.act.orders import Order, OrderPlan, plan_order
from tierd.act.user_rights import Right, RightsCheck, User
from tierd.acts import OrderKind
from tierd.clock import Clock
from tierd.config.scopes import is_below
from tierd.config.settings import Settings
from tierd.refusal import Reason, Refusal, of_error
from tierd.text import bytes_text, count_of, quoted

PLAN_SECONDS = 20.0
"""Limit on the time to scan the tree of one staging. Other plans wait meanwhile."""
ABANDONED_SECONDS = 30.0
"""A stage-in is cancelled if nobody has asked for its state for this time: its job is gone. Slurm kills all scripts of
a cancelled job, so the one that cancels the staging may not run."""
MAX_OPEN = 10_000
"""Stagings that wait or move. Further ones are refused."""
MAX_REASONS = 20


class StagingState(StrEnum):
    """What has become of a staging. The values are words of the journal and of the control socket."""

    ACCEPTED = "accepted"
    """It is not planned yet."""
    MOVING = "moving"
    """Its moves are queued or under way."""
    ENDED = "ended"
    """All its moves have ended, or there were none."""
    EXPIRED = "expired"
    """The deadline passed first. Moves that were not begun are dropped."""
    CANCELLED = "cancelled"


OPEN = frozenset({StagingState.ACCEPTED, StagingState.MOVING})


@dataclass(frozen=True, slots=True)
class Staging:
    """A file or tree that a job wants on flash (``promote``), or on the disks again (``demote``)."""

    job: str
    uid: int
    gid: int
    direction: str
    path: str
    deadline_at: float
    """Epoch seconds."""
    max_files: int
    max_bytes: int
    created_at: float
    id: int = 0
    user: str = ""
    """Account name; the number if it is not known."""
    state: StagingState = StagingState.ACCEPTED
    finding: int = 0
    """Number of the order in the journal; 0 before it is planned."""
    files: int = 0
    """Files to move."""
    size_bytes: int = 0
    in_place: int = 0
    """Files that were in the pool already."""
    dropped: int = 0
    """Planned moves that were not begun when the deadline passed or the staging was cancelled."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Number of files that were never planned, by the reason in words."""
    ended_at: float = 0.0

    @property
    def by(self) -> str:
        what = "stage-in" if self.direction == "promote" else "stage-out"
        return f"{self.user or self.uid} (job {self.job}, {what})"

    @property
    def key(self) -> tuple[str, str, str]:
        return OrderKind.STAGING, self.by, self.path


_NAMES = tuple(each.name for each in fields(Staging) if each.name != "id")
_COLUMNS = ", ".join(("id", *_NAMES))


class StagingStore:
    """Stagings in the journal's file."""

    def __init__(self, db: SharedConnection) -> None:
        self._db = db

    def put(self, staging: Staging) -> Staging:
        """Store a staging; a new one gets its number."""
        values = {name: getattr(staging, name) for name in _NAMES}
        values |= {"path": to_bytes(staging.path), "left_out": json.dumps(staging.left_out)}
        number = self._db.execute(f"INSERT OR REPLACE INTO stagings ({_COLUMNS}) VALUES "  # noqa: S608
                                  f"({', '.join('?' * (1 + len(_NAMES)))})",
                                  (staging.id or None, *values.values())).lastrowid
        return replace(staging, id=number)

    def open(self) -> list[Staging]:
        rows = self._db.execute(f"SELECT {_COLUMNS} FROM stagings WHERE ended_at = 0 ORDER BY id")  # noqa: S608
        return [_staging(row) for row in rows]

    def of_job(self, job: str, count: int) -> list[Staging]:
        """The last stagings of a job, oldest first; of all jobs if ``job`` is empty."""
        which = "job = ?" if job else "? = ''"  # else all of a month would be read for each job
        rows = self._db.execute(f"SELECT {_COLUMNS} FROM stagings WHERE {which} ORDER BY id DESC LIMIT ?",  # noqa: S608
                                (job, count))
        return [_staging(row) for row in reversed(rows)]

    def outcomes(self, finding: int) -> dict[str, int]:
        return dict(self._db.execute("SELECT outcome, count(*) FROM actions WHERE finding = ? "
                                     "AND kind = 'migrate' GROUP BY 1", (finding,)))

    def reasons(self, finding: int) -> dict[str, int]:
        """Number of files of an order whose last move was not done, by the reason in words."""
        return dict(self._db.execute(
            "SELECT detail, count(*) FROM actions WHERE id IN (SELECT max(id) FROM actions WHERE finding = ? GROUP BY "
            "place) AND outcome IN ('refused', 'gave-way', 'failed', 'doubtful', 'interrupted') "
            "GROUP BY 1 ORDER BY 2 DESC LIMIT ?", (finding, MAX_REASONS)))


def _staging(row: Row) -> Staging:
    found = dict(zip(("id", *_NAMES), row, strict=True))
    return Staging(**found | {"path": to_path(found["path"]), "state": StagingState(found["state"]),
                              "left_out": json.loads(found["left_out"])})


QueueOrder = Callable[[str, str, str, OrderPlan], int]
"""Enters an order (kind, by whom, what, plan) into the journal, and submits its moves to the gate."""


class Stager:
    """Plans stagings, and follows their moves to the end. :meth:`plan` runs in the thread that plans, :meth:`follow` in
    the thread that moves files; all others in any thread.
    """

    def __init__(self, gate: Gate, store: StagingStore, filesystem: Filesystem, settings: Settings, clock: Clock,
                 user_of: Callable[[int, int], User | Refusal], queue_order: QueueOrder) -> None:
        self._gate = gate
        self._store = store
        self._filesystem = filesystem
        self._settings = settings
        self._clock = clock
        self._user_of = user_of
        self._queue_order = queue_order
        self._lock = RLock()
        # plan again after a restart: a move may have been interrupted, and files in place are found as such
        self._open = {each.id: replace(each, state=StagingState.ACCEPTED) for each in store.open()}
        self._silent_seconds = dict.fromkeys({each.job for each in self._open.values()}, 0.0)
        """Time since somebody asked for the state of the open stagings of a job."""
        self._looked_at = clock.now()
        self.counts: Counter[tuple[str, StagingState]] = Counter()
        """Stagings that ended since the start, by direction and state."""

    def __len__(self) -> int:
        return len(self._open)

    def accept(self, stagings: Sequence[Staging]) -> list[Staging]:
        """Store stagings for the next plan. Raises ValueError if too many are open. A staging that the same job has
        open already, or that comes twice, is not added again. So a request may be repeated.
        """
        with self._lock:
            if len(self._open) + len(stagings) > MAX_OPEN:
                raise ValueError(f"{len(self._open)} stagings wait or move; at most {MAX_OPEN} may")
            known = {staging.key: staging for staging in self._open.values()}
            for each in stagings:  # a script may name a path twice
                if each.key not in known:
                    known[each.key] = self._store.put(each)
            accepted = [known[each.key] for each in stagings]
            self._open |= {each.id: each for each in accepted}
            self._silent_seconds |= {each.job: 0.0 for each in accepted}
            return accepted

    def plan(self) -> None:
        """Plan accepted stagings, unless acts are held. A path waits while it, or one around or below it, moves."""
        state, every = self._gate.operating_state, self._snapshot()
        moving = {each.id: each.path for each in every if each.state == StagingState.MOVING}
        for staging in [each for each in every if each.state == StagingState.ACCEPTED]:
            if (self._clock.now() < staging.deadline_at and not state.held and not state.draining and not any(
                    number in self._open and (is_below(staging.path, other) or is_below(other, staging.path))
                    for number, other in moving.items())):
                self._plan(staging)
                moving[staging.id] = staging.path

    def _plan(self, staging: Staging) -> None:
        # without the lock: the user database and the file system may hang
        user = self._user_of(staging.uid, staging.gid)
        found = OrderPlan(left_out=Counter([user])) if isinstance(user, Refusal) else self._made(staging, user)
        in_place = sum(count for why, count in found.left_out.items() if why.reason == Reason.HAS_LAYOUT)
        left_out = {why.sentence: count for why, count in found.left_out.most_common(MAX_REASONS)
                    if why.reason != Reason.HAS_LAYOUT}
        with self._lock:
            if staging.id not in self._open:
                return  # cancelled meanwhile
            what = "stage in" if staging.direction == "promote" else "stage out"
            planned = replace(staging, state=StagingState.MOVING, files=len(found.actions), in_place=in_place,
                              size_bytes=found.size_bytes, left_out=left_out)
            # under the lock: a cancel drops all of its moves, or comes before all of them
            number = self._queue_order(OrderKind.STAGING, staging.by,
                                       f"{staging.by} asked to {what} {quoted(staging.path)}", found)
            self._open[staging.id] = self._store.put(replace(planned, finding=number))
        if not found.actions:
            self._end(replace(planned, finding=number), StagingState.ENDED)

    def _made(self, staging: Staging, user: User) -> OrderPlan:
        order = Order(staging.direction, staging.path, staging.by, OrderKind.STAGING, f"job {staging.job}",
                      most_files=staging.max_files, most_bytes=staging.max_bytes)
        allowed = RightsCheck(self._filesystem, user, Right.READ if staging.direction == "promote" else Right.WRITE)
        try:
            if refused := allowed.search(staging.path):  # not even whether the path exists is for the user to know
                return OrderPlan(left_out=Counter([refused]))
            return plan_order(order, self._filesystem, self._settings, self._clock.now,
                              self._clock.now() + PLAN_SECONDS, allowed=lambda path, status: (
                                  allowed(path, status) or self._gate.queue.queued_refusal(path, status)))
        except OSError as error:
            return OrderPlan(left_out=Counter([of_error(error)]))

    def follow(self) -> None:
        """End the stagings whose moves have all ended, and those whose deadline has passed. It runs in the thread that
        takes moves from the queue: a move is then queued, or handed over, or ended.
        """
        now = self._clock.now()
        with self._lock:
            passed = min(max(now - self._looked_at, 0.0), ABANDONED_SECONDS / 3)  # the clock may have been set
            self._looked_at = now
            self._silent_seconds = {job: seconds + passed for job, seconds in self._silent_seconds.items()}
            silent = {job for job, seconds in self._silent_seconds.items() if seconds > ABANDONED_SECONDS}
        for staging in self._snapshot():
            if staging.direction == "promote" and staging.job in silent:  # a stage-out goes on
                self.drop(staging, StagingState.CANCELLED)
            elif staging.state == StagingState.MOVING and not self._gate.has_moves(staging.key):
                self._end(staging, StagingState.ENDED)
            elif now >= staging.deadline_at:
                self.drop(staging, StagingState.EXPIRED)

    def cancel(self, job: str, uid: object = None) -> list[Staging]:
        """Drop what a user's stagings for a job have not begun; None: of any user. Returns those that were open."""
        cancelled = [each for each in self._snapshot() if each.job == job and uid in (None, each.uid)]
        for staging in cancelled:
            self.drop(staging, StagingState.CANCELLED)
        return cancelled

    def asked(self, job: str) -> None:
        """Somebody waits for the stagings of a job. End those whose deadline has passed, even if a request hangs."""
        with self._lock:
            if job in self._silent_seconds:
                self._silent_seconds[job] = 0.0
        for staging in self._snapshot():
            if staging.job == job and self._clock.now() >= staging.deadline_at:
                self.drop(staging, StagingState.EXPIRED)

    def drop(self, staging: Staging, state: StagingState) -> None:
        """End a staging now. Moves that the mover has begun are completed."""
        with self._lock:
            if current := self._open.get(staging.id):
                self._end(replace(current, dropped=len(self._gate.drop(current.key))), state)

    def _end(self, staging: Staging, state: StagingState) -> None:
        with self._lock:
            if staging.id in self._open:  # no other thread has ended it
                left_out = staging.left_out if staging.finding else {"tierd had not planned it yet": 1}
                self._store.put(replace(staging, state=state, ended_at=self._clock.now(), left_out=left_out))
                del self._open[staging.id]
                self.counts[staging.direction, state] += 1
                if all(each.job != staging.job for each in self._open.values()):
                    self._silent_seconds.pop(staging.job, None)

    def _snapshot(self) -> list[Staging]:
        with self._lock:
            return list(self._open.values())


def summary(staging: Staging, outcomes: dict[str, int], reasons: dict[str, int]) -> str:
    """One sentence about a staging, for a person.

    >>> done = Staging("17", 1, 1, "promote", "/a", 9.0, 1, 1, 0.0, state=StagingState.ENDED, files=3, in_place=1)
    >>> summary(done, {"done": 2, "refused": 1}, {"opted out": 1})
    'staged in 3 of 4 files (0 B) of /a; 1 not: opted out'
    >>> late = replace(done, state=StagingState.EXPIRED, dropped=2, left_out={"another user's": 1})
    >>> summary(late, {"done": 1}, {})
    "staged in 2 of 5 files (0 B) of /a before the deadline; 2 not: not begun when the deadline passed; \
1 not: another user's"
    """
    done = staging.in_place + outcomes.get("done", 0) + outcomes.get("already", 0)
    would = outcomes.get("dry-run", 0)
    missing = Counter(missing_files(staging)) + Counter(reasons)
    planned = staging.files + staging.in_place + sum(staging.left_out.values())
    all_files = done + would if succeeded(staging, reasons) else max(planned, done + would)  # others were removed
    verb = ("dry run: would stage" if would else "staged") + (" in" if staging.direction == "promote" else " out")
    words = (f"{verb} {done + would} of {count_of(all_files, 'file')} ({bytes_text(staging.size_bytes)}) of "
             f"{quoted(staging.path)}")
    until = {StagingState.EXPIRED: " before the deadline", StagingState.CANCELLED: " before it was cancelled",
             StagingState.ENDED: ""}.get(staging.state, " so far")
    return words + until + "".join(f"; {count} not: {reason}" for reason, count in missing.most_common(2))


def missing_files(staging: Staging) -> dict[str, int]:
    """Number of files that were not begun, by the reason in words."""
    why = "cancelled" if staging.state == StagingState.CANCELLED else "not begun when the deadline passed"
    return {**({why: staging.dropped} if staging.dropped else {}), **staging.left_out}


def succeeded(staging: Staging, reasons: dict[str, int]) -> bool:
    """Whether every file is where the job wants it."""
    return staging.state == StagingState.ENDED and not staging.left_out and not reasons
