"""Sets defaults of directories, several at a time; each directory is read just before and just after.

tierd starts no act that it could not undo. Lustre may accept a default layout and then change it: if the MDT's limit
for Data-on-MDT (``lod.*.dom_stripesize``) is below the requested size, Lustre makes the first component smaller, or
omits it, without an error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from threading import RLock

from lustre.errors import Stale
from lustre.fid import Fid
from lustre.filesystem import Filesystem
from lustre.layout import directory
from lustre.layout.directory import DefaultStriping, setdirstripe_arguments
from lustre.layout.model import Layout, explain, mirrors, same_shape
from tierd.act.guard import ActGuard, JobCheck
from tierd.act.journal.entry import Default, wanted_default
from tierd.act.journal.writer import Journal
from tierd.act.limits import TokenBucket
from tierd.act.movers.moves import Halt
from tierd.act.outcomes import CompletedAct, CompletedActs
from tierd.acts import ActKind, Outcome
from tierd.clock import Clock
from tierd.model import Action, FindingKey
from tierd.refusal import Reason, Refusal, sentence_of
from tierd.sense.space import call_each
from tierd.text import quoted

_PATTERNS = {"raid0", "mdt", "overstriped"}
_FLAGS = {"extension", "prefer", "prefrd", "prefwr"}
WORDS = {ActKind.SET_DEFAULT_LAYOUT: "default", ActKind.SET_DEFAULT_STRIPING: "default striping"}


def replacement_refusal(own: Layout | None, of_the_root: Layout | None) -> Refusal | None:
    """Refuses to replace a default layout that could not be restored, or that mirrors new files. A directory without a
    default layout of its own uses that of the root.
    """
    holds = own or of_the_root
    if holds is not None and holds.mirror_count > 1:
        return Refusal(Reason.MIRRORS, f"the present default gives new files {holds.mirror_count} mirrors, which "
                       "they would lose")
    for component in own.components if own is not None else ():
        if component.objects or component.stripe_offset >= 0:
            return Refusal(Reason.CANNOT_BE_UNDONE, "the present default names OSTs, which tierd cannot restore")
        unknown = set(component.pattern.split(",")) - _PATTERNS | set(component.flags) - _FLAGS
        if unknown or component.foreign is not None:
            return Refusal(Reason.CANNOT_BE_UNDONE, f"the present default has "
                           f"{', '.join(sorted(unknown)) or 'foreign parts'}, which tierd cannot restore")
    return None


def default_of(filesystem: Filesystem, kind: ActKind, place: str) -> Default:
    """The default of a directory that acts of a kind set."""
    return filesystem.default_striping(place) if kind == ActKind.SET_DEFAULT_STRIPING else filesystem.layout(place)


def set_default(filesystem: Filesystem, kind: ActKind, place: str, wanted: Default, fid: Fid | None) -> None:
    """Set a default of the directory with this FID. Raises OSError, and ValueError for one that Lustre cannot have."""
    if kind == ActKind.SET_DEFAULT_STRIPING:
        assert not isinstance(wanted, Layout)
        filesystem.set_default_striping(place, wanted, fid)
    else:
        assert not isinstance(wanted, DefaultStriping)
        filesystem.set_default_layout(place, wanted, fid)


def set_and_verify(filesystem: Filesystem, action: Action, before: Default, fid: Fid | None) -> str:
    """Set a default and read it back. Returns "", or what the directory has instead. Raises as :func:`set_default`."""
    kind, place, wanted = action.kind, action.directory, wanted_default(action)
    failure: OSError | None = None
    try:
        set_default(filesystem, kind, place, wanted, fid)
    except OSError as error:
        failure = error  # the MDT may have set it nevertheless
    try:
        found = default_of(filesystem, kind, place)
        if (failure or not same_default(found, wanted)) and filesystem.status(place).fid != fid:
            raise Stale(116, "another directory has this name now", place)
    except OSError as error:
        if failure is not None and isinstance(error, FileNotFoundError | Stale):
            raise failure from None
        return ""  # it may be set, even after an error: undo reads it again
    if same_default(found, wanted):
        return ""
    if failure is not None:
        raise failure
    if isinstance(found, Layout) and isinstance(wanted, Layout) and _mdt_part_reduced(found, wanted):
        set_default(filesystem, kind, place, before, fid)
        return ("the MDT stores less data than the layout asks for (lod.*.dom_stripesize); "
                "tierd reverted the change at once")
    return f"the directory has another {WORDS[kind]} now, which tierd leaves in place: {default_words(found)}"


def default_words(default: Default) -> str:
    if default is None:
        return "none"
    return explain(default) if isinstance(default, Layout) else " ".join(setdirstripe_arguments(default))


def same_default(one: Default, other: Default) -> bool:
    """Whether two defaults give new files the same layout, or new directories the same striping."""
    if isinstance(one, Layout) and isinstance(other, Layout):
        ours, theirs = ([part for mirror in mirrors(each) for part in mirror] for each in (one, other))
        # in a file, Lustre has replaced a default count
        return same_shape(one, other) and not any(
            a.stripe_count != b.stripe_count and 0 in (a.stripe_count, b.stripe_count)
            and not (a.on_mdt or a.objects or b.objects) for a, b in zip(ours, theirs, strict=True))
    return not isinstance(one, Layout) and not isinstance(other, Layout) and directory.same_default(one, other)


def _mdt_part_reduced(found: Layout, wanted: Layout) -> bool:
    # the rest must begin where the part on the MDT would have ended
    if not wanted.components[0].on_mdt or len(wanted.components) < 2:
        return False
    rest = [component for component in found.components if not component.on_mdt]
    return bool(rest) and same_shape(
        replace(found, components=(replace(rest[0], extent_start=wanted.components[1].extent_start), *rest[1:])),
        replace(wanted, components=wanted.components[1:]))


DEFAULT_LAYOUTS_AT_ONCE = 8
"""Directories examined and changed at the same time. Each takes some requests to an MDT."""


@dataclass(eq=False)
class DefaultLayoutQueue:
    """Default layouts in order of arrival. Each gets an intent in the journal, the act, and its outcome. Any thread may
    add and drop; one thread at a time sets. No thread holds the lock during a call of the file system.
    """

    filesystem: Filesystem
    journal: Journal
    completed_acts: CompletedActs
    guard: ActGuard
    halt: Halt
    clock: Clock
    dry_run: bool
    bucket: TokenBucket
    executor: Executor | None = None
    """Sets several layouts at the same time; without it they are set one after the other."""
    jobs: JobCheck = field(default_factory=JobCheck)

    def __post_init__(self) -> None:
        self._lock = RLock()
        self._waiting: deque[tuple[Action, int]] = deque()
        """Default layouts to be set, with the numbers of their findings."""
        self._under_way: list[tuple[Action, int]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, actions: Sequence[Action], finding: int) -> None:
        """Queue default layouts in this order: the most active directory first."""
        with self._lock:
            self._waiting.extend((action, finding) for action in actions)

    def has(self, directory: str) -> bool:
        """Whether a default layout of the directory is queued or being set, for any finding."""
        with self._lock:
            return any(action.directory == directory for action, _ in (*self._under_way, *self._waiting))

    def of(self, finding_key: tuple[str, str, str]) -> int:
        """Number of default layouts of one finding that are queued or being set."""
        with self._lock:
            return sum(action.finding == finding_key for action, _ in (*self._under_way, *self._waiting))

    def drop(self, finding: FindingKey | int) -> None:
        """Drop the default layouts of a finding, or of the finding or order of a number, that were not begun."""
        with self._lock:
            self._waiting = deque(each for each in self._waiting if finding not in {each[0].finding, each[1]})

    def set_next(self) -> list[CompletedAct]:
        """Set the next few, as many as the budget allows. Returns their outcomes; empty if the budget allows none."""
        try:
            return call_each(lambda each: self._act(*each), self._next(), self.executor)
        finally:
            self._under_way = []

    def _next(self) -> list[tuple[Action, int]]:
        group: list[tuple[Action, int]] = []
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
            for each in waiting:
                if len(group) >= DEFAULT_LAYOUTS_AT_ONCE or self.bucket.refusal(0, self.clock.now()) is not None:
                    self._waiting.append(each)
                else:
                    self.bucket.spend(0)
                    group.append(each)
            self._under_way = group
        return group

    def _act(self, action: Action, finding: int) -> CompletedAct:
        before, fid, refusal, failure, set_at = None, None, None, "", 0.0
        try:
            fid = self.filesystem.status(action.directory).fid
            before = default_of(self.filesystem, action.kind, action.directory)
            refusal = self._refusal(action, before, fid)
        except OSError as error:
            failure = error.strerror or str(error)
        # also if it is refused: each act that was planned has an outcome
        entry = self.journal.intend(action, finding, before, self.clock.now(), self.dry_run, fid=fid)
        if not (failure or self.dry_run):
            refusal = refusal or self._unpublished() or self.halt()  # asked again: a pause takes effect at once
        if not (failure or refusal or self.dry_run):
            set_at = self.clock.now()
            try:
                failure = set_and_verify(self.filesystem, action, before, fid)
            except (OSError, ValueError) as error:  # ValueError: a layout that Lustre cannot have
                failure = getattr(error, "strerror", None) or str(error)
        result = Outcome.DRY_RUN if self.dry_run else Outcome.DONE
        if failure or refusal:
            result = Outcome.FAILED if failure else Outcome.REFUSED
        return self.completed_acts.ended(CompletedAct(
            action, result, failure or sentence_of(refusal), entry, before, begun_at=set_at,
            reason=refusal.reason if refusal else None))

    def _unpublished(self) -> Refusal | None:
        try:
            # without the intent, a leader that takes over could not undo the act
            self.journal.publish()
        except OSError as error:
            return Refusal(Reason.NO_BROKER, f"the intent cannot be copied to followers: {error.strerror or error}")
        return None

    def _refusal(self, action: Action, before: Default, fid: Fid) -> Refusal | None:
        refusal, real = self._default_refusal(action, before), self.filesystem.path_of(fid)
        if real != action.directory:  # a symbolic link may have replaced the directory
            refusal = Refusal(Reason.PATH_CHANGED, f"the path leads to {quoted(real)} now")
        refusal = refusal or self.halt()
        if action.kind == ActKind.SET_DEFAULT_LAYOUT:  # a striping is for directories below, where the job works
            refusal = refusal or self.jobs.elsewhere(action)
        return refusal or self.guard.refusal(action)

    def _default_refusal(self, action: Action, before: Default) -> Refusal | None:
        # read now: somebody may have set a default since the plan
        if action.kind == ActKind.SET_DEFAULT_STRIPING:
            if isinstance(before, DefaultStriping) and not before.is_usual:
                return Refusal(Reason.HAS_LAYOUT, "the directory has a default striping of its own now")
            if self.filesystem.directory_stripes(action.directory).is_changing:
                return Refusal(Reason.OTHER_MOVER, "the directory is being migrated or split")
            return None
        assert not isinstance(before, DefaultStriping)
        if before is not None and same_default(before, action.layout):
            return Refusal(Reason.HAS_LAYOUT, "the directory already has this layout")
        return replacement_refusal(before, None if before is not None else self.filesystem.layout("/"))
