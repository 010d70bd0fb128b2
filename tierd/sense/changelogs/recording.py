"""Checks whether each MDT still records what tierd needs. A changelog without new records may be idle or disabled.

Reading the changelog device succeeds in both cases. When its last user is deregistered, an MDT writes no more records
and its index does not change. If other users remain, it continues, and may drop records before tierd has read them. A
mask excludes types of records (``mdd_changelog_user_purge`` and ``changelog_mask`` of Lustre 2.17). tierd uses three
kinds of evidence, the best first:

* the state of the MDT (``mdd.*.changelog_users`` and its mask), if this node is the MDS or an exporter shows it;
* clearing, which fails for a user that was deregistered (:class:`tierd.sense.changelogs.follow.ChangelogClearing`);
* a mark: a file that tierd creates, renames, opens, closes and removes on the MDT. Its records must appear.

A mark has no object on any OST, so that tierd can make it while an OST hangs: ``mknod`` creates it, and it is opened
with ``O_LOV_DELAY_CREATE``, as by ``lfs setstripe``. Marks are in the folder of the claim. If that folder is on another
MDT, tierd creates a directory on the right MDT in it (``lfs mkdir -i``).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from lustre.changelog.record import RecordType
from lustre.fid import Fid
from tierd.clock import Clock
from tierd.sense.changelogs.packed import Records
from tierd.sense.readings import ChangelogState, number_of
from tierd.text import first_names

NEEDED_TYPES = (RecordType.CREATE, RecordType.UNLINK, RecordType.RENAME, RecordType.CLOSE, RecordType.LAYOUT)
"""Record types that tierd needs to know which files exist, their paths, whether they are open, and who moves them."""
MARK_TYPES = frozenset({RecordType.CREATE, RecordType.UNLINK, RecordType.RENAME, RecordType.CLOSE})
"""Record types that a mark causes."""
WANTED_MASK = "+CREAT +MKDIR +OPEN +CLOSE +UNLNK +RENME +LYOUT"
MARK_SECONDS = 15.0
"""Interval of marks on an idle MDT without other evidence."""
MARK_SECONDS_FOR_MASK = 600.0
"""Interval of marks on an idle MDT of which only the mask is unknown: its users are known, or clearing works."""
RESTARTED_SECONDS = 120.0
"""Time after which an index below tierd's position means that the changelog restarted, not that it was read early."""
MAX_CHECKS = 2
"""A mark without records after this many complete reads of the changelog was not recorded."""
MakeMark = Callable[[str], Fid]
"""Creates, renames, opens, closes and removes a file on an MDT (``MDT0000``). Returns its FID. Raises OSError."""


@dataclass(slots=True)
class _PendingMark:
    """A mark whose records are expected."""

    fid: Fid
    checks: int = 0
    seen: set[RecordType] = field(default_factory=set)


@dataclass(slots=True)
class _Mdt:
    """State of the check of one MDT."""

    users: frozenset[str] | None = None
    """Users at the last check that had them; None if the state is unknown."""
    behind_at: int | None = None
    """Position at the last check, if it was behind the index and the read returned no records."""
    lower_since: float | None = None
    mark: _PendingMark | None = None
    marked_at: float | None = None
    problem: str = ""
    """Problem that the last mark found."""
    cannot: str = ""
    """Why the last mark could not be made."""


@dataclass(frozen=True, slots=True)
class RecordingVerdict:
    """The result of a check of one MDT."""

    problem: str = ""
    """Why its records are incomplete; "" if they are complete."""
    gap: str = ""
    """Why earlier records may be missing. It is reported once."""
    anew: bool = False
    """Whether the changelog restarted, so that it ends before the position."""


class RecordingCheck:
    """Compares the changelog users and marks of MDTs with the records that are read."""

    def __init__(self, fsname: str, readers: Mapping[str, str], clock: Clock, mark: MakeMark | None = None,
                 marks_allowed: Callable[[], bool] = lambda: True) -> None:
        """``readers`` maps MDTs to the user registered for tierd (``cl1``), as far as configured."""
        self._fsname = fsname
        self._readers = readers
        self._clock = clock
        self._mark = mark
        self._marks_allowed = marks_allowed
        self._states: Mapping[str, ChangelogState] = {}
        self._states_at = 0.0
        self._mdts: dict[str, _Mdt] = {}
        self.unchecked: dict[str, str] = {}
        """MDTs without records at the last check, for which recording is unknown, with the reason."""

    def set_states(self, states: Mapping[str, ChangelogState]) -> None:
        """Set the changelog states of MDTs (by full name), as read before their changelogs."""
        self._states, self._states_at = states, self._clock.now()

    def note(self) -> str:
        """Text for status that names the unchecked MDTs, or ""."""
        whys = "; ".join(sorted(set(self.unchecked.values())))
        return f"whether {first_names(sorted(self.unchecked))} still records is not known: {whys}" if whys else ""

    def backlog(self, mdt: str, position: int) -> str:
        """How many records an MDT has after a position, and how many it keeps, as the end of a sentence."""
        state = self._states.get(f"{self._fsname}-{mdt}")
        if state is None or state.last_index is None or state.last_index < position:
            return ""
        kept = f", of {state.kept_records:,} that its users have not cleared" if state.kept_records is not None else ""
        return f"; {state.last_index - position:,} records are to be read{kept}"

    def has_written(self, mdt: str, index: int) -> bool:
        """Whether an MDT is known to have written a record of this index, or a later one."""
        state = self._states.get(f"{self._fsname}-{mdt}")
        return state is not None and state.last_index is not None and state.last_index >= index

    def without_marks(self, mdt: str, records: Records) -> Records:
        """Records without the records of the pending mark, whose types are noted."""
        mark = self._mdts[mdt].mark if mdt in self._mdts else None
        if mark is None:
            return records
        of_mark = {number: record.type for number, record in enumerate(records)
                   if mark.fid in (record.target, record.source)}
        mark.seen.update(of_mark.values())
        return records.at(np.delete(np.arange(len(records)), [*of_mark])) if of_mark else records

    def check(self, mdt: str, before: int, after: int, *, complete: bool = True) -> RecordingVerdict:
        """Check one MDT after a successful read of its changelog from one position to another. ``complete`` is False if
        the read ended at a record that may be late: records of a mark may be behind it.
        """
        known = self._mdts.setdefault(mdt, _Mdt())
        state = self._states.get(f"{self._fsname}-{mdt}")
        self.unchecked.pop(mdt, None)
        verdict = RecordingVerdict() if state is None else self._compared(mdt, known, state, before, after)
        if state is None:
            known.users = known.behind_at = known.lower_since = None
        # the MDT itself shows what it records: marks would add nothing
        if verdict.problem or (state is not None and state.recorded is not None):
            known.mark, known.problem = None, ""
            return verdict
        if not complete:
            return replace(verdict, problem=known.problem)
        if self._mark is not None and self._marks_allowed():
            rarely = state is not None or mdt in self._readers
            return replace(verdict, problem=self._marked(mdt, known, self._mark, moved=after != before, rarely=rarely))
        known.mark, known.problem = None, ""
        if state is None and before == after and mdt not in self._readers:
            self.unchecked[mdt] = "its changelog_users cannot be read, and tierd may not create a test file"
        return verdict

    def _compared(self, mdt: str, known: _Mdt, state: ChangelogState, before: int, after: int) -> RecordingVerdict:
        former, known.users = known.users, state.users
        problem = self._unregistered(mdt, state) or self._masked(mdt, state.recorded)
        if not problem and self._stands_still(known, state, before, after):
            problem = f"the MDT has written more records, and none after {after} can be read"
        gap = ""
        if former and state.users and not former & state.users:
            gap = f"its users {', '.join(sorted(former))} were deregistered: what happened since may be missing"
        return RecordingVerdict(problem, gap, self._begun_anew(known, state, before, after))

    def _unregistered(self, mdt: str, state: ChangelogState) -> str:
        reader = number_of(self._readers.get(mdt, ""))
        if reader and reader not in state.users:
            return f"its user {reader} is not registered: {self._register(mdt)}"
        if not state.users:
            return f"no user is registered, so nothing is recorded: {self._register(mdt)}"
        return ""

    def _masked(self, mdt: str, recorded: Collection[str] | None) -> str:
        missing = [kind.label for kind in NEEDED_TYPES if recorded is not None and kind.label not in recorded]
        return f"its mask leaves out {', '.join(missing)}: {self._set_mask(mdt)}" if missing else ""

    @staticmethod
    def _stands_still(known: _Mdt, state: ChangelogState, before: int, after: int) -> bool:
        """Whether two reads in a row returned nothing although the index is higher. One read may come too early."""
        readable = after > 0 or state.kept_records != 0  # a new user has nothing to read on a quiet MDT
        behind = before == after and readable and state.last_index is not None and state.last_index > after
        again, known.behind_at = known.behind_at == after, after if behind else None
        return behind and again

    def _begun_anew(self, known: _Mdt, state: ChangelogState, before: int, after: int) -> bool:
        if before != after or state.last_index is None or state.last_index >= after:
            known.lower_since = None
            return False
        known.lower_since = known.lower_since or self._states_at  # while counters are away, an index stays as it was
        if 0 <= self._states_at - known.lower_since < RESTARTED_SECONDS:
            return False
        known.lower_since = None
        return True

    def _marked(self, mdt: str, known: _Mdt, make: MakeMark, *, moved: bool, rarely: bool) -> str:
        mark, now = known.mark, self._clock.now()
        if mark is not None:
            mark.checks += 1
            if mark.seen or mark.checks >= MAX_CHECKS:
                known.mark, known.problem = None, self._seen(mdt, mark)
        often = MARK_SECONDS_FOR_MASK if rarely and not known.problem else MARK_SECONDS
        due = known.marked_at is None or not 0 <= now - known.marked_at < often
        # while records come, only to see whether a problem is over, and once after the start
        if known.mark is None and due and (not moved or known.problem or known.marked_at is None):
            known.marked_at, known.cannot = now, ""
            try:
                known.mark = _PendingMark(make(mdt))
            except OSError as error:
                known.cannot = f"tierd cannot create a test file there: {error}"
        if known.cannot and not moved and not rarely:
            self.unchecked[mdt] = known.cannot
        return known.problem

    def _seen(self, mdt: str, mark: _PendingMark) -> str:
        if not mark.seen:
            return ("a test file of tierd there was not recorded: no user is registered, or the mask "
                    f"leaves all types out: {self._register(mdt)}; {self._set_mask(mdt)}")
        return self._masked(mdt, {kind.label for kind in (*mark.seen, *(set(NEEDED_TYPES) - MARK_TYPES))})

    def _register(self, mdt: str) -> str:
        return (f"register one on its server (lctl --device {self._fsname}-{mdt} changelog_register) and name it in "
                "sense.readers")

    def _set_mask(self, mdt: str) -> str:
        return (f"set it on the management server (lctl set_param -P mdd.{self._fsname}-{mdt}.changelog_mask="
                f"'{WANTED_MASK}')")


O_LOV_DELAY_CREATE = os.O_NOCTTY | 0o20000
"""``O_NOCTTY | FASYNC``: open for writing without making objects (``lustre_user.h`` of Lustre 2.17)."""
_MDT = re.compile(r"MDT([0-9a-f]{4})")


class MarkWriter:
    """Makes marks on a mounted file system. It is a :data:`MakeMark`."""

    def __init__(self, folder: Path, mdt_of: Callable[[Path], int], make_directory: Callable[[Path, int], None],
                 fid_of: Callable[[Path], Fid], writer: str) -> None:
        """``mdt_of`` returns the index of a directory's MDT. ``writer`` is a name that no other node uses."""
        self._folder = folder
        self._mdt_of = mdt_of
        self._make_directory = make_directory
        self._fid_of = fid_of
        self._writer = writer
        self._places: dict[str, Path] = {}

    def __call__(self, mdt: str) -> Fid:
        """Make a mark on an MDT (``MDT0001``). Raises OSError, or ValueError if the name is not an MDT's."""
        if mdt not in self._places:
            self._places[mdt] = self._place(mdt)
        try:
            return self._made(self._places[mdt])
        except FileNotFoundError:  # somebody removed the directory
            del self._places[mdt]
            raise

    def _place(self, mdt: str) -> Path:
        if (number := _MDT.fullmatch(mdt)) is None:
            raise ValueError(f"not the name of an MDT: {mdt!r}")
        index = int(number[1], 16)
        with suppress(FileExistsError):
            self._folder.mkdir(mode=0o700)
        if self._mdt_of(self._folder) == index:
            return self._folder
        own = self._folder / mdt
        if not own.is_dir():
            self._make_directory(own, index)
        if self._mdt_of(own) != index:
            raise OSError(f"{own} is not on {mdt}: remove it")
        return own

    def _made(self, place: Path) -> Fid:
        first, second = (place / f"mark-{self._writer}{end}" for end in ("", ".renamed"))
        for left in (first, second):  # left by an interrupted mark
            with suppress(FileNotFoundError):
                os.unlink(left)
        os.mknod(first, stat.S_IFREG | 0o600)
        fid = self._fid_of(first)
        os.rename(first, second)
        os.close(os.open(second, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | O_LOV_DELAY_CREATE))
        os.unlink(second)
        return fid
