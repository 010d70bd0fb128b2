"""Checks whether each MDT still records what tierd needs. A changelog without new records may be idle or disabled.

Reading the changelog device succeeds in both cases. When its last user is deregistered, an MDT writes no more records
and its index does not change. If other users remain, it continues, and may drop records before tierd has read them. A
mask excludes types of records (``mdd_changelog_user_purge`` and ``changelog_mask`` of Lustre 2.17). tierd compares the
state of the MDT (``mdd.*.changelog_users`` and its mask), if this node is the MDS or an exporter shows it. Clearing
fails for a user that was deregistered (:class:`tierd.sense.changelogs.follow.ChangelogClearing`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lustre.changelog.record import RecordType
from tierd.sense.readings import ChangelogState, number_of
from tierd.text import first_names

NEEDED_TYPES = (RecordType.CREATE, RecordType.UNLINK, RecordType.RENAME, RecordType.CLOSE, RecordType.LAYOUT)
"""Record types that tierd needs to know which files exist, their paths, whether they are open, and who moves them."""
WANTED_MASK = "+CREAT +MKDIR +OPEN +CLOSE +UNLNK +RENME +LYOUT"


@dataclass(slots=True)
class _Mdt:
    """State of the check of one MDT."""

    users: frozenset[str] | None = None
    """Users at the last check that had them; None if the state is unknown."""
    behind_at: int | None = None
    """Position at the last check, if it was behind the index and the read returned no records."""


@dataclass(frozen=True, slots=True)
class RecordingVerdict:
    """The result of a check of one MDT."""

    problem: str = ""
    """Why its records are incomplete; "" if they are complete."""
    gap: str = ""
    """Why earlier records may be missing. It is reported once."""


class RecordingCheck:
    """Compares the changelog users of MDTs with the records that are read."""

    def __init__(self, fsname: str, readers: Mapping[str, str]) -> None:
        """``readers`` maps MDTs to the user registered for tierd (``cl1``), as far as configured."""
        self._fsname = fsname
        self._readers = readers
        self._states: Mapping[str, ChangelogState] = {}
        self._mdts: dict[str, _Mdt] = {}
        self.unchecked: set[str] = set()
        """MDTs without records at the last check, for which recording is unknown."""

    def set_states(self, states: Mapping[str, ChangelogState]) -> None:
        """Set the changelog states of MDTs (by full name), as read before their changelogs."""
        self._states = states

    def note(self) -> str:
        """Text for status that names the unchecked MDTs, or ""."""
        return (f"whether {first_names(sorted(self.unchecked))} still records is not known: its changelog_users cannot "
                "be read" if self.unchecked else "")

    def has_written(self, mdt: str, index: int) -> bool:
        """Whether an MDT is known to have written a record of this index, or a later one."""
        state = self._states.get(f"{self._fsname}-{mdt}")
        return state is not None and state.last_index is not None and state.last_index >= index

    def check(self, mdt: str, before: int, after: int) -> RecordingVerdict:
        """Check one MDT after a successful read of its changelog from one position to another."""
        known = self._mdts.setdefault(mdt, _Mdt())
        state = self._states.get(f"{self._fsname}-{mdt}")
        self.unchecked.discard(mdt)
        if state is None:
            known.users = known.behind_at = None
            if before == after and mdt not in self._readers:
                self.unchecked.add(mdt)
            return RecordingVerdict()
        former, known.users = known.users, state.users
        problem = self._unregistered(mdt, state) or self._masked(mdt, state.recorded)
        if not problem and self._stands_still(known, state, before, after):
            problem = f"the MDT has written more records, and none after {after} can be read"
        gap = ""
        if former and state.users and not former & state.users:
            gap = f"its users {', '.join(sorted(former))} were deregistered: what happened since may be missing"
        return RecordingVerdict(problem, gap)

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

    def _register(self, mdt: str) -> str:
        return (f"register one on its server (lctl --device {self._fsname}-{mdt} changelog_register) and name it in "
                "sense.readers")

    def _set_mask(self, mdt: str) -> str:
        return (f"set it on the management server (lctl set_param -P mdd.{self._fsname}-{mdt}.changelog_mask="
                f"'{WANTED_MASK}')")
