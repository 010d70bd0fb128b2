"""OST access logs: who read and wrote which bytes of which file, as an OSS tells it through ``/dev/lustre-access-log``.

An entry is 64 little-endian bytes: the FID of the file (not of the object), the first byte and the one behind the last
within the object, the second, the bytes moved, the segments they were in, and whether it was a read (1) or a write (2).
A log exists for an OST whose ``obdfilter.*.access_log_size`` is above 0.

>>> entry = Access(Fid(0x200000402, 0x7b3), 0, 1 << 20, 1795218512, 65536, 16, writes=False)
>>> decode(encode(entry)) == [entry], len(encode(entry))
(True, 64)
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from lustre.fid import Fid

ENTRY_BYTES = 64
READ, WRITE = 1, 2
_ENTRY = struct.Struct("<QIIQQQIIIIII")


class Access(NamedTuple):
    """One bulk RPC."""

    fid: Fid
    begin: int
    """First byte within the object."""
    end: int
    """The byte behind the last."""
    time: int
    """Second of the epoch, by the OSS."""
    size_bytes: int
    segments: int
    """Pieces the bytes were in."""
    writes: bool


def decode(data: bytes) -> list[Access]:
    """Whole entries; those that are neither read nor write (of a later release) are left out.

    Raises ValueError for data that is no multiple of the size of an entry: the device gives whole ones.
    """
    if len(data) % ENTRY_BYTES:
        raise ValueError(f"access log: {len(data)} bytes are no whole entries of {ENTRY_BYTES}")
    found = []
    for sequence, number, version, begin, end, time, size, segments, flags, *_ in _ENTRY.iter_unpack(data):
        if flags & (READ | WRITE):
            found.append(Access(Fid(sequence, number, version), begin, end, time, size, segments, bool(flags & WRITE)))
    return found


def encode(entry: Access) -> bytes:
    """The bytes of an entry, as the kernel writes them."""
    fid = entry.fid
    return _ENTRY.pack(fid.sequence, fid.object_id, fid.version, entry.begin, entry.end, entry.time, entry.size_bytes,
                       entry.segments, WRITE if entry.writes else READ, 0, 0, 0)
