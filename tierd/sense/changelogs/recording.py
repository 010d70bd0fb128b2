"""Checks whether each MDT still records what tierd needs: a changelog without new records is quiet, or cut off.

Reading the changelog device fails for neither. When its last user is deregistered, an MDT records nothing more and
its index stands still. With other users it goes on, and may drop records before tierd has read them. A mask leaves
out types of records (``mdd_changelog_user_purge`` and ``changelog_mask`` of Lustre 2.17). The evidence, best first:

* what the MDT reports (``mdd.*.changelog_users`` and its mask), where this node is the MDS or exporters show it;
* clearing, which fails for a user that was deregistered (:mod:`tierd.sense.changelogs.clearing`);
* a mark: a file that tierd makes, renames, opens, closes and removes on the MDT, and whose records must appear.

A mark has no object on any OST: it is made by ``mknod`` and opened with ``O_LOV_DELAY_CREATE``, as ``lfs setstripe``
does, so that it can be made while an OST hangs. Marks lie in the folder of the claim. For an MDT that does not hold
that folder tierd makes a directory in it (``lfs mkdir -i``).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from tierd.clock import Clock
from tierd.sense.readings import ChangelogState, number_of
from tierd.text import first_names

NEEDED_TYPES = (RecordType.CREATE, RecordType.UNLINK, RecordType.RENAME, RecordType.CLOSE, RecordType.LAYOUT)
"""Without these tierd does not know which files there are, where they are, whether they are in use, and who moves
them."""
MARK_TYPES = frozenset({RecordType.CREATE, RecordType.UNLINK, RecordType.RENAME, RecordType.CLOSE})
"""What a mark leaves behind."""
WANTED_MASK = "+CREAT +MKDIR +OPEN +CLOSE +UNLNK +RENME +LYOUT"
MARK_SECONDS = 15.0
"""So often a quiet MDT that nothing else tells of is given a mark."""
MARK_SECONDS_FOR_MASK = 600.0
"""And one of which all is known but the mask: its users are shown, or records are cleared for ours."""
RESTARTED_SECONDS = 120.0
"""An index that is lower than our position for so long was not just read before: the changelog was begun anew."""
MAX_LOOKS = 2
"""A mark that has not come by after so many looks that read the changelog to its end will not come."""
MakeMark = Callable[[str], Fid]
"""Make a file on an MDT (``MDT0000``), rename it, open and close it, remove it; its FID. Raises OSError."""


@dataclass(slots=True)
class _PendingMark:
    """One that must come by."""

    fid: Fid
    looks: int = 0
    seen: set[RecordType] = field(default_factory=set)


@dataclass(slots=True)
class _Mdt:
    """What is known of one MDT."""

    users: frozenset[str] | None = None
    """At the last look that showed them."""
    behind_at: int | None = None
    """Position at the last look, where it was behind the index then and gave nothing."""
    lower_since: float | None = None
    mark: _PendingMark | None = None
    marked_at: float | None = None
    problem: str = ""
    """What the last mark has shown."""
    cannot: str = ""
    """Why the last one could not be made."""


@dataclass(frozen=True, slots=True)
class RecordingVerdict:
    """The result of a check of one MDT."""

    problem: str = ""
    """Why it cannot be relied on; "" while it can."""
    gap: str = ""
    """Why records may be missing, once."""
    anew: bool = False
    """Whether it was begun anew, and ends before the position."""


class RecordingCheck:
    """Compares the changelog users and marks of MDTs with the records that are read."""

    def __init__(self, fsname: str, readers: Mapping[str, str], clock: Clock, mark: MakeMark | None = None,
                 marks_allowed: Callable[[], bool] = lambda: True) -> None:
        """``readers``: MDT to the user registered for tierd (``cl1``), where one is configured."""
        self._fsname = fsname
        self._readers = readers
        self._clock = clock
        self._mark = mark
        self._marks_allowed = marks_allowed
        self._states: Mapping[str, ChangelogState] = {}
        self._mdts: dict[str, _Mdt] = {}
        self.unchecked: dict[str, str] = {}
        """MDTs without records in the last check that may not be recording, and why that is unknown."""

    def set_states(self, states: Mapping[str, ChangelogState]) -> None:
        """Set the changelog states of MDTs (by full name), as read before their changelogs."""
        self._states = states

    def note(self) -> str:
        """Text for status: quiet MDTs that may not be recording; "" without such."""
        whys = "; ".join(sorted(set(self.unchecked.values())))
        return f"whether {first_names(sorted(self.unchecked))} still records is not known: {whys}" if whys else ""

    def without_marks(self, mdt: str, records: Sequence[Record]) -> Sequence[Record]:
        """Records without those of the pending mark, which are noted."""
        mark = self._mdts[mdt].mark if mdt in self._mdts else None
        if mark is None:
            return records
        ours = {record.index: record.type for record in records if mark.fid in (record.target, record.source)}
        mark.seen.update(ours.values())
        return [record for record in records if record.index not in ours] if ours else records

    def check(self, mdt: str, before: int, after: int) -> RecordingVerdict:
        """Judge one MDT after its changelog was read to its end, from one position to another, without an error."""
        known = self._mdts.setdefault(mdt, _Mdt())
        state = self._states.get(f"{self._fsname}-{mdt}")
        self.unchecked.pop(mdt, None)
        verdict = RecordingVerdict()
        if state is None:
            known.users = known.behind_at = known.lower_since = None
        else:
            verdict = self._compared(mdt, known, state, before, after)
        if verdict.problem or (state is not None and state.recorded is not None):
            known.mark, known.problem = None, ""
            return verdict
        if self._mark is not None and self._marks_allowed():
            rarely = state is not None or mdt in self._readers
            return replace(verdict, problem=self._marked(mdt, known, self._mark, moved=after != before, rarely=rarely))
        known.mark, known.problem = None, ""
        if state is None and before == after and mdt not in self._readers:
            self.unchecked[mdt] = "its changelog_users cannot be read, and tierd may write no mark"
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
            return f"its user {reader} is not registered (any more): {self._register(mdt)}"
        if not state.users:
            return f"no user is registered, so that nothing is recorded: {self._register(mdt)}"
        return ""

    def _masked(self, mdt: str, recorded: Collection[str] | None) -> str:
        missing = [kind.label for kind in NEEDED_TYPES if recorded is not None and kind.label not in recorded]
        return f"its mask leaves out {', '.join(missing)}: {self._set_mask(mdt)}" if missing else ""

    @staticmethod
    def _stands_still(known: _Mdt, state: ChangelogState, before: int, after: int) -> bool:
        """Whether the MDT was ahead at two looks that gave nothing. A record that is just written may be late."""
        behind = before == after and state.last_index is not None and state.last_index > after
        again, known.behind_at = known.behind_at == after, after if behind else None
        return behind and again

    def _begun_anew(self, known: _Mdt, state: ChangelogState, before: int, after: int) -> bool:
        if before != after or state.last_index is None or state.last_index >= after:
            known.lower_since = None
            return False
        now = self._clock.now()
        if known.lower_since is None:
            known.lower_since = now
        if not 0 <= now - known.lower_since < RESTARTED_SECONDS:
            known.lower_since = None
            return True
        return False

    def _marked(self, mdt: str, known: _Mdt, make: MakeMark, *, moved: bool, rarely: bool) -> str:
        """What marks show. A new one is made where there is nothing else to go by, or to see that it is well again."""
        mark, now = known.mark, self._clock.now()
        if mark is not None:
            mark.looks += 1
            if mark.seen or mark.looks >= MAX_LOOKS:
                known.mark, known.problem = None, self._seen(mdt, mark)
        often = MARK_SECONDS_FOR_MASK if rarely and not known.problem else MARK_SECONDS
        due = known.marked_at is None or not 0 <= now - known.marked_at < often
        if known.mark is None and due and (not moved or known.problem or known.marked_at is None):
            known.marked_at, known.cannot = now, ""
            try:
                known.mark = _PendingMark(make(mdt))
            except OSError as error:
                known.cannot = f"no file can be made there to find out: {error}"
        if known.cannot and not moved and not rarely:
            self.unchecked[mdt] = known.cannot
        return known.problem

    def _seen(self, mdt: str, mark: _PendingMark) -> str:
        if not mark.seen:
            return ("a file that tierd made there was not recorded, so that no user is registered (any more), or its "
                    f"mask leaves all out: {self._register(mdt)}; {self._set_mask(mdt)}")
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
    """Makes marks on a mounted file system; a :data:`tierd.sense.changelogs.recording.MakeMark`."""

    def __init__(self, folder: Path, mdt_of: Callable[[Path], int], make_directory: Callable[[Path, int], None],
                 fid_of: Callable[[Path], Fid], writer: str) -> None:
        """``mdt_of``: index of the MDT a directory is on. ``writer``: a name no other tierd has (its process)."""
        self._folder = folder
        self._mdt_of = mdt_of
        self._make_directory = make_directory
        self._fid_of = fid_of
        self._writer = writer
        self._places: dict[str, Path] = {}

    def __call__(self, mdt: str) -> Fid:
        """Make a mark on an MDT (``MDT0001``). Raises OSError, and ValueError for a name that is no MDT's."""
        if mdt not in self._places:
            self._places[mdt] = self._place(mdt)
        try:
            return self._made(self._places[mdt])
        except FileNotFoundError:  # somebody has taken the directory away
            del self._places[mdt]
            raise

    def _place(self, mdt: str) -> Path:
        number = _MDT.fullmatch(mdt)
        if number is None:
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
        for left in (first, second):  # by a mark that was broken off
            with suppress(FileNotFoundError):
                os.unlink(left)
        os.mknod(first, stat.S_IFREG | 0o600)
        fid = self._fid_of(first)
        os.rename(first, second)
        os.close(os.open(second, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | O_LOV_DELAY_CREATE))
        os.unlink(second)
        return fid
