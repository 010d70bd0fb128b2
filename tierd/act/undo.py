"""Undoing acts from the journal, unless somebody changed the file or directory since.

The layout to restore comes from the journal and from the pools as they are now. A file may have had no pool: the file
system's default put its objects anywhere. Movers place nothing without a pool, since "anywhere" may be the pool that
the file should leave. Such a component gets the smallest pool that holds all targets of its objects, as the journal
recorded them; where no pool does, an administrator has to decide.

Lustre copies the default layout of a directory into each new directory in it (``lod_dir_striping_create_internal`` in
lustre/lod/lod_object.c; only the root's is not copied). Undo therefore restores the default of the directories that
were made below one while it had tierd's default: else they would send files to flash for good.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import NamedTuple

from lustre.filesystem import Filesystem
from lustre.layout.model import Component, Layout, same_shape
from tierd.act.default_layouts import same_default
from tierd.act.journal.entry import Entry
from tierd.act.journal.writer import Journal
from tierd.act.movers.moves import Halt, Move, Mover, MoveResult, never_halt
from tierd.act.outcomes import outcome_of_move
from tierd.acts import ActKind, Outcome
from tierd.clock import Clock
from tierd.refusal import Reason, Refusal
from tierd.sense.paths import join


def without_objects(layout: Layout) -> Layout:
    """The layout as a wish: without the objects and flags of the file that had it."""
    return replace(layout, generation=0, state="", components=tuple(
        replace(c, objects=(), flags=tuple(f for f in c.flags if f == "extension"), component_id=0, stripe_offset=-1)
        for c in layout.components))


def undo_layout(before: Layout, pools: Mapping[str, tuple[str, ...]]) -> Layout:
    """The earlier layout with a pool for every component on OSTs. Raises ValueError that says why there is none.

    >>> from lustre.fid import Fid
    >>> from lustre.layout.model import StripeObject
    >>> had = Layout((Component(objects=(StripeObject(3, Fid(1, 1)),)),), composite=False)
    >>> pools = {"all": ("fs-OST0000", "fs-OST0003"), "hdd": ("fs-OST0003",), "flash": ("fs-OST0000",)}
    >>> undo_layout(had, pools).components[0].pool
    'hdd'
    """
    found: list[str] = []
    for component in before.components:
        found.append("" if component.on_mdt else component.pool or _pool_of(component, pools))
    beside = next((pool for pool in found if pool), "")
    wanted = without_objects(before)
    components = []
    for component, pool in zip(wanted.components, found, strict=True):
        beside = pool or beside
        if component.on_mdt:
            components.append(component)
        elif not beside:
            raise ValueError("the layout it had names no pool and no objects: nothing says where it lay")
        else:  # a component without objects goes where the one before it went
            components.append(replace(component, pool=beside))
    return replace(wanted, components=tuple(components))


def _pool_of(component: Component, pools: Mapping[str, tuple[str, ...]]) -> str:
    """The smallest pool with all targets of the component's objects; "" for a component that has none."""
    indices = {stripe.ost_index for stripe in component.objects}
    if not indices:
        return ""
    holding = [(len(members), name) for name, members in pools.items()
               if indices <= {int(target[-4:], 16) for target in members}]
    if not holding:
        named = ", ".join(f"OST{index:04x}" for index in sorted(indices))
        raise ValueError(f"it had no pool and lay on {named}, and no pool holds all of these: make one "
                         "(lctl pool_new, pool_add), or move it by hand (lfs migrate --non-block -o)")
    return min(holding)[1]


MAX_SEARCH_SECONDS = 60.0
"""So long may be looked for them: names are listed, and only directories are asked about."""
_CLOCKS_DIFFER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class InheritedDefault:
    """What was passed on: whose it was, and since when."""

    ours: Layout
    before: Layout | None
    """What these directories get, as they would have got it then."""
    since: float
    spared: Collection[str]
    """Directories to which tierd gave a default of their own: each is an act of its own."""


def restore_inherited(filesystem: Filesystem, top: str, passing: InheritedDefault, stop: Halt) -> str:
    """Put back the earlier default in all that were made below ``top`` since; what is to be said of it, or "".

    One that has another default was given that by somebody, and so were those in it. ``stop`` says why no more may be
    done.
    """
    changed = older = 0
    troubles: list[str] = []
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        try:
            names = filesystem.subdirectories(directory)
        except OSError as error:
            troubles.append(error.strerror or str(error))
            continue
        for name in names:
            if why := stop():
                troubles.append(why.sentence)
                return _inherited_summary(changed, older, troubles)
            place = join(directory, name)
            try:
                found = _restore_one(filesystem, place, passing)
            except FileNotFoundError:
                continue  # removed meanwhile
            except (OSError, ValueError) as error:
                troubles.append(getattr(error, "strerror", None) or str(error))
                continue
            older += found == "older"
            if found == "changed":
                changed += 1
                waiting.append(place)
    return _inherited_summary(changed, older, troubles)


def _restore_one(filesystem: Filesystem, place: str, passing: InheritedDefault) -> str:
    """What became of one directory."""
    present = filesystem.layout(place)
    if present is None or not same_shape(present, passing.ours) or place in passing.spared:
        return "another"
    if filesystem.status(place).mtime < passing.since - _CLOCKS_DIFFER_SECONDS:
        return "older"  # nothing was made in it since, and it was not made itself: it had this default before
    filesystem.set_default_layout(place, passing.before)
    return "changed"


def _inherited_summary(changed: int, older: int, troubles: list[str]) -> str:
    words = []
    if changed:
        words.append(f"and in {changed} directories made below it meanwhile")
    if older:
        words.append(f"{older} below it had the same default before, and keep it")
    if troubles:
        words.append(f"directories made below it meanwhile may still have it ({troubles[0]}): lfs getstripe -d -r")
    return "; ".join(words)


class UndoResult(NamedTuple):
    """UNDONE, or the outcome of an undo that did not succeed, and the reason."""

    outcome: Outcome
    detail: str


class Undo:
    """Part of the gate: restores the layout before an act, with the same mover."""

    def __init__(self, filesystem: Filesystem, mover: Mover, journal: Journal, clock: Clock,
                 blocked_by: Halt = never_halt) -> None:
        """``blocked_by`` refuses every undo: the pause file, or the claim of another tierd."""
        self._blocked_by = blocked_by
        self._filesystem = filesystem
        self._mover = mover
        self._journal = journal
        self._clock = clock
        self._lock = Lock()
        self._busy: set[int] = set()
        """Acts that a thread takes back at this moment."""
        self.undone = 0
        """Acts taken back since the start."""
        self.undone_at = 0.0

    def held(self) -> Refusal | None:
        """Refuses every undo."""
        return self._blocked_by()

    def __call__(self, entry: Entry, reason: str) -> UndoResult:
        """Undo one act: ``undone`` and the reason, or why not. Maintenance windows do not keep it from being done."""
        with self._lock:
            if entry.id in self._busy:
                return UndoResult(Outcome.REFUSED, "its undo is under way")
            self._busy.add(entry.id)
        try:
            return self._taken_back(self._journal.entry(entry.id) or entry, reason)
        finally:
            with self._lock:
                self._busy.discard(entry.id)

    def _taken_back(self, entry: Entry, reason: str) -> UndoResult:
        result = self._attempted(entry, reason)
        if result.outcome == Outcome.UNDONE:
            with self._lock:
                self.undone, self.undone_at = self.undone + 1, self._clock.now()
            self._journal.end(entry.id, result.outcome, result.detail, self._clock.now())
        return result

    def _attempted(self, entry: Entry, reason: str) -> UndoResult:
        if entry.outcome == Outcome.DRY_RUN:
            return UndoResult(Outcome.UNDONE, reason)
        if entry.outcome != Outcome.DONE:
            return UndoResult(Outcome.REFUSED, f"it is {entry.outcome}, so there is nothing to undo")
        try:
            if refusal := self._blocked_by():
                return UndoResult(Outcome.REFUSED, refusal.sentence)
            return self._undone(entry, reason)
        except OSError as error:
            return UndoResult(Outcome.FAILED, error.strerror or str(error))
        except ValueError as error:
            return UndoResult(Outcome.REFUSED, str(error))

    def _undone(self, entry: Entry, reason: str) -> UndoResult:
        present = self._filesystem.layout(entry.place)
        if entry.fid is not None and self._filesystem.status(entry.place).fid != entry.fid:
            return UndoResult(Outcome.REFUSED, "another file or directory has this name now")
        if entry.kind == ActKind.SET_DEFAULT_LAYOUT and same_default(present, entry.layout_before):
            return UndoResult(Outcome.UNDONE, self._with_inherited("it has the default again that it had", entry))
        if present is None or entry.layout_after is None or not same_shape(present, entry.layout_after):
            return UndoResult(Outcome.REFUSED, "somebody changed its layout since")
        if entry.kind == ActKind.SET_DEFAULT_LAYOUT:
            return self._default_put_back(entry, reason)
        if entry.layout_before is None:
            return UndoResult(Outcome.REFUSED, "the layout it had is not known")
        move = Move(entry.place, undo_layout(entry.layout_before, self._filesystem.pools()), entry.fid)
        self._journal.begin_undo(entry.id, self._clock.now())
        result = self._moved_back(move)
        if result.outcome == Outcome.UNDONE:
            return UndoResult(result.outcome, reason)
        self._journal.end(entry.id, Outcome.DONE, f"not undone: {result.detail}", self._clock.now())
        return result

    def _default_put_back(self, entry: Entry, reason: str) -> UndoResult:
        self._journal.begin_undo(entry.id, self._clock.now())
        try:
            self._filesystem.set_default_layout(entry.place, entry.layout_before)
            if same_default(self._filesystem.layout(entry.place), entry.layout_before):
                return UndoResult(Outcome.UNDONE, self._with_inherited(reason, entry))
            detail = "Lustre made another default of the one it had"
        except (OSError, ValueError) as error:  # whether it was done in spite of it, the next one who tries will see
            detail = getattr(error, "strerror", None) or str(error)
        self._journal.end(entry.id, Outcome.DONE, f"not undone: {detail}", self._clock.now())
        return UndoResult(Outcome.FAILED, detail)

    def _with_inherited(self, reason: str, entry: Entry) -> str:
        """The reason, and what became of directories that were made below meanwhile."""
        if entry.layout_after is None:
            return reason
        until = self._clock.now() + MAX_SEARCH_SECONDS
        spared = self._journal.default_layout_directories() - {entry.place}
        passing = InheritedDefault(entry.layout_after, entry.layout_before, entry.intended_at, spared)
        late = Refusal(Reason.OUT_OF_TIME, "there was no time to look further")
        more = restore_inherited(self._filesystem, entry.place, passing,
                         lambda: self._blocked_by() or (late if self._clock.now() > until else None))
        return "; ".join(filter(None, (reason, more)))

    def _moved_back(self, move: Move) -> UndoResult:
        for moved in self._mover.move([move]):
            done = moved.result in {MoveResult.DONE, MoveResult.ALREADY}
            return UndoResult(Outcome.UNDONE if done else outcome_of_move(moved), moved.detail)
        return UndoResult(Outcome.FAILED, "the mover did not report an outcome")
