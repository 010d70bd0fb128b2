"""The shapes a changelog record comes in: a header, and the extensions its flags announce.

| flag | extension | bytes |
|---|---|---|
| RENAME | source FID, FID of the source's parent | 32 |
| JOB_ID | job id, padded with NULs | 32 |
| EXTRA | the extra flags, and behind them, for each of these: | 8 |
| OWNER | uid, gid | 16 |
| NID | NID of the client; NID_LARGE says in which of its two forms | 24 |
| OPEN | flags of the open | 4 |
| XATTR | name of the extended attribute, padded with NULs | 256 |

>>> form(VERSION | JOB_ID | EXTRA, OWNER | NID).size
144
>>> header = bytes.fromhex("0400 00d0 02000000") + bytes(88) + bytes([OWNER | NID]) + bytes(47)
>>> measure(header + b"clog", 0) == (form(0xd, 3), 148, 0xd000, 3)
True
>>> measure(header + b"clo", 0)
"""

from __future__ import annotations

import struct
from functools import lru_cache

HEADER_BYTES = 64
JOB_ID_BYTES = 32
XATTR_BYTES = 256
NAME_BYTES_MAX = 512
"""Two names of 255 bytes and a NUL, rounded up as Lustre does."""

VERSION, RENAME, JOB_ID, EXTRA = 1, 2, 4, 8
"""Bits above the twelve of a record's flags that belong to its type."""
TYPE_FLAG_BITS = 12
OWNER, NID, OPEN, XATTR, NID_LARGE = 1, 2, 4, 8, 16
"""Bits of the extra flags, in the order of their extensions."""

_EXTRA_KNOWN = OWNER | NID | OPEN | XATTR | NID_LARGE
_lengths = struct.Struct("<HH").unpack_from
_extra_flags = struct.Struct("<Q").unpack_from


@lru_cache(maxsize=512)
def form(extensions: int, extra: int) -> struct.Struct:
    """Everything before the name, for one set of flags: 16 x 32 sets there are, a handful is in use."""
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
"""Form of a record, byte where its name ends, flags, extra flags. A plain tuple: one is made for every record."""


def measure(data: bytes, at: int) -> Shape | None:
    """The record at a byte, or None when it is not there in full. Raises ValueError when it cannot be a record."""
    room = len(data) - at
    if room < HEADER_BYTES:
        return None
    name_bytes, flags = _lengths(data, at)
    if name_bytes > NAME_BYTES_MAX:
        raise ValueError(f"changelog: a name of {name_bytes} bytes at byte {at}, where {NAME_BYTES_MAX} is the most")
    extensions = flags >> TYPE_FLAG_BITS
    extra = 0
    if extensions & EXTRA:
        extra_at = _EXTRA_AT[extensions]
        if room < extra_at + 8:
            return None
        (extra,) = _extra_flags(data, at + extra_at)
        if extra > _EXTRA_KNOWN:
            raise ValueError(f"changelog: unknown extra flags {extra:#x} at byte {at + extra_at}, of unknown length")
    fixed = form(extensions, extra)
    name_end = at + fixed.size + name_bytes
    return (fixed, name_end, flags, extra) if name_end <= len(data) else None
