"""Setting default layouts of directories, several at a time, with a look at what is there just before.

For :mod:`tierd.act.gate` alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from threading import RLock

from lustre.fid import Fid
from lustre.filesystem import Filesystem
from lustre.layout.model import Layout, same_shape
from tierd.act.budget import Bucket
from tierd.act.changing_defaults import give, kept
from tierd.act.endings import Endings, Outcome
from tierd.act.guard import Guard
from tierd.act.journal import Journal
from tierd.act.standstill import Halt
from tierd.clock import Clock
from tierd.model import Action
from tierd.text import quoted

AT_ONCE = 8
"""Directories that are looked at, and then given their layout, at the same time: each takes some requests to an MDT."""


@dataclass(frozen=True, slots=True)
class WaitingDefault:
    """A default layout to be set, and what a look at its directory came to."""

    action: Action
    finding: int
    before: Layout | None = None
    fid: Fid | None = None
    refusal: str = ""
    failure: str = ""
    given_at: float = 0.0
    """Just before it was set."""
    entry: int = 0
    """Number of the act in the journal; 0 before the intent is entered."""


class DefaultLayouts:
    """Those of directories: they wait in the order they came; each gets an intent, the act, and its outcome.

    Any thread may add and drop; one thread at a time sets. Nothing is locked while the file system is asked.
    """

    def __init__(self, filesystem: Filesystem, journal: Journal, endings: Endings, guard: Guard, halt: Halt,
                 clock: Clock, dry_run: bool, bucket: Bucket, executor: Executor | None = None) -> None:
        """``executor`` sets several at the same time; without one they are set one after the other."""
        self._filesystem = filesystem
        self._journal = journal
        self._endings = endings
        self._guard = guard
        self._halt = halt
        """Why nothing may be begun, or ""."""
        self._clock = clock
        self._dry_run = dry_run
        self._bucket = bucket
        self._executor = executor
        self._lock = RLock()
        self._waiting: deque[WaitingDefault] = deque()
        self._under_way: list[WaitingDefault] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, actions: Sequence[Action], finding: int) -> None:
        """Let these wait, in this order: the most active directory first."""
        with self._lock:
            self._waiting.extend(WaitingDefault(action, finding) for action in actions)

    def has(self, directory: str) -> bool:
        """Whether the default of a directory waits to be set, or is being set, for whatever finding."""
        with self._lock:
            return any(each.action.directory == directory for each in (*self._under_way, *self._waiting))

    def of(self, finding_key: tuple[str, str, str]) -> int:
        """How many of one finding wait, or are being set."""
        with self._lock:
            return sum(each.action.finding == finding_key for each in (*self._under_way, *self._waiting))

    def drop(self, finding_key: tuple[str, str, str]) -> list[Action]:
        """Forget those of one finding that were not begun; which they were."""
        with self._lock:
            dropped = [each.action for each in self._waiting if each.action.finding == finding_key]
            self._waiting = deque(each for each in self._waiting if each.action.finding != finding_key)
        return dropped

    def set_next(self) -> list[Outcome]:
        """Set the next few, as many as the budget allows now; how each went. Empty when none can go."""
        group = self._next()
        try:
            return self._set(group) if group else []
        finally:
            self._under_way = []

    def _set(self, group: Sequence[WaitingDefault]) -> list[Outcome]:
        looked = self._each(self._looked_at, group)
        now = self._clock.now()
        with self._journal.transaction():
            intended = [replace(each, entry=self._journal.intend(each.action, each.finding, each.before, now,
                                                                 self._dry_run, each.fid)) for each in looked]
        done = self._each(self._given, intended)
        return [self._ended(each) for each in done]

    def _next(self) -> list[WaitingDefault]:
        group: list[WaitingDefault] = []
        with self._lock:
            while self._waiting and len(group) < AT_ONCE and not self._bucket.short(0, self._clock.now()):
                self._bucket.spend(0)
                group.append(self._waiting.popleft())
            self._under_way = group
        return group

    def _each(self, call: Callable[[WaitingDefault], WaitingDefault],
              group: Sequence[WaitingDefault]) -> list[WaitingDefault]:
        if self._executor is None or len(group) == 1:
            return [call(each) for each in group]
        return [future.result() for future in [self._executor.submit(call, each) for each in group]]

    def _looked_at(self, waiting: WaitingDefault) -> WaitingDefault:
        """The directory now: refused where somebody put another there, wants it left alone, or nothing may be done."""
        action = waiting.action
        try:
            before = self._filesystem.layout(action.directory)
            of_the_root = None if before is not None else self._filesystem.layout("/")
            fid = self._filesystem.status(action.directory).fid
            real = self._filesystem.path_of(fid)
        except OSError as error:
            return replace(waiting, failure=error.strerror or str(error))
        refusal = ""
        if real != action.directory:  # somebody's link where a directory was leads anywhere
            refusal = f"the path leads to {quoted(real)} now"
        elif before is not None and same_shape(before, action.layout):
            refusal = "it has this layout already"
        refusal = refusal or kept(before, of_the_root) or self._halt() or self._guard.refusal(action)
        return replace(waiting, before=before, fid=fid, refusal=refusal)

    def _given(self, waiting: WaitingDefault) -> WaitingDefault:
        if waiting.failure or waiting.refusal or self._dry_run:
            return waiting
        if why := self._halt():  # asked again: a pause must hold between the directories of a group
            return replace(waiting, refusal=why)
        try:
            waiting = replace(waiting, given_at=self._clock.now())
            failure = give(self._filesystem, waiting.action.directory, waiting.action.layout, waiting.before)
        except (OSError, ValueError) as error:  # the latter: a layout Lustre cannot have
            failure = getattr(error, "strerror", None) or str(error)
        return replace(waiting, failure=failure)

    def _ended(self, each: WaitingDefault) -> Outcome:
        result = "failed" if each.failure else "refused" if each.refusal else "dry-run" if self._dry_run else "done"
        return self._endings.ended(each.action, result, each.failure or each.refusal, each.entry, each.before,
                                   begun_at=each.given_at)
