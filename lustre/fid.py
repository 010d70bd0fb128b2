"""FID: the identity of a file or object in Lustre. It is the same on every client and does not change.

>>> fid = Fid.parse("[0x200000402:0x14:0x0]")
>>> fid
Fid(sequence=8589935618, object_id=20, version=0)
>>> str(fid)
'[0x200000402:0x14:0x0]'
>>> Fid.unpack(fid.pack()) == fid
True
"""

from __future__ import annotations

import re
import struct

_STRUCT = struct.Struct("<QII")
_TEXT = re.compile(r"\[?(0x[0-9a-fA-F]+):(0x[0-9a-fA-F]+):(0x[0-9a-fA-F]+)\]?")

FID_BYTES = _STRUCT.size
_PARTS_BYTES = 12
"""Sequence and object id."""
_NONE = bytes(_PARTS_BYTES)


class Fid(bytes):
    """Sequence, object id and version (``struct lu_fid``); version is 0 for everything a user sees.

    The object is the 16 bytes of Lustre's own form, so hashing and comparing are as fast as for bytes. A changelog
    names tens of thousands of files per second, and each FID is looked up. FIDs are ordered by their numbers.
    """

    __slots__ = ()

    def __new__(cls, sequence: int, object_id: int, version: int = 0) -> Fid:
        try:
            return bytes.__new__(cls, _STRUCT.pack(sequence, object_id, version))
        except struct.error as error:
            raise ValueError(f"not a FID: {sequence}, {object_id}, {version}: a part does not fit: {error}") from error

    @property
    def parts(self) -> tuple[int, int, int]:
        return _STRUCT.unpack(self)

    @property
    def sequence(self) -> int:
        """Range of FIDs: Lustre assigns sequences to each client and server that creates files."""
        return self.parts[0]

    @property
    def object_id(self) -> int:
        return self.parts[1]

    @property
    def version(self) -> int:
        return self.parts[2]

    @classmethod
    def parse(cls, text: str) -> Fid:
        """Parse the text form of ``lfs path2fid``; brackets are optional. Raises ValueError that names the text."""
        if (match := _TEXT.fullmatch(text.strip())) is None:
            raise ValueError(f"not a FID: {text!r} (expected something like [0x200000402:0x14:0x0])")
        sequence, object_id, version = (int(part, 16) for part in match.groups())
        if sequence >= 1 << 64 or object_id >= 1 << 32 or version >= 1 << 32:
            raise ValueError(f"not a FID: {text!r} (a part does not fit its 64 or 32 bits)")
        return cls(sequence, object_id, version)

    @classmethod
    def unpack(cls, data: bytes | memoryview, offset: int = 0) -> Fid:
        """Read the 16 little-endian bytes of a changelog record or a layout. Raises ValueError for too few bytes."""
        raw = bytes(data[offset:offset + FID_BYTES])
        if len(raw) < FID_BYTES:
            raise ValueError(f"FID cut short: {max(0, len(data) - offset)} of {FID_BYTES} bytes")
        return bytes.__new__(cls, raw)

    def pack(self) -> bytes:
        return bytes(self)

    def __bool__(self) -> bool:
        """False for the all-zero FID, which changelog records use for "none"."""
        return not self.startswith(_NONE)

    def __getnewargs__(self) -> tuple[int, int, int]:  # type: ignore[override] # arguments of Fid, not of bytes
        return self.parts

    def __lt__(self, other: bytes) -> bool:
        return self.parts < other.parts if isinstance(other, Fid) else NotImplemented

    def __le__(self, other: bytes) -> bool:
        return self.parts <= other.parts if isinstance(other, Fid) else NotImplemented

    def __gt__(self, other: bytes) -> bool:
        return self.parts > other.parts if isinstance(other, Fid) else NotImplemented

    def __ge__(self, other: bytes) -> bool:
        return self.parts >= other.parts if isinstance(other, Fid) else NotImplemented

    def __repr__(self) -> str:
        return "Fid(sequence={}, object_id={}, version={})".format(*self.parts)

    def __str__(self) -> str:
        return "[{:#x}:{:#x}:{:#x}]".format(*self.parts)
