"""Empties an OST: finds every file with an object there, and moves it to other targets of the same pool.

One walk over the file system is a pass (:mod:`tierd.sense.file_walks`). It stops whenever some hundred moves are
queued, and continues when they have ended. The journal stores the last directory whose files are all dealt with, so a
restart or a kill repeats little, and loses nothing. Passes follow until one finds nothing to move: that proves that the
target is empty, except for files that it names with their reasons.

The administrator stops new objects (:mod:`lustre.creation`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from threading import RLock

from lustre.creation import ObjectCreation
from lustre.fid import Fid
from lustre.filesystem import Filesystem, Space
from tierd.act.gate import Gate
from tierd.act.journal.writer import Journal
from tierd.acts import ActKind, OrderKind
from tierd.clock import Clock
from tierd.config.act import DrainSettings
from tierd.decide.relocation import Destinations, bytes_per_ost, ost_index, relocate
from tierd.model import Action, Evidence, Finding, StoredFile, TargetFill
from tierd.refusal import Refusal, of_error
from tierd.sense.file_walks import Visit, stored_file, walk
from tierd.structs import decoded, json_text
from tierd.text import bytes_text, count_of, quoted

log = logging.getLogger("tierd.act")
DRAINS_STATE = "drains"
"""Name of the drains in the journal."""
MAX_PASSES = 3
"""Walks over the file system in search of files that could not be moved before. A choice."""
STEP_SECONDS = 2.0
"""Maximum time of one step of a walk, so that other plans do not wait."""
MAX_STEP_VISITS = 5000
QUEUE_FILES = 500
"""Moves queued before the walk waits for them. A choice: some minutes of work at the usual limits."""
MAX_EXAMPLES = 5
"""Paths that are named for each reason."""
MAX_REASONS = 30
_NAME = re.compile(r"(?:.+-)?OST[0-9a-fA-F]{1,4}")


class Phase(StrEnum):
    """State of a drain. The values are the words of the journal and of ``tierctl``."""

    RUNNING = "running"
    PAUSED = "paused"
    EMPTY = "empty"
    """The last pass found nothing to move. The target takes no files until the drain is ended."""
    INCOMPLETE = "incomplete"
    """The last pass is over, and files are left that could not be moved."""
    PREVIEWED = "previewed"
    """A dry run has counted the files."""
    ENDED = "ended"
    """Ended by an administrator."""


ACTIVE = frozenset({Phase.RUNNING, Phase.PAUSED, Phase.EMPTY, Phase.INCOMPLETE})
"""Phases in which the target takes no files."""
CHANGES: Mapping[str, tuple[Collection[Phase], Phase]] = {
    "pause": ({Phase.RUNNING}, Phase.PAUSED),
    "resume": ({Phase.PAUSED, Phase.INCOMPLETE, Phase.EMPTY}, Phase.RUNNING),
    "end": (ACTIVE, Phase.ENDED)}
"""How an administrator may change a drain: the phases in which it is possible, and the next one."""


@dataclass(slots=True)
class LeftFiles:
    """Files that stay for one reason."""

    sentence: str
    count: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Drain:
    """A drain of one target, as the journal stores it."""

    target: str
    by: str
    begun_at: float
    finding: int
    """Number of the order in the journal, to which the moves belong; 0 if files are only counted."""
    phase: Phase = Phase.RUNNING
    preview: bool = False
    """Whether files are only counted."""
    passes: int = 1
    after: str = ""
    """Last directory whose files are all dealt with in this pass; "" at the beginning."""
    pass_begun_at: float = 0.0
    wait_until: float = 0.0
    """Beginning of the next pass."""
    examined: int = 0
    """Entries examined in this pass."""
    found_files: int = 0
    """Files with an object on the target, found in this pass."""
    found_bytes: int = 0
    """Their bytes on the target."""
    movable: int = 0
    """Those of them that may move."""
    queued: int = 0
    """Moves queued in this pass."""
    left: dict[str, LeftFiles] = field(default_factory=dict)
    """Files of this pass that no move was queued for, by reason."""
    used_bytes_at_begin: int = 0

    @property
    def key(self) -> tuple[str, str, str]:
        return OrderKind.DRAIN, self.by, self.target

    def leave(self, refusal: Refusal, path: str) -> None:
        """Count a file that stays."""
        name = refusal.reason if refusal.reason in self.left or len(self.left) < MAX_REASONS else "other"
        kept = self.left.get(name) or LeftFiles(refusal.sentence)
        self.left = {**self.left, name: kept}  # another thread may be storing the old one
        kept.count += 1
        if len(kept.examples) < MAX_EXAMPLES:
            kept.examples.append(path)

    def begin_pass(self, now: float) -> None:
        """Count from the beginning."""
        self.after, self.examined, self.found_files, self.found_bytes = "", 0, 0, 0
        self.movable, self.queued, self.left, self.pass_begun_at = 0, 0, {}, now


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """What a drain of a target would do."""

    target: str
    used_bytes: int
    pools: Mapping[str, tuple[str, ...]]
    """The other targets of its pools."""


def drains_to_json(drains: Mapping[str, Drain]) -> str:
    return json_text([asdict(drain) for drain in drains.values()])


def drains_from_json(text: str) -> dict[str, Drain]:
    r"""Drains from the journal. One that cannot be read raises ValueError. Names may have any byte.

    >>> from tierd.refusal import Reason
    >>> one = Drain("lustre-OST0004", "root", 5.0, 3)
    >>> one.leave(Refusal(Reason.MIRRORED, "the file has mirrors"), "/a\udcff")
    >>> drains_from_json(drains_to_json({one.target: one})) == {one.target: one}
    True
    """
    return {drain.target: drain for drain in decoded(text or "[]", list[Drain])}


class Drains:
    """All drains. Any thread may begin, pause, resume and end one; one thread at a time steps."""

    def __init__(self, filesystem: Filesystem, gate: Gate, journal: Journal, clock: Clock, settings: DrainSettings,
                 creation: ObjectCreation, mdts: int = 0, tops: Sequence[str] = ("/",), subdirectory: str = "") -> None:
        """``mdts``: number of MDTs; 0 if unknown. Files below ``tops`` are found. ``subdirectory``: what is mounted."""
        self._tops = tops
        self._filesystem = filesystem
        self._gate = gate
        self._journal = journal
        self._clock = clock
        self._settings = settings
        self._creation = creation
        self._mdts = mdts
        self._lock = RLock()
        self._walks: dict[str, Iterator[Visit]] = {}
        """Walk of each running drain of this process."""
        self._reached: dict[str, str] = {}
        """Last directory that the walk has finished; its moves may still be queued."""
        self._stepped_at = clock.now()
        self.space: Mapping[str, Space] = {}
        """Space on the targets when a drain began, or advanced last; empty before."""
        self._unusable = subdirectory and f"only {subdirectory} is mounted: files elsewhere may be on the target"
        self._drains: dict[str, Drain] = {}
        try:
            self._drains = drains_from_json(journal.state().get(DRAINS_STATE, ""))
        except ValueError as error:  # of a later release: it stays in the journal
            self._unusable = f"the journal has a drain that cannot be read: {error}"
            log.error("%s; tierd drains no target", self._unusable)

    @property
    def all(self) -> tuple[Drain, ...]:
        return tuple(self._drains.values())

    @property
    def running(self) -> bool:
        """Whether a drain moves files."""
        return any(drain.phase is Phase.RUNNING for drain in self.all)

    def begin(self, target: str, by: str, *, preview: bool = False) -> Drain:
        """Begin to drain a target, given by its full name. Raises ValueError, and OSError of the file system."""
        # asks the file system, so it comes before the lock; what may have changed meanwhile is checked under it
        planned = self.plan(target, preview=preview)
        with self._lock:
            self._check_free(target, preview=preview)
            now = self._clock.now()
            counted = preview or self._gate.dry_run
            what = f"{by} asked to drain {target}" + (" (dry run: files are only counted)" if counted else "")
            number = 0 if counted else self._journal.add_finding(
                Finding(OrderKind.DRAIN, now, by, "", (target,), sentence=what, evidence=Evidence()))
            drain = Drain(target, by, now, number, preview=counted, pass_begun_at=now,
                          used_bytes_at_begin=planned.used_bytes)
            self._forget_walk(target)
            self._drains[target] = drain
            self._store()
        log.info("%s", what)
        return drain

    def plan(self, target: str, *, preview: bool = False) -> DrainPlan:
        """What a drain of a target would do; changes nothing. Raises as :meth:`begin` does."""
        if self._unusable:
            raise ValueError(self._unusable)
        space = self.space = self._filesystem.space()
        if target not in space:
            raise ValueError(f"no OST {quoted(target)} can be reached; known: {', '.join(sorted(space))}")
        pools = {name: members for name, members in self._filesystem.pools().items() if target in members}
        if not pools:
            raise ValueError(f"{target} is in no pool, so its files have no other targets; make a pool with it and "
                             "others (lctl pool_new, lctl pool_add)")
        if all(len(members) < 2 for members in pools.values()):
            raise ValueError(f"{target} is the only target of its pools: add others (lctl pool_add)")
        self._check_free(target, preview=preview)
        return DrainPlan(target, space[target].size_bytes - space[target].free_bytes, {
            name: tuple(other for other in members if other != target) for name, members in pools.items()})

    def _check_free(self, target: str, *, preview: bool) -> None:
        before = self._drains.get(target)
        # a drain takes the place of a dry run that still counts
        if before is not None and before.phase in ACTIVE and (preview or not before.preview):
            what, see = ("dry run", "--show") if before.preview else ("drain", "--show; --end ends it")
            raise ValueError(f"a {what} of {target} is {before.phase} already: see tierctl drain-target {target} {see}")

    def full_name(self, target: str) -> str:
        """The full name of a target that is given as ``OST0004`` or as ``lustre-OST0004``. Raises ValueError."""
        if not _NAME.fullmatch(target):
            raise ValueError(f"{target!r} is not the name of an OST, such as OST0004")
        return target if "-" in target else f"{self._filesystem.fsname}-OST{target[3:].lower().rjust(4, '0')}"

    def change(self, target: str, act: str) -> Drain:
        """Pause, resume or end a drain. Raises ValueError for another act, and if the drain has no such phase.

        A pause and an end drop the queued moves; a resumed drain finds them again, or begins another pass if it was
        over.
        """
        with self._lock:
            drain = self._drains.get(target)
            if act not in CHANGES:
                raise ValueError(f"a drain can be planned, begin, pause, resume and end, not {act!r}")
            if drain is None:
                raise ValueError(f"there is no drain of {quoted(target)}")
            phases, becomes = CHANGES[act]
            if drain.phase not in phases:
                raise ValueError(f"the drain of {target} is {drain.phase}")
            if act != "resume":
                self._gate.drop(drain.key)
            elif drain.phase is not Phase.PAUSED:
                drain.passes = 1
                drain.begin_pass(self._clock.now())
            self._forget_walk(target)
            drain.phase = becomes
            self._store()
            return drain

    def _forget_walk(self, target: str) -> None:
        self._walks.pop(target, None)
        self._reached.pop(target, None)

    def _store(self) -> None:
        self._journal.set_state({DRAINS_STATE: drains_to_json(self._drains)})

    def step(self) -> None:
        """Advance all drains a little: the walk, and moves. Raises OSError of the file system."""
        now = self._clock.now()
        # no burst after a pause, or after a step of the clock
        visits = int(min(max(now - self._stepped_at, 0.0), 60.0) * self._settings.scan_files_per_second)
        self._stepped_at = now
        for drain in self.all:
            if self._gate.dry_run and not drain.preview:
                continue  # it was begun before, and goes on when the dry run is over
            waits = 0 < drain.wait_until - now <= self._settings.retry_seconds  # above that, the clock was set back
            if drain.phase is Phase.RUNNING and not (waits or self._unusable):
                self._advance(drain, max(1, min(visits, MAX_STEP_VISITS)), now + STEP_SECONDS)
        if any(drain.phase in ACTIVE for drain in self.all):
            self.space = self._filesystem.space()

    def unstopped(self, target: str) -> bool:
        """Whether some MDT may still create objects on the target, as far as this node can see."""
        limits = self._creation.limits(target)
        return any(limits.values()) or len(limits) < max(self._mdts, 1)

    def _advance(self, drain: Drain, visits: int, until: float) -> None:
        # few moves are queued at a time, and a restart begins behind directories whose moves no longer wait
        if self._gate.queue.waiting_for(drain.key):
            return
        with self._lock:
            drain.after = self._reached.get(drain.target, drain.after)
            steps = self._walks.get(drain.target)
            if steps is None:
                steps = self._walks[drain.target] = walk(
                    self._filesystem, self._tops, drain.after,
                    lambda directory, why: drain.leave(why.about("a directory cannot be read"), directory))
        found: dict[Fid, StoredFile] = {}
        # without the lock, because it asks the file system for seconds
        try:
            over = self._look(drain, steps, visits, until, found)
            actions = self._actions(drain, found.values())
        except OSError:
            with self._lock:
                self._forget_walk(drain.target)  # its files are found again, after the last finished directory
            raise
        with self._lock:
            if not self._still_runs(drain):
                self._forget_walk(drain.target)  # what it found here is found again
                return
            if actions:
                drain.queued += len(actions)
                self._gate.submit(actions, drain.finding)
                size = sum(action.size_bytes for action in actions)
                log.info("drain of %s: queued %s, %s", drain.target, count_of(len(actions), "file"), bytes_text(size))
            elif over and not self._gate.has_moves(drain.key):
                self._end_pass(drain)
            self._store()

    def _still_runs(self, drain: Drain) -> bool:
        """Whether it was neither paused nor ended, and no other one has taken its place."""
        return drain.phase is Phase.RUNNING and self._drains[drain.target] is drain

    def _look(self, drain: Drain, steps: Iterator[Visit], visits: int, until: float,
              found: dict[Fid, StoredFile]) -> bool:
        """Examine entries. Returns whether the walk is over."""
        index = {ost_index(drain.target)}
        for _ in range(visits):
            visit = next(steps, None)
            if visit is None:
                return True
            drain.examined += 1
            if not visit.name:  # the end of a directory
                self._reached[drain.target] = visit.directory
                continue
            try:
                file = stored_file(self._filesystem, visit.path, index)
            except FileNotFoundError:
                continue  # removed meanwhile
            except OSError as error:
                drain.leave(of_error(error), visit.path)
                continue
            if file is not None:
                found.setdefault(file.fid, file)  # it may have several names
            if len(found) >= QUEUE_FILES or self._clock.now() >= until or not self._still_runs(drain):
                break
        return False

    def _actions(self, drain: Drain, found: Collection[StoredFile]) -> list[Action]:
        """Moves of the files that may move. Counts all, and the others with their reasons."""
        if not found:
            return []
        self.space = self._filesystem.space()
        fill = {target: TargetFill(room.size_bytes, room.avail_bytes) for target, room in self.space.items()}
        # of other drains too: no drain fills what another one empties
        closed = {ost_index(target) for target in {*self._gate.queue.closed, drain.target}}
        room = Destinations(self._filesystem.pools(), fill, self._settings.reserve, closed)
        own = ost_index(drain.target)
        actions = []
        for file in found:
            assert file.layout is not None
            drain.found_files += 1
            drain.found_bytes += bytes_per_ost(file.layout, file.size_bytes).get(own, 0)
            placed = relocate(file.layout, file.size_bytes, closed, room, may_narrow=True)
            if isinstance(placed, Refusal):
                drain.leave(placed, file.path)
                continue
            action = Action(ActKind.MIGRATE, placed, f"{drain.by} drains {drain.target}", drain.key,
                            file.path.rpartition("/")[0] or "/", path=file.path, size_bytes=file.size_bytes,
                            fid=file.fid)
            # the gate asks again; here it names the files that would stay
            if refused := self._gate.guard.refusal(action):
                drain.leave(refused, file.path)
                continue
            drain.movable += 1
            if not drain.preview:
                actions.append(action)
        return actions

    def _end_pass(self, drain: Drain) -> None:
        self._forget_walk(drain.target)
        drain.after = ""
        if drain.preview:
            drain.phase = Phase.PREVIEWED
        # files keep coming, or keep failing: another pass would not end it
        elif drain.queued and drain.passes >= MAX_PASSES and (self.failed(drain) or drain.passes >= 2 * MAX_PASSES):
            drain.phase = Phase.INCOMPLETE
        # only a pass that finds nothing to move proves that the target is empty
        elif drain.queued:
            drain.passes += 1
            drain.wait_until = self._clock.now() + self._settings.retry_seconds
            drain.begin_pass(self._clock.now())
            return
        else:
            drain.phase = Phase.INCOMPLETE if drain.left else Phase.EMPTY
        log.info("%s", ended_sentence(drain, sum(each.count for each in (*drain.left.values(), *self.failed(drain)))))

    @property
    def targets(self) -> frozenset[str]:
        """Targets that are being drained, or were and take no files yet."""
        return frozenset(drain.target for drain in self.all if drain.phase in ACTIVE and not drain.preview)

    @property
    def moving(self) -> frozenset[str]:
        """Targets whose files are being moved, or will be when the drain is resumed."""
        return frozenset(drain.target for drain in self.all
                         if drain.phase in {Phase.RUNNING, Phase.PAUSED} and not drain.preview)

    def failed(self, drain: Drain) -> list[LeftFiles]:
        """Files whose moves of the present pass did not succeed, by reason."""
        return [LeftFiles(detail, count, [example]) for detail, count, example
                in self._journal.reader.not_moved(drain.finding, drain.pass_begun_at)]


def ended_sentence(drain: Drain, left: int) -> str:
    """The end of the last pass, with the number of files that are left."""
    if drain.preview:
        return (f"dry run of a drain of {drain.target}: {count_of(drain.found_files, 'file')} with "
                f"{bytes_text(drain.found_bytes)} there; {drain.movable} would move, {left} would stay")
    if drain.phase is Phase.EMPTY:
        return (f"drain of {drain.target} is complete: {count_of(drain.examined, 'entry', 'entries')} examined in the "
                "last pass, and no file with an object there was found")
    what = f"{count_of(left, 'file')} left there" if left else f"each of {drain.passes} passes found files there"
    return f"drain of {drain.target} is incomplete: {what} (tierctl drain-target)"
