"""Encodes changelog records in the binary form of the character device. The simulator and the tests use it.

A record is a packed little-endian struct of 64 bytes, then the extensions that its flags announce
(:mod:`lustre.changelog.record` lists them), then the name. A name may hold any byte but NUL and ``/``. A rename carries
the new name, a NUL and the old name.

>>> from lustre.changelog.record import RecordType, decode
>>> from lustre.fid import Fid
>>> record = Record(7109, RecordType.RENAME, 1795218512.5, parent=Fid(0x200000402, 0x7b0), name=b"a2",
...                 source=Fid(0x200000402, 0x7b1), source_parent=Fid(0x200000402, 0x7b0), source_name=b"a",
...                 job_id=b"mv.0", uid=0, gid=0, nid="0@lo")
>>> records, consumed = decode(encode(record) + b"the beginning of another")
>>> records[0].name, records[0].source_name, records[0].type.label, consumed
(b'a2', b'a', 'RENME', 180)
"""

from __future__ import annotations

import math
import re
import struct
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from lustre.changelog.record import (
    EXTRA,
    JOB_ID,
    NID,
    NID_LARGE,
    NO_FID,
    OPEN,
    OWNER,
    RENAME,
    SECOND_SHIFT,
    TYPE_FLAG_BITS,
    VERSION,
    XATTR,
    Record,
    form,
)
from lustre.nid import ANY, IP_NETWORKS, LARGE, NUMBER_NETWORKS, SMALL


def encode(record: Record) -> bytes:
    """Encode a record as the character device returns it, with an extension for each optional field that is set.

    Raises ValueError for a number or NID that no record can hold. A longer job id is cut, as in the kernel.
    """
    name = record.name + (b"\0" + record.source_name if record.source_name else b"")
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


def _time(record: Record) -> int:
    """Pack the time. A float has a resolution of a few hundred nanoseconds and may round up to the next second."""
    if record.nanosecond is not None:
        return round(record.time - record.nanosecond / 1e9) << SECOND_SHIFT | record.nanosecond
    second = math.floor(record.time)
    nanosecond = min(round((record.time - second) * 1e9), 999_999_999)
    return second << SECOND_SHIFT | nanosecond


_TEXT = re.compile(r"([^@]*)@(?:<(\d+):(\d+)>|([a-z][a-z0-9]*?)(\d*))")
_TYPES = {name: number for number, name in (IP_NETWORKS | NUMBER_NETWORKS).items()} | {"bxi": 19}


@lru_cache(maxsize=4096)
def nid_bytes(text: str) -> tuple[bytes, bool]:
    """Encode a NID in 24 bytes, and return whether they have the large form. Raises ValueError with the problem."""
    if text == ANY:
        return SMALL.pack(0xFFFFFFFF, 0xFFFF, 0xFFFF), False
    match = _TEXT.fullmatch(text)
    if match is None or (match[4] is not None and match[4] not in _TYPES):
        raise ValueError(f"not a NID: {text!r} (expected something like 10.0.0.1@tcp)")
    kind = _TYPES[match[4]] if match[4] else int(match[2])
    try:
        return _packed_nid(match[1], kind, int(match[5] or match[3] or 0))
    except (ValueError, struct.error) as error:
        raise ValueError(f"not a NID: {text!r} ({error})") from error


def _packed_nid(address: str, kind: int, number: int) -> tuple[bytes, bool]:
    if kind in IP_NETWORKS:
        value = ip_address(address)
        if isinstance(value, IPv6Address):
            return LARGE.pack(12, kind, number, value.packed), True
        return SMALL.pack(int(value), number, kind), False
    return SMALL.pack(int(address, 10 if kind in NUMBER_NETWORKS else 16), number, kind), False
