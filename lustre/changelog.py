"""Changelog: what happened to the names and files of one MDT, oldest first.

A record is a packed little-endian struct of 64 bytes, then the extensions its flags announce (rename, job id, extra
flags, and behind these owner, NID, open mode, name of the extended attribute), then the name, which may hold any byte
but NUL and ``/``. A rename carries the new name, a NUL and the old name. The character device gives whole records; the
library's repacked forms differ only in which extensions are there (:mod:`lustre.changelog_form`).

>>> record = Record(7109, RecordType.RENAME, 1795218512.5, parent=Fid(0x200000402, 0x7b0), name=b"a2",
...                 source=Fid(0x200000402, 0x7b1), source_parent=Fid(0x200000402, 0x7b0), source_name=b"a",
...                 job_id=b"mv.0", uid=0, gid=0, nid="0@lo")
>>> records, consumed = decode(encode(record) + b"the beginning of another")
>>> records[0].name, records[0].source_name, records[0].type.label, consumed
(b'a2', b'a', 'RENME', 180)
"""

from __future__ import annotations

import math
import struct
from functools import lru_cache, partial
from typing import Any

from lustre.changelog_form import (
    EXTRA,
    JOB_ID,
    JOB_ID_BYTES,
    NAME_BYTES_MAX,
    NID,
    NID_LARGE,
    OPEN,
    OWNER,
    RENAME,
    TYPE_FLAG_BITS,
    VERSION,
    XATTR,
    XATTR_BYTES,
    form,
    measure,
)
from lustre.changelog_record import NO_FID, Record, RecordType
from lustre.fid import Fid
from lustre.nid import nid_bytes, nid_text

__all__ = ("Record", "RecordType", "decode", "encode")

_SECOND_SHIFT = 30
"""Times are seconds << 30 | nanoseconds."""

_FRACTION = (1 << _SECOND_SHIFT) - 1
_TYPE_FLAGS = (1 << TYPE_FLAG_BITS) - 1


def decode(data: bytes) -> tuple[list[Record], int]:
    """All whole records at the front, and how many bytes they are; what follows is a record cut short.

    Raises ValueError naming the byte when the data does not begin with a changelog record. Records before such a byte
    are returned first; decoding what follows them then raises.
    """
    records: list[Record] = []
    at = 0
    while True:
        at = _usual(data, at, records)
        try:
            shape = measure(data, at)
        except ValueError:
            if records:
                break
            raise
        if shape is None:
            break
        fixed, end, flags, extra = shape
        name = data[at + fixed.size : end]
        records.append(_record(fixed.unpack_from(data, at), flags, extra, name))
        at = end
    return records, at


_fid = partial(bytes.__new__, Fid)
"""A FID of its bytes, of which the form of a record has made sure that they are 16."""
_nid = lru_cache(maxsize=4096)(nid_text)
_make = partial(tuple.__new__, Record)


@lru_cache(maxsize=4096)
def _string(padded: bytes) -> bytes:
    return padded.partition(b"\0")[0]


_TYPES = {int(kind): kind for kind in RecordType}


_USUAL, _USUAL_EXTRA = VERSION | JOB_ID | EXTRA, OWNER | NID
_usual_form = form(_USUAL, _USUAL_EXTRA)


def _usual(data: bytes, at: int, records: list[Record]) -> int:
    """Take records of the usual form, which most have, as long as they come; where the first other one begins.

    The same as the general way, only quicker: whatever is in any way odd is left to that.
    """
    unpack, size, append = _usual_form.unpack_from, _usual_form.size, records.append
    room = len(data)
    while at + size <= room:
        length, flags, kind, index, previous, time, target, parent, job_id, extra, uid, gid, nid = unpack(data, at)
        start = at + size
        end = start + length
        if flags >> TYPE_FLAG_BITS != _USUAL or extra != _USUAL_EXTRA or end > room or length > NAME_BYTES_MAX:
            break
        second, nanosecond = time >> _SECOND_SHIFT, time & _FRACTION
        append(_make((
            index, _TYPES.get(kind) or RecordType(kind), second + nanosecond / 1e9, flags & _TYPE_FLAGS, _fid(target),
            _fid(parent), data[start:end], None, None, b"", _string(job_id), uid, gid, _nid(nid, False), None, b"",
            previous, nanosecond,
        )))  # fmt: skip
        at = end
    return at


def _record(fields: tuple[Any, ...], flags: int, extra: int, name: bytes) -> Record:
    """One record of its fields in the order of :func:`lustre.changelog_form.form`."""
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
    second, nanosecond = time >> _SECOND_SHIFT, time & _FRACTION
    return _make((
        fields[3], _TYPES.get(kind) or RecordType(kind), second + nanosecond / 1e9, flags & _TYPE_FLAGS,
        _fid(fields[6]), _fid(fields[7]), name, source, source_parent, source_name, job_id, uid, gid, nid, open_mode,
        xattr_name, fields[4], nanosecond,
    ))  # fmt: skip


def encode(record: Record) -> bytes:
    """The bytes the character device gives for a record: every extension the record has something for.

    Raises ValueError for what no record can hold: a NUL in a name, a job id that is too long.
    """
    name = record.name + (b"\0" + record.source_name if record.source_name else b"")
    _check(record, name)
    nid, large = nid_bytes(record.nid) if record.nid else (b"", False)
    extra = (
        (OWNER if record.uid is not None else 0)
        | (NID if record.nid else 0)
        | (OPEN if record.open_mode is not None else 0)
        | (XATTR if record.xattr_name else 0)
        | (NID_LARGE if large else 0)
    )
    extensions = (VERSION if record.source is None else RENAME) | (JOB_ID if record.job_id else 0)
    extensions |= EXTRA if extra else 0
    flags = extensions << TYPE_FLAG_BITS | record.flags
    values: list[int | bytes] = [len(name), flags, record.type, record.index, record.previous, _time(record)]
    values += [record.target.pack(), record.parent.pack()]
    if record.source is not None:
        source_parent = NO_FID if record.source_parent is None else record.source_parent
        values += [record.source.pack(), source_parent.pack()]
    values += [record.job_id] if record.job_id else []
    values += [extra] if extra else []
    values += [record.uid, record.gid or 0] if record.uid is not None else []
    values += [nid] if nid else []
    values += [record.open_mode] if record.open_mode is not None else []
    values += [record.xattr_name] if record.xattr_name else []
    try:
        return form(extensions, extra).pack(*values) + name
    except struct.error as error:
        raise ValueError(f"changelog record {record.index}: {error}") from error


def _check(record: Record, name: bytes) -> None:
    """Refuse what would be packed without complaint and read back as something else."""
    texts = (record.name, record.source_name, record.job_id, record.xattr_name)
    if any(b"\0" in text for text in texts):
        raise ValueError(f"changelog record {record.index}: a NUL within a name")
    if record.source is None and record.source_name:
        raise ValueError(f"changelog record {record.index}: a source name without a source")
    if len(name) > NAME_BYTES_MAX or len(record.job_id) > JOB_ID_BYTES or len(record.xattr_name) > XATTR_BYTES:
        raise ValueError(f"changelog record {record.index}: a name or job id is too long")
    if not 0 <= record.flags <= _TYPE_FLAGS:
        raise ValueError(f"changelog record {record.index}: flags {record.flags:#x} do not fit {TYPE_FLAG_BITS} bits")


def _time(record: Record) -> int:
    """The packed time. A float is some hundred nanoseconds coarse and may round up to the next second."""
    if record.nanosecond is not None:
        return round(record.time - record.nanosecond / 1e9) << _SECOND_SHIFT | record.nanosecond
    second = math.floor(record.time)
    nanosecond = min(round((record.time - second) * 1e9), 999_999_999)
    return second << _SECOND_SHIFT | nanosecond
