"""A changelog record, and how it is decoded from bytes of the character device.

A record is a packed little-endian header of 64 bytes, then the extensions that its flags announce, then the name. The
character device returns whole records. Records that liblustreapi has repacked differ only in their set of extensions.

| flag | extension | bytes |
|---|---|---|
| RENAME | source FID, FID of the source's parent | 32 |
| JOB_ID | job id, padded with NULs | 32 |
| EXTRA | the extra flags; one extension follows for each of the bits below | 8 |
| OWNER | uid, gid | 16 |
| NID | NID of the client, in the large form if NID_LARGE is set | 24 |
| OPEN | flags of the open | 4 |
| XATTR | name of the extended attribute, padded with NULs | 256 |

>>> data = bytes.fromhex("0400 0010 0b000000") + bytes(56) + b"clog"
>>> [record.name for record in some(data + data[:-1], 0, 9)[0]], some(data + data[:-1], 0, 9)[1]
([b'clog'], 68)
>>> form(VERSION | JOB_ID | EXTRA, OWNER | NID).size
144
>>> header = bytes.fromhex("0400 00d0 02000000") + bytes(88) + bytes([OWNER | NID]) + bytes(47)
>>> measure(header + b"clog", 0) == (form(0xd, 3), 148, 0xd000, 3)
True
>>> measure(header + b"clo", 0)
>>> RecordType.LAYOUT.label, RecordType(25).name
('LYOUT', 'TYPE_25')
"""

from __future__ import annotations

import struct
from enum import IntEnum
from functools import lru_cache, partial
from typing import Any, NamedTuple

from lustre.fid import Fid
from lustre.nid import nid_text

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


HEADER_BYTES = 64
JOB_ID_BYTES = 32
XATTR_BYTES = 256
NAME_BYTES_MAX = 512
"""Longest name field: two names of 255 bytes and a NUL, rounded up as Lustre does."""

VERSION, RENAME, JOB_ID, EXTRA = 1, 2, 4, 8
"""Bits of a record's flags above the lowest twelve, which belong to its type."""
TYPE_FLAG_BITS = 12
OWNER, NID, OPEN, XATTR, NID_LARGE = 1, 2, 4, 8, 16
"""Bits of the extra flags, in the order of their extensions."""

_EXTRA_KNOWN = OWNER | NID | OPEN | XATTR | NID_LARGE
_lengths = struct.Struct("<HH").unpack_from
_extra_flags = struct.Struct("<Q").unpack_from


@lru_cache(maxsize=512)
def form(extensions: int, extra: int) -> struct.Struct:
    """Binary form of everything before the name, for one set of flags. Of the 16 x 32 sets, only a few are in use."""
    parts = "<HHIQQQ16s16s"
    parts += "16s16s" if extensions & RENAME else ""
    parts += f"{JOB_ID_BYTES}s" if extensions & JOB_ID else ""
    parts += "Q" if extensions & EXTRA else ""
    parts += "QQ" if extra & OWNER else ""
    parts += "24s" if extra & NID else ""
    parts += "I" if extra & OPEN else ""
    parts += f"{XATTR_BYTES}s" if extra & XATTR else ""
    return struct.Struct(parts)


_EXTRA_AT = tuple(form(extensions & ~EXTRA, 0).size for extensions in range(16))


Shape = tuple[struct.Struct, int, int, int]
"""Form of a record, end offset of its name, flags, extra flags. A plain tuple, because every record needs one."""


def measure(data: bytes, at: int) -> Shape | None:
    """Measure the record at a byte offset; None if it is incomplete. Raises ValueError if it is not a record."""
    room = len(data) - at
    if room < HEADER_BYTES:
        return None
    name_bytes, flags = _lengths(data, at)
    if name_bytes > NAME_BYTES_MAX:
        raise ValueError(f"changelog: a name of {name_bytes} bytes at byte {at} exceeds {NAME_BYTES_MAX} bytes")
    extensions = flags >> TYPE_FLAG_BITS
    extra = 0
    if extensions & EXTRA:
        extra_at = _EXTRA_AT[extensions]
        if room < extra_at + 8:
            return None
        (extra,) = _extra_flags(data, at + extra_at)
        if extra > _EXTRA_KNOWN:
            raise ValueError(f"changelog: unknown extra flags {extra:#x} at byte {at + extra_at}")
    fixed = form(extensions, extra)
    name_end = at + fixed.size + name_bytes
    return (fixed, name_end, flags, extra) if name_end <= len(data) else None


SECOND_SHIFT = 30
"""Decode a time, which is packed as seconds << 30 | nanoseconds."""
TYPE_FLAGS = (1 << TYPE_FLAG_BITS) - 1

_FRACTION = (1 << SECOND_SHIFT) - 1
_TYPES = {int(kind): kind for kind in RecordType}

_fid = partial(bytes.__new__, Fid)
"""Makes a FID from its bytes; the form of a record guarantees 16 bytes."""
_nid = lru_cache(maxsize=4096)(nid_text)


@lru_cache(maxsize=4096)
def _string(padded: bytes) -> bytes:
    return padded.partition(b"\0")[0]


def some(data: bytes, at: int, most: int) -> tuple[list[Record], int]:
    """Decode at most ``most`` whole records from a byte offset on. Returns the records and the offset after them.

    Raises ValueError if no record begins at the offset. If later bytes are not a record, the list ends before them.
    """
    records: list[Record] = []
    while len(records) < most:
        try:
            shape = measure(data, at)
        except ValueError:
            if records:
                break
            raise
        if shape is None:
            break
        fixed, end, flags, extra = shape
        records.append(_record(fixed.unpack_from(data, at), flags, extra, data[at + fixed.size : end]))
        at = end
    return records, at


def _record(fields: tuple[Any, ...], flags: int, extra: int, name: bytes) -> Record:
    extensions = flags >> TYPE_FLAG_BITS
    source = source_parent = uid = gid = open_mode = None
    source_name = job_id = xattr_name = b""
    nid = ""
    at = 8
    if extensions & RENAME:
        source, source_parent, at = _fid(fields[8]), _fid(fields[9]), 10
        name, _, source_name = name.partition(b"\0")
    if extensions & JOB_ID:
        job_id, at = _string(fields[at]), at + 1
    if extra:
        at += 1
        if extra & OWNER:
            uid, gid, at = fields[at], fields[at + 1], at + 2
        if extra & NID:
            nid, at = _nid(fields[at], extra & NID_LARGE != 0), at + 1
        if extra & OPEN:
            open_mode, at = fields[at], at + 1
        if extra & XATTR:
            xattr_name = _string(fields[at])
    time, kind = fields[5], fields[2]
    second, nanosecond = time >> SECOND_SHIFT, time & _FRACTION
    return Record(
        fields[3], _TYPES.get(kind) or RecordType(kind), time=second + nanosecond / 1e9, flags=flags & TYPE_FLAGS,
        target=_fid(fields[6]), parent=_fid(fields[7]), name=name, source=source, source_parent=source_parent,
        source_name=source_name, job_id=job_id, uid=uid, gid=gid, nid=nid, open_mode=open_mode,
        xattr_name=xattr_name, previous=fields[4], nanosecond=nanosecond,
    )  # fmt: skip


def decode(data: bytes) -> tuple[list[Record], int]:
    """Decode all whole records. Returns the records and their length in bytes; a truncated record may follow them.

    Raises ValueError with the byte offset if the data does not begin with a changelog record. If invalid bytes follow
    whole records, this call returns the records, and a call with the remaining bytes raises ValueError.
    """
    return some(data, 0, len(data))
