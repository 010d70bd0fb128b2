"""The changelog of one MDT: what happened to names and files, oldest first."""

from __future__ import annotations

import errno
import os
from bisect import bisect_right
from dataclasses import dataclass

from lustre.changelog import Record, RecordType, encode
from lustre.fid import Fid

NO_FID = Fid(0, 0)

OPEN_CREATE, CLOSE_CREATE = 0xCA, 0xC2
"""Record flags of an open that created the file, and of the close of that handle."""
OPEN_MODE_BASE = 0xD000
RECORDS_MAX = 400_000
"""Beyond this the older half goes, as the garbage collection of a real MDT does to idle consumers."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did it: a job on a client. The server itself acts without a job id."""

    job_id: str = ""
    uid: int = 0
    gid: int = 0
    nid: str = "0@<0:0>"


SERVER = Actor()


class Changelog:
    """Records of one MDT. They are kept until cleared; of a consumer that never clears, only the newest are kept."""

    def __init__(self) -> None:
        self.last_index = 0
        self.cleared_index = 0
        self.user = "cl1"
        self.registered = True
        self.cleared_at = 0.0
        self._records: list[Record] = []

    def add(
        self, kind: RecordType, time: float, target: Fid, actor: Actor, *, flags: int = 0, parent: Fid | None = None,
        name: str = "", open_mode: int | None = None, xattr_name: str = "",
    ) -> None:  # fmt: skip
        """One more record; ``time`` in seconds of the epoch."""
        if not self.registered:
            return
        self.last_index += 1
        record = Record(
            self.last_index, kind, time, flags, target, parent or NO_FID, name.encode(), job_id=actor.job_id.encode(),
            uid=actor.uid, gid=actor.gid, nid=actor.nid, open_mode=open_mode,
            xattr_name=xattr_name.encode(),
        )  # fmt: skip
        self._records.append(record)
        if len(self._records) > RECORDS_MAX:
            del self._records[: RECORDS_MAX // 2]

    def read(self, after_index: int) -> bytes:
        """Bytes of the records with a higher index, as the character device gives them. Raises OSError ENOENT."""
        if not self.registered:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.user)
        first = bisect_right(self._records, after_index, key=_index)
        return b"".join(map(encode, self._records[first:]))

    def forget(self) -> None:
        """The records there are get lost; numbers go on."""
        self._records.clear()

    def deregister(self) -> None:
        """The consumer is not known any more: nothing is kept for it, and reading fails."""
        self._records.clear()
        self.registered = False

    def register(self) -> str:
        """A new consumer; its name."""
        self.registered = True
        self.user = f"cl{int(self.user[2:]) + 1}"
        self.cleared_index = self.last_index
        return self.user

    def clear(self, up_to_index: int, now: float) -> None:
        """The consumer needs the records up to this one no longer."""
        first = bisect_right(self._records, up_to_index, key=_index)
        del self._records[:first]
        self.cleared_index = max(self.cleared_index, min(up_to_index, self.last_index))
        self.cleared_at = now


def _index(record: Record) -> int:
    return record.index
