"""The changelog of one MDT: records of operations on names and files, oldest first, and the registered users."""

from __future__ import annotations

import errno
import os
from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from simulator.servers.changelog_bytes import encode

NO_FID = Fid(0, 0)
OPEN_CREATE, CLOSE_CREATE = 0xCA, 0xC2
"""Record flags of an open that created the file, and of the close of that handle."""
OPEN_MODE_BASE = 0xD000
FLAG_WRITE = 0x2
RECORDS_OF_FILE = 64_767
"""Records in one file of a changelog: the bits in its header of 8 KiB (``llog_log_hdr`` of Lustre 2.17)."""
RECORDS_MAX = 400_000
"""Number of records above which the older half is deleted, like the garbage collection for idle users on a real MDT."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Originator of an operation: a job on a client. The server itself has no job id."""

    job_id: str = ""
    uid: int = 0
    """Number of the user, and of its group."""
    nid: str = "0@<0:0>"


SERVER = Actor()
DEFAULT_MASK = frozenset(RecordType) - {RecordType.ATIME, RecordType.OPEN, RecordType.GETXATTR, RecordType.DENIED_OPEN}
"""Default mask of a user without a mask on a server without one (``CHANGELOG_DEFMASK``)."""
QUICK_START_MASK = DEFAULT_MASK | {RecordType.OPEN}
"""Mask that the quick start of tierd sets: ``+OPEN``."""


@dataclass(slots=True)
class ChangelogUser:
    """A registered changelog user."""

    cleared_index: int
    cleared_at: float = 0.0


class Changelog:
    """Records of one MDT, kept until all users have cleared them. If users never clear, only the newest are kept.

    As in Lustre 2.17 (``mdd_changelog_user_register``, ``mdd_changelog_user_purge`` and ``mdd_changelog_clear``),
    nothing is recorded without any user, and the numbers do not advance. Reads do not fail then: the device of a client
    returns an empty log.
    """

    def __init__(self) -> None:
        self.last_index = 0
        self.users: dict[str, ChangelogUser] = {"cl1": ChangelogUser(0)}
        self.late_every = 0
        """Each record with a multiple of this number is written late; 0: none."""
        self.late_seconds = 0.0
        """How late: time in which the MDT has written records after it, but not the record."""
        self._records: list[Record] = []
        self.set_mask(QUICK_START_MASK)

    @property
    def mask(self) -> tuple[RecordType, ...]:
        return tuple(kind for kind in RecordType if self._mask_bits >> kind & 1)

    def set_mask(self, mask: Collection[RecordType]) -> None:
        """Record only these types from now on; MARK is always included."""
        self._mask_bits = sum(1 << kind for kind in {RecordType.MARK, *mask})

    def add(
        self, kind: RecordType, time: float, target: Fid, actor: Actor, *, flags: int = 0, parent: Fid | None = None,
        name: str = "", open_mode: int | None = None, xattr_name: str = "",
    ) -> None:  # fmt: skip
        """Append a record; ``time`` in epoch seconds. Without a user, or for a masked type, nothing is recorded."""
        if not self.users or not self._mask_bits >> kind & 1 or not self._keeps_close(kind, flags):
            return
        self.last_index += 1
        record = Record(
            self.last_index, kind, time, flags, target, parent=parent or NO_FID, name=name.encode(),
            job_id=actor.job_id.encode(),
            uid=actor.uid, gid=actor.uid, nid=actor.nid, open_mode=open_mode,
            xattr_name=xattr_name.encode(),
        )  # fmt: skip
        self._records.append(record)
        if len(self._records) > RECORDS_MAX:
            del self._records[: RECORDS_MAX // 2]

    def _keeps_close(self, kind: RecordType, flags: int) -> bool:
        """Whether to record a close. If opens are masked, only closes of writable handles count (``mdd_close``)."""
        return kind is not RecordType.CLOSE or bool(self._mask_bits >> RecordType.OPEN & 1 or flags & FLAG_WRITE)

    def read(self, after_index: int, now: float = float("inf")) -> bytes:
        """Return the bytes of the records above an index, as the character device does at a time in epoch seconds."""
        first = bisect_right(self._records, after_index, key=_index)
        return b"".join(encode(record) for record in self._records[first:] if not self._is_late(record, now))

    def _is_late(self, record: Record, now: float) -> bool:
        return bool(self.late_every and record.index % self.late_every == 0 and record.index < self.last_index
                    and 0 <= now - record.time < self.late_seconds)

    def walked(self, after_index: int) -> int:
        """Records that a client reads and drops to begin after an index: those in the file of the changelog there."""
        kept = bisect_right(self._records, after_index, key=_index)
        return min(kept, after_index % RECORDS_OF_FILE)

    def forget(self) -> None:
        """Lose all present records. The numbering continues."""
        self._records.clear()

    def register(self, user: str = "cl2") -> None:
        """Register a user. It gets records from now on."""
        self.users[user] = ChangelogUser(self.last_index)

    def deregister(self, user: str = "cl1") -> None:
        """Deregister a user, and delete the records that no other user needs.

        Raises OSError ENOENT for an unknown user.
        """
        if self.users.pop(user, None) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), user)
        self._purge(min((one.cleared_index for one in self.users.values()), default=self.last_index))

    def clear(self, up_to_index: int, now: float, user: str = "cl1") -> None:
        """Clear the records up to an index for one user.

        Raises OSError: EINVAL for a record that is not written yet, and ENOENT for an unknown user or for an index
        below the user's cleared index.
        """
        if up_to_index > self.last_index:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), user)
        known = self.users.get(user)
        if known is None or known.cleared_index > up_to_index:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), user)
        known.cleared_index, known.cleared_at = up_to_index, now
        self._purge(min(one.cleared_index for one in self.users.values()))

    def _purge(self, up_to_index: int) -> None:
        del self._records[: bisect_right(self._records, up_to_index, key=_index)]


def _index(record: Record) -> int:
    return record.index
