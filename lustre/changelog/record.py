"""A changelog record and its types. :mod:`lustre.changelog.decode` reads them from bytes.

>>> RecordType.LAYOUT.label, RecordType(25).name
('LYOUT', 'TYPE_25')
>>> Record(7105, RecordType.CREATE, 1795218512.158, target=Fid(0x200000402, 0x7b3), name=b"c").source is None
True
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from lustre.fid import Fid

NO_FID = Fid(0, 0)


class RecordType(IntEnum):
    """Type of an event. An unknown type, of a later release, decodes to a member named ``TYPE_25`` without an error."""

    MARK = 0
    CREATE = 1
    MKDIR = 2
    HARDLINK = 3
    SOFTLINK = 4
    MKNOD = 5
    UNLINK = 6
    RMDIR = 7
    RENAME = 8
    RENAME_TO = 9
    OPEN = 10
    CLOSE = 11
    LAYOUT = 12
    TRUNCATE = 13
    SETATTR = 14
    SETXATTR = 15
    HSM = 16
    MTIME = 17
    CTIME = 18
    ATIME = 19
    MIGRATE = 20
    FLR_WRITE = 21
    RESYNC = 22
    GETXATTR = 23
    DENIED_OPEN = 24

    @classmethod
    def _missing_(cls, value: object) -> RecordType | None:
        if not isinstance(value, int) or not 0 <= value < 1 << 32:
            return None
        member = int.__new__(cls, value)
        member._name_, member._value_ = f"TYPE_{value}", value
        return member

    @property
    def label(self) -> str:
        """The short name that ``lfs changelog`` prints after the number: ``CREAT``, ``LYOUT``."""
        return _LABELS[self] if self < len(_LABELS) else self.name


_LABELS = (
    *("MARK", "CREAT", "MKDIR", "HLINK", "SLINK", "MKNOD", "UNLNK", "RMDIR", "RENME", "RNMTO", "OPEN", "CLOSE"),
    *("LYOUT", "TRUNC", "SATTR", "XATTR", "HSM", "MTIME", "CTIME", "ATIME", "MIGRT", "FLRW", "RESYNC", "GXATR"),
    "NOPEN",
)


class Record(NamedTuple):
    """One event. None and empty values mean that the record does not carry the extension."""

    index: int  # type: ignore[assignment] # a record's number; nobody looks for a value in a record
    type: RecordType
    time: float
    """Seconds of the epoch, from the clock of the MDS, rounded to a float; ``nanosecond`` has the exact fraction."""
    flags: int = 0
    """Twelve bits whose meaning depends on the type: 1 on an unlink means that it removed the last name."""
    target: Fid = NO_FID
    """File to which the event happened. For a rename: the file that it overwrote, or the zero FID."""
    parent: Fid = NO_FID
    name: bytes = b""
    source: Fid | None = None
    """File that was renamed, or the FID of the file before it moved to another MDT."""
    source_parent: Fid | None = None
    source_name: bytes = b""
    job_id: bytes = b""
    uid: int | None = None
    gid: int | None = None
    nid: str = ""
    open_mode: int | None = None
    """MDS_OPEN flags: 1 read, 2 write, 4 execute."""
    xattr_name: bytes = b""
    previous: int = 0
    """Index of an earlier record of the same target; releases up to 2.17 leave it 0."""
    nanosecond: int | None = None
    """Exact fraction of the second in nanoseconds; None means that the fraction of ``time`` applies."""
