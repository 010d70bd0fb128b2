"""Records out of their bytes: any one by one, those of the usual form quickly, and all of them in C where it was built.

Whatever takes many records at once leaves a record that is in any way odd to the general way, which says what is wrong
with it. So it makes no difference to what comes out which of them was there (decision 12).

>>> data = bytes.fromhex("0400 0010 0b000000") + bytes(56) + b"clog"
>>> [record.name for record in some(data + data[:-1], 0, 9)[0]], some(data + data[:-1], 0, 9)[1]
([b'clog'], 68)
>>> some(data + data, 0, 1) == some(data + data, 0, 1, usual), some(data + data, 0, 1)[1]
(True, 68)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from lustre.changelog_form import (
    EXTRA,
    JOB_ID,
    NAME_BYTES_MAX,
    NID,
    NID_LARGE,
    OPEN,
    OWNER,
    RENAME,
    TYPE_FLAG_BITS,
    VERSION,
    XATTR,
    form,
    measure,
)
from lustre.changelog_record import Record, RecordType
from lustre.fid import Fid
from lustre.nid import nid_text

SECOND_SHIFT = 30
"""Times are seconds << 30 | nanoseconds."""
TYPE_FLAGS = (1 << TYPE_FLAG_BITS) - 1

_FRACTION = (1 << SECOND_SHIFT) - 1
_TYPES = {int(kind): kind for kind in RecordType}
_USUAL, _USUAL_EXTRA = VERSION | JOB_ID | EXTRA, OWNER | NID
_usual_form = form(_USUAL, _USUAL_EXTRA)

_fid = partial(bytes.__new__, Fid)
"""A FID of its bytes, of which the form of a record has made sure that they are 16."""
_nid = lru_cache(maxsize=4096)(nid_text)
_make = partial(tuple.__new__, Record)

Take = Callable[[bytes, int, list[Record], int], int]
"""Appends records from a byte on, until there are so many; the byte where the first begins that it left out."""


@lru_cache(maxsize=4096)
def _string(padded: bytes) -> bytes:
    return padded.partition(b"\0")[0]


def usual(data: bytes, at: int, records: list[Record], most: int) -> int:
    """Take records of the usual form, which most have, as long as they come."""
    unpack, size, append = _usual_form.unpack_from, _usual_form.size, records.append
    room = len(data)
    for _ in range(len(records), most):
        start = at + size
        if start > room:
            break
        length, flags, kind, index, previous, time, target, parent, job_id, extra, uid, gid, nid = unpack(data, at)
        end = start + length
        if flags >> TYPE_FLAG_BITS != _USUAL or extra != _USUAL_EXTRA or end > room or length > NAME_BYTES_MAX:
            break
        second, nanosecond = time >> SECOND_SHIFT, time & _FRACTION
        append(_make((
            index, _TYPES.get(kind) or RecordType(kind), second + nanosecond / 1e9, flags & TYPE_FLAGS, _fid(target),
            _fid(parent), data[start:end], None, None, b"", _string(job_id), uid, gid, _nid(nid, False), None, b"",
            previous, nanosecond,
        )))  # fmt: skip
        at = end
    return at


take: Take = usual
"""What takes many at once here: in C, where it was built, records of every form."""
try:
    from lustre import _records
except ImportError:
    AVAILABLE = False
else:
    AVAILABLE = True
    _MAKE = Record, Fid, tuple(RecordType), _nid

    def take(data: bytes, at: int, records: list[Record], most: int) -> int:
        """Take records of any form."""
        return _records.take(data, at, records, most, _MAKE)


def some(data: bytes, at: int, most: int, quickly: Take = take) -> tuple[list[Record], int]:
    """Whole records from a byte on, so many at the most, and the byte behind them.

    Raises ValueError where none begins there; one that is none and comes later ends them.
    """
    records: list[Record] = []
    while len(records) < most:
        at = quickly(data, at, records, most)
        try:
            shape = measure(data, at)
        except ValueError:
            if records:
                break
            raise
        if shape is None or len(records) >= most:
            break
        fixed, end, flags, extra = shape
        records.append(_record(fixed.unpack_from(data, at), flags, extra, data[at + fixed.size : end]))
        at = end
    return records, at


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
    second, nanosecond = time >> SECOND_SHIFT, time & _FRACTION
    return _make((
        fields[3], _TYPES.get(kind) or RecordType(kind), second + nanosecond / 1e9, flags & TYPE_FLAGS,
        _fid(fields[6]), _fid(fields[7]), name, source, source_parent, source_name, job_id, uid, gid, nid, open_mode,
        xattr_name, fields[4], nanosecond,
    ))  # fmt: skip
