"""statx(2) of an open file, which Python does not offer."""

from __future__ import annotations

import ctypes
import struct

_EMPTY_PATH, _DONT_SYNC = 0x1000, 0x4000
_FORM = struct.Struct("=8xQ40xQ192x")
"""struct statx: flags of the file at byte 8, and which flags the file system shows at byte 56."""


def shown_flags(descriptor: int, needed: int) -> int | None:
    """Inode flags of an open file as the client knows them, without a request.

    None if the file system does not show all the needed flags there, or the C library has no statx(2).
    """
    room = ctypes.create_string_buffer(_FORM.size)
    statx = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)
    if statx is None or statx(descriptor, b"", _EMPTY_PATH | _DONT_SYNC, 0, room):
        return None
    bits, shown = _FORM.unpack(room.raw)
    return int(bits) if needed & ~shown == 0 else None
