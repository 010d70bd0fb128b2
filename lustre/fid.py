"""FID: the identity of a file or object in Lustre, the same from every client and for the file's whole life.

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
from dataclasses import dataclass

_STRUCT = struct.Struct("<QII")
_TEXT = re.compile(r"\[?(0x[0-9a-fA-F]+):(0x[0-9a-fA-F]+):(0x[0-9a-fA-F]+)\]?")

FID_BYTES = _STRUCT.size


@dataclass(frozen=True, slots=True, order=True)
class Fid:
    """Sequence, object id and version (``struct lu_fid``); version is 0 for everything a user sees."""

    sequence: int
    object_id: int
    version: int = 0

    @classmethod
    def parse(cls, text: str) -> Fid:
        """Read the form ``lfs path2fid`` prints, brackets optional. Raises ValueError naming the text."""
        match = _TEXT.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"not a FID: {text!r} (expected something like [0x200000402:0x14:0x0])")
        sequence, object_id, version = (int(part, 16) for part in match.groups())
        if sequence >= 1 << 64 or object_id >= 1 << 32 or version >= 1 << 32:
            raise ValueError(f"not a FID: {text!r} (a part does not fit its 64 or 32 bits)")
        return cls(sequence, object_id, version)

    @classmethod
    def unpack(cls, data: bytes | memoryview, offset: int = 0) -> Fid:
        """Read the 16 little-endian bytes of a changelog record or a layout. Raises ValueError when too short."""
        try:
            return cls(*_STRUCT.unpack_from(data, offset))
        except struct.error as error:
            raise ValueError(f"FID cut short: {len(data) - offset} of {FID_BYTES} bytes") from error

    def pack(self) -> bytes:
        """The 16 bytes as Lustre stores them."""
        return _STRUCT.pack(self.sequence, self.object_id, self.version)

    def __bool__(self) -> bool:
        """False for the all-zero FID, which changelog records use for "none"."""
        return bool(self.sequence or self.object_id)

    def __str__(self) -> str:
        return f"[{self.sequence:#x}:{self.object_id:#x}:{self.version:#x}]"
