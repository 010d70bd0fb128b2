"""Undoes acts from the journal, unless somebody has changed the file or directory since.

The layout to restore comes from the journal and from the present pools. A file may have had no pool: the file system's
default put its objects on any target. Movers place nothing without a pool, since "any target" includes the pool that
the file should leave. Such a component gets the smallest pool that has all targets of its objects, as the journal
recorded them. If no pool has them all, an administrator has to decide.

Lustre copies the default layout of a directory into each new directory in it (``lod_dir_striping_create_internal`` in
lustre/lod/lod_object.c; only the root's is not copied). Undo therefore also restores directories that were created
below a directory while it had tierd's default. Without that, their new files would go to flash for ever.

After a restart, an act that was under way is closed by reading its file or directory. A file is whole at any time and
has either the earlier layout or the new one; the journal records which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from errno import ENOENT
from math import inf
from threading import Lock
from typing import NamedTuple

from lustre.errors import Gone, Stale, UnknownLayout
from lustre.filesystem import FileStatus, Filesystem
from lustre.layout.model import Component, Layout, in_sync, names_osts, without_objects
from tierd.act.default_layouts import WORDS, default_of, default_words, same_default, set_default
from tierd.act.guard import with_parents
from tierd.act.journal.entry import Default, Entry
from tierd.act.journal.writer import Journal
from tierd.act.movers.checks import mirror_left
from tierd.act.movers.moves import Halt, Move, Mover, MoveResult, never_halt, outcome_of_each
from tierd.act.outcomes import outcome_of_move
from tierd.acts import DEFAULT_KINDS, ActKind, Outcome
from tierd.clock import Clock
from tierd.sense.paths import directory_of, join
from tierd.text import count_of


def undo_layout(before: Layout, pools: Mapping[str, tuple[str, ...]]) -> Layout:
    """The earlier layout with a pool for every component on OSTs. Raises ValueError if a pool is unknown.

    >>> from lustre.fid import Fid
    >>> from lustre.layout.model import StripeObject
    >>> had = Layout((Component(objects=(StripeObject(3, Fid(1, 1)),)),), composite=False)
    >>> pools = {"all": ("fs-OST0000", "fs-OST0003"), "hdd": ("fs-OST0003",), "flash": ("fs-OST0000",)}
    >>> undo_layout(had, pools).components[0].pool
    'hdd'
    """
    found = ["" if part.on_mdt else part.pool or _pool_of(part, pools) for part in before.components]
    beside = next(filter(None, found), "")
    wanted = without_objects(before)
    components = []
    for component, pool in zip(wanted.components, found, strict=True):
        beside = pool or beside  # a component without objects gets the pool of the one before it
        if not component.on_mdt and not beside:
            raise ValueError("the earlier layout has no pool and no objects: the earlier pool is unknown")
        components.append(component if component.on_mdt else replace(component, pool=beside))
    return replace(wanted, components=tuple(components))


def earlier_layout(entry: Entry, pools: Mapping[str, tuple[str, ...]]) -> Layout:
    """The layout that undoes a move. Raises ValueError if it is unknown, or a pool of it."""
    if entry.layout_before is None or entry.layout_after is None:
        raise ValueError("the earlier layout is unknown")
    wanted = without_objects(entry.layout_before)
    if max(wanted.mirror_count, entry.layout_after.mirror_count) > 1:
        return wanted  # one mirror stays where it is
    if not names_osts(entry.layout_after):
        return undo_layout(entry.layout_before, pools)
    return replace(wanted, components=tuple(
        replace(component, ost_list=tuple(stripe.ost_index for stripe in had.objects))
        for component, had in zip(wanted.components, entry.layout_before.components, strict=True)))


def _pool_of(component: Component, pools: Mapping[str, tuple[str, ...]]) -> str:
    indices = {stripe.ost_index for stripe in component.objects}
    if not indices:
        return ""
    holding = [(len(members), name) for name, members in pools.items()
               if indices <= {int(target[-4:], 16) for target in members}]
    if not holding:
        named = ", ".join(f"OST{index:04x}" for index in sorted(indices))
        raise ValueError(f"the file had no pool and was on {named}, and no pool has all of these: create one "
                         "(lctl pool_new, pool_add), or move the file by hand (lfs migrate --non-block -o)")
    return min(holding)[1]  # the smallest says most about where the file was


SEARCH_SECONDS = 10.0
"""Time of one step of the search for directories that inherited a default layout. Verdicts and other undos wait."""
_CLOCKS_DIFFER_SECONDS = 60.0


class Below(Enum):
    """What became of a directory below one whose default is undone."""

    RESTORED = "restored"
    OLDER = "older"
    """It had this default before the act: it is left alone, and all below it."""
    ANOTHER = "another"
    """It has another default: it is left alone, and all below it."""
    PASSED = "passed"
    """It is left alone; those below it are looked at."""


@dataclass(eq=False)
class Search:
    """The search below a directory for those that inherited its default, as far as it is."""

    place: str = ""
    reason: str = ""
    """Why the act is undone, and what was found out before the search."""
    resumed: bool = False
    """Whether an undo that did not end may have restored directories, so that only those below have tierd's default."""
    waiting: list[tuple[str, float]] = field(default_factory=list)
    """Directories, each with the time from which those created there are left to the undo of a later act that set the
    same default. Those below an older one inherited it from there, whenever they were created."""
    own: Mapping[str, float] = field(default_factory=dict)
    """Directories with a default by an act of their own, which is left alone, as FIDs or paths. If they had inherited
    the default before it, those below may have it too: until an act there set the same. Else 0."""
    found: Counter[Below] = field(default_factory=Counter)
    trouble: str = ""
    """The first error."""

    def step(self, filesystem: Filesystem, entry: Entry, stop: Callable[[], bool]) -> None:
        """Restore the earlier default of directories that inherited the one of an act, until ``stop``. A directory with
        another default got it from somebody: it and all below it are left alone.
        """
        while self.waiting and not stop():
            place, until = self.waiting.pop()  # the deepest first keeps the list short
            try:
                # the directory of the act itself has its default back already
                became, until = (Below.PASSED, until) if place == self.place else self.restore_one(
                    filesystem, place, entry, until)
                self.found[became] += 1
                if became in {Below.RESTORED, Below.PASSED}:
                    self.waiting += [(join(place, name), until) for name in filesystem.subdirectories(place)]
            except FileNotFoundError:
                continue  # removed meanwhile
            except (OSError, ValueError) as error:
                self.trouble = self.trouble or getattr(error, "strerror", None) or str(error)

    def restore_one(self, filesystem: Filesystem, place: str, entry: Entry, until: float) -> tuple[Below, float]:
        """Restore a directory if it is to be. Returns what became of it, and the time for those below."""
        # most directories end here, for one request
        if not (same_default(filesystem.layout(place), entry.after) or any(self.own.values()) or self.resumed):
            return Below.ANOTHER, until
        status = filesystem.status(place)
        present = filesystem.layout(place)  # behind the FID: another directory may have taken the name
        is_left = status.mtime >= until - _CLOCKS_DIFFER_SECONDS
        until = until if is_left else inf
        own = [self.own[name] for name in (place, str(status.fid)) if name in self.own]
        if own:
            return (Below.PASSED, min(until, *own)) if any(own) else (Below.ANOTHER, until)
        # the undo that was interrupted has restored it, though maybe not those below
        if self.resumed and same_default(present, entry.before) and not _is_older(status, entry):
            return Below.PASSED, inf
        if not same_default(present, entry.after):
            return Below.ANOTHER, until
        if is_left:
            return Below.PASSED, until  # those below may be older
        if _is_older(status, entry):
            return Below.OLDER, until
        filesystem.set_default_layout(place, entry.layout_before, status.fid)
        return Below.RESTORED, until

    def __str__(self) -> str:
        words, found = [self.reason] if self.reason else [], self.found
        if found[Below.RESTORED]:
            words.append(f"also restored {count_of(found[Below.RESTORED], 'directory', 'directories')} created below")
        if found[Below.OLDER]:
            words.append(f"left {count_of(found[Below.OLDER], 'older directory', 'older directories')} below with this "
                         "default")
        if self.trouble:
            words.append(f"directories created below may still have tierd's default ({self.trouble}): "
                         "lfs getstripe -d -r")
        if self.waiting:
            words.append("tierd continues with the directories below")
        return "; ".join(words)


def _is_older(status: FileStatus, entry: Entry) -> bool:
    """Whether a directory had its default before the act: neither it nor anything in it was created since."""
    return status.mtime < entry.intended_at - _CLOCKS_DIFFER_SECONDS


def _hand_down(journal: Journal, filesystem: Filesystem, entry: Entry, *,
               again: bool) -> tuple[dict[str, float], float]:
    """Enter what later acts restore in directories that had inherited the default of an act: what was before both.

    ``entry`` has the present path of its directory. Of several acts in a directory, this is for the first one in force:
    each later one restores the default of the one before it. ``again``: it may be entered already. Returns
    :attr:`Search.own`, and when a later act set the same default there.
    """
    recorded = journal.entry(entry.id) or entry  # has the path at the time of the act
    undoing = [each for each in journal.undoing() if each.kind == entry.kind and each.id != entry.id]
    in_force = sorted((*journal.judgements.default_layouts_in_force(), *undoing), key=lambda each: each.id)
    until = min((each.intended_at for each in in_force if each.id > entry.id and each.fid == entry.fid is not None
                 and same_default(each.after, entry.after)), default=inf)
    acts: dict[str, list[Entry]] = {}
    for each in in_force:
        acts.setdefault(str(each.fid or each.place), []).append(each)
    through = dict.fromkeys(acts, 0.0)
    for directory, there in acts.items():
        for act in there:
            had_it = same_default(act.before, entry.after) or (again and same_default(act.before, entry.before))
            there_too = act.fid == entry.fid is not None and act.outcome == Outcome.UNDOING
            if act.id > entry.id and had_it and (
                    there_too or _inherited(filesystem, act, entry, recorded.place, until=until)):
                journal.set_before(act.id, entry.before)
                through[directory] = min((each.intended_at for each in there
                                          if same_default(each.after, entry.after)), default=inf)
                if act.outcome == Outcome.UNDOING:  # it may have restored what it had inherited
                    with suppress(OSError):
                        Search().restore_one(filesystem, located(act, filesystem).place, entry, inf)
            if act.outcome == Outcome.DONE:  # later ones restore what this one has set
                break
    return through, until


def _inherited(filesystem: Filesystem, act: Entry, entry: Entry, recorded: str, *, until: float) -> bool:
    """Whether the directory of an act is below that of another, or was, no older than the other act, and older than
    ``until``. Another directory may have the path ``recorded`` now, if that of the other act was renamed.
    """
    above = join(entry.place, "")  # /proj2 is not below /proj
    try:
        place = located(act, filesystem).place
        chain = [filesystem.status(each) for each in with_parents(place) if each == place or each.startswith(above)]
        # below one that is older than ``until``, all inherited it from there
        times = [each.mtime + _CLOCKS_DIFFER_SECONDS for each in chain]
        if _is_older(chain[0], entry) or min(act.intended_at, *times) >= until:
            return False
    except OSError:  # the present path is not known: compare those that the journal has
        return act.intended_at < until and act.place.startswith((above, join(recorded, "")))
    return place.startswith(above) or (recorded == entry.place and act.place.startswith(above))


class Has(Enum):
    """What it has."""

    AFTER = "after"
    """What the act wanted."""
    BEFORE = "before"
    """What it had before, or what undoes the move."""
    OTHER = "other"


def located(entry: Entry, filesystem: Filesystem) -> Entry:
    """The act with the present path, after a rename too. Raises FileNotFoundError if it was removed, and OSError.
    ``lfs migrate -m`` gives a directory another FID, and leaves it its default layout: the act then has this FID.
    """
    if entry.fid is None:
        return entry
    with suppress(FileNotFoundError):
        if filesystem.status(entry.place).fid == entry.fid:
            return entry
    place, gone = entry.place, None
    try:
        place = filesystem.path_of(entry.fid)  # of a stripe of the directory, until its migration ends
    except (FileNotFoundError, Stale) as error:
        gone = error
    with suppress(FileNotFoundError):
        there = filesystem.status(place)
        if (entry.kind == ActKind.SET_DEFAULT_LAYOUT and there.is_directory and there.fid != entry.fid
                and same_default(filesystem.layout(place), entry.after)
                and not same_default(filesystem.layout(directory_of(place)), entry.after)):  # nor made again there
            return replace(entry, place=place, fid=there.fid)
    if gone is not None:
        raise Gone(ENOENT, "removed", place) from gone
    return replace(entry, place=place)


def present_state(entry: Entry, filesystem: Filesystem, earlier: Layout | None = None) -> tuple[Has, Default]:
    """What the place of an act has, compared with the act, and its layout. ``earlier`` is the layout that undoes a
    move. Raises FileNotFoundError if it is gone or another one has its name, and OSError.
    """
    present = default_of(filesystem, entry.kind, entry.place)
    if filesystem.status(entry.place).fid != entry.fid and entry.fid is not None:
        raise Gone(ENOENT, "another file or directory has this name now", entry.place)
    if entry.after is not None and same_default(present, entry.after):
        return Has.AFTER, present
    if entry.kind == ActKind.MIGRATE:
        return Has.BEFORE if earlier is not None and same_default(present, earlier) else Has.OTHER, present
    return Has.BEFORE if same_default(present, entry.before) else Has.OTHER, present


class UndoResult(NamedTuple):
    """UNDONE, or the outcome of an undo that did not succeed, with the reason. UNDER_WAY if another thread is undoing
    the act. UNDOING if the directory is restored, and the search below continues.
    """

    outcome: Outcome
    detail: str

    @property
    def restored(self) -> bool:
        return self.outcome in {Outcome.UNDONE, Outcome.UNDOING}


class Undo:
    """Restores the layout that a file or directory had before an act. Uses the gate's mover."""

    def __init__(self, filesystem: Filesystem, mover: Mover, journal: Journal, clock: Clock,
                 blocked_by: Halt = never_halt, *, trip: Callable[[str], None] = lambda _: None) -> None:
        self.held = blocked_by
        """Refuses every undo: a dry run, the pause file, or the claim of another tierd."""
        self._trip = trip
        """Stops all moves, with the reason: a file is not as expected after an undo."""
        self._filesystem = filesystem
        self._mover = mover
        self._journal = journal
        self._clock = clock
        self._lock = Lock()
        self._busy: set[int] = set()
        """Acts that a thread is undoing now."""
        self._searches: dict[int, Search] = {}
        """Those that continue, by the number of the act."""
        self.undone = 0
        """Acts undone since the start."""
        self.undone_at = 0.0

    def __call__(self, entry: Entry, reason: str) -> UndoResult:
        """Undo one act. Returns the outcome and the reason. Maintenance windows do not prevent an undo."""
        with self._lock:
            if entry.id in self._busy:  # a verdict and an administrator may want the same
                return UndoResult(Outcome.UNDER_WAY, "the undo of this act is under way")
            self._busy.add(entry.id)
        try:
            if (present := self._journal.entry(entry.id) or entry).outcome == Outcome.UNDONE != entry.outcome:
                return UndoResult(Outcome.UNDER_WAY, "another undo of this act has just ended")
            result = self._attempted(present, reason)
            if result.outcome == Outcome.UNDONE:
                with self._lock:
                    self.undone, self.undone_at = self.undone + 1, self._clock.now()
            if result.restored:
                self._journal.end(entry.id, result.outcome, result.detail, self._clock.now())
            return result
        finally:
            with self._lock:
                self._busy.discard(entry.id)

    def _attempted(self, entry: Entry, reason: str) -> UndoResult:
        if entry.outcome == Outcome.DRY_RUN:
            return UndoResult(Outcome.UNDONE, reason)
        if entry.outcome not in {Outcome.DONE, Outcome.UNDOING}:
            return UndoResult(Outcome.REFUSED, f"the act is {entry.outcome}, so there is nothing to undo")
        try:
            if refusal := self.held():
                return UndoResult(Outcome.REFUSED, refusal.sentence)
            result = self._undone(entry, reason)
        except OSError as error:
            return UndoResult(Outcome.FAILED, error.strerror or str(error))
        except ValueError as error:
            result = UndoResult(Outcome.REFUSED, str(error))
        # it cannot continue: the act is in force, else each start would resume an undo that is refused
        if entry.outcome == Outcome.UNDOING and not result.restored and result.outcome != Outcome.FAILED:
            self._searches.pop(entry.id, None)
            self._journal.end(entry.id, Outcome.DONE, f"not undone: {result.detail}", self._clock.now())
        return result

    def _undone(self, entry: Entry, reason: str) -> UndoResult:
        try:
            entry = located(entry, self._filesystem)
        except FileNotFoundError:
            return (UndoResult(Outcome.UNDONE, "the directory no longer exists") if entry.kind in DEFAULT_KINDS
                    else UndoResult(Outcome.REFUSED, "the file no longer exists"))
        earlier = earlier_layout(entry, self._filesystem.pools()) if entry.kind == ActKind.MIGRATE else None
        found, _ = present_state(entry, self._filesystem, earlier)
        later = self._journal.later_in_force(entry) if entry.kind == ActKind.SET_DEFAULT_LAYOUT else []
        if later and (found is not Has.AFTER or any(same_default(each.after, entry.after) for each in later)):
            # of those after it, each replaced the one before; after a kill it may be entered already
            resumed = same_default(later[0].before, entry.before)
            if resumed or same_default(later[0].before, entry.after):
                self._journal.set_before(later[0].id, entry.before)
                reason += f"; act {later[0].id} has replaced it; undoing that act restores what was before both"
                return self._with_inherited(reason, entry, resumed=resumed)
            found = Has.OTHER  # somebody changed it before the next act, whatever it is now
        if found is Has.BEFORE:
            return self._with_inherited(f"it already has its earlier {WORDS.get(entry.kind, 'layout')}", entry,
                                        resumed=True)
        if found is Has.OTHER:
            return UndoResult(Outcome.REFUSED, f"somebody has changed the {WORDS.get(entry.kind, 'layout')} since")
        # followers too: a leader that takes over must know that the place may be restored already
        self._journal.begin_undo(entry.id, self._clock.now())
        try:
            self._journal.publish()
            result = self._restored(entry, earlier)
        except (OSError, ValueError) as error:  # if it was restored after all, the next undo finds it
            result = UndoResult(Outcome.FAILED, getattr(error, "strerror", None) or str(error))
        if result.outcome == Outcome.UNDONE:
            return self._with_inherited(reason, entry, resumed=False)
        self._journal.end(entry.id, entry.outcome, f"not undone: {result.detail}", self._clock.now())
        return result

    def _restored(self, entry: Entry, earlier: Layout | None) -> UndoResult:
        if earlier is not None:
            (moved,) = outcome_of_each(self._mover.move, [Move(
                entry.place, earlier, entry.fid,
                own_mirrors=entry.layout_after is not None and entry.layout_after.mirror_count > 1)])
            done = moved.result in {MoveResult.DONE, MoveResult.ALREADY}
            if moved.result is MoveResult.DOUBTFUL:
                self._trip(f"a file is not as expected after the undo of its move: {entry.place}")
            return UndoResult(Outcome.UNDONE if done else outcome_of_move(moved), moved.detail)
        # directories that were created under a default striping keep their stripes, and pass nothing on
        set_default(self._filesystem, entry.kind, entry.place, entry.before, entry.fid)
        # Lustre may change what it accepts
        if same_default(default_of(self._filesystem, entry.kind, entry.place), entry.before):
            return UndoResult(Outcome.UNDONE, "")
        return UndoResult(Outcome.FAILED, f"Lustre changed the {WORDS[entry.kind]} while restoring it")

    def _with_inherited(self, reason: str, entry: Entry, *, resumed: bool) -> UndoResult:
        if entry.kind != ActKind.SET_DEFAULT_LAYOUT or entry.layout_after is None:
            return UndoResult(Outcome.UNDONE, reason)
        begun = self._clock.now()
        # a restart continues the search
        self._journal.begin_undo(entry.id, begun)
        own, until = _hand_down(self._journal, self._filesystem, entry, again=resumed)
        search = self._searches.pop(entry.id, None)
        if search is None or search.place != entry.place:  # it was renamed
            search = Search(entry.place, search.reason if search else reason, resumed, [(entry.place, until)])
        search.own = own
        # also if the clock was set back, which gives a negative time
        search.step(self._filesystem, entry, lambda: self.held() is not None
                    or not 0 <= self._clock.now() - begun <= SEARCH_SECONDS)
        if search.waiting:
            self._searches[entry.id] = search
        return UndoResult(Outcome.UNDOING if search.waiting else Outcome.UNDONE, str(search))


def close_unfinished(journal: Journal, filesystem: Filesystem, now: float, only: Container[int] | None = None, *,
                     again: bool = True) -> Iterator[tuple[Entry, Outcome, str]]:
    """Close every act that was under way, or ``only`` some. Yields each as it was, with its outcome now and the detail.
    An undo stays under way unless it is found done; that of a default layout is not over before the directories below
    are looked at. A move stays under way while its file cannot be examined. ``again``: moves that changed nothing wait
    again.
    """
    for entry in (each for each in journal.unfinished() if only is None or each.id in only):
        outcome, detail, unchanged = _outcome_found(entry, filesystem)
        # it has the default of the later act, which nobody else has set
        if outcome == Outcome.INTERRUPTED and entry.outcome == Outcome.UNDOING and journal.later_in_force(entry):
            outcome, detail = Outcome.UNDOING, NOT_UNDONE
        if again and unchanged:
            journal.queue_again(entry, filesystem.fsname)
        if outcome != Outcome.UNDER_WAY:
            journal.end(entry.id, outcome, detail, now)
        yield entry, outcome, detail


NOT_UNDONE = "tierd ended before the act was undone"


def _outcome_found(entry: Entry, filesystem: Filesystem) -> tuple[Outcome, str, bool]:
    """The outcome of an act that was under way, the detail, and whether it changed nothing."""
    if entry.dry_run and entry.kind == ActKind.MIGRATE:
        return Outcome.INTERRUPTED, "tierd ended before it had examined the file", True
    if entry.dry_run:
        return Outcome.DRY_RUN, "", False
    try:
        entry = located(entry, filesystem)
        found, present = present_state(entry, filesystem)
    except FileNotFoundError:
        return Outcome.GONE, "tierd ended during the act, and the file or directory no longer exists", False
    except OSError as error:
        found_as = Outcome.INTERRUPTED if isinstance(error, UnknownLayout) else Outcome.UNDER_WAY
        found_as = Outcome.DONE if entry.kind in DEFAULT_KINDS else found_as  # undo examines it again
        return (Outcome.UNDOING if entry.outcome == Outcome.UNDOING else found_as,
                f"tierd ended during the act, and cannot examine the result: {error}", False)
    neither = (f"tierd ended during the act; the {WORDS.get(entry.kind, 'layout')} is neither the earlier nor the "
               f"wanted one: {default_words(present)}")
    if entry.kind in DEFAULT_KINDS and found is Has.OTHER:
        return Outcome.INTERRUPTED, neither, False
    if entry.outcome == Outcome.UNDOING:
        is_over = found is not Has.AFTER and entry.kind != ActKind.SET_DEFAULT_LAYOUT
        return (Outcome.UNDONE, "found undone", False) if is_over else (Outcome.UNDOING, NOT_UNDONE, False)
    was_mirrored = entry.layout_before is not None and entry.layout_before.mirror_count > 1
    layout = present if isinstance(present, Layout) else None
    if found is Has.AFTER and (layout is None or in_sync(layout) or not was_mirrored):
        return Outcome.DONE, "tierd ended before it recorded the outcome; found done", False
    if mirror := mirror_left(entry.layout_before, layout):
        return Outcome.INTERRUPTED, ("tierd ended during the act. The file is whole and has two mirrors; remove the "
                                     f"second: lfs mirror split -d --mirror-id {mirror} FILE"), False
    if entry.before is None or same_default(present, entry.before):
        return Outcome.INTERRUPTED, "tierd ended before the act was done; nothing is changed", True
    return Outcome.INTERRUPTED, neither, False
