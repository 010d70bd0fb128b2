"""The access log of one OST, read through its character device, which only root may open.

Each opener has a buffer of its own, which fills from the moment it opens; so it is kept open, and read without waiting.
Entries that did not fit are counted and lost. A new opener gets entries of files of MDT0000 alone until it asks for all
(Lustre 2.14 to 2.17). The device of an OST that was unmounted ends, and is opened anew.
"""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress

from lustre.access_log import ENTRY_BYTES
from lustre.errors import typed

_ALL_MDTS = -1
_FILTER = 1 << 30 | 4 << 16 | ord("O") << 8 | 0x85
_INFO = 2 << 30 | 168 << 16 | ord("O") << 8 | 0x84
_INFO_BYTES = 168
_DROPPED = struct.Struct("<I")
_DROPPED_AT = 160
READ_BYTES = 4096 * ENTRY_BYTES


class AccessLogDevice:
    """One log, open."""

    def __init__(self, path: str) -> None:
        self.path = path
        with typed("open access log", path):
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with suppress(OSError):  # a release without the filter gives all entries
            fcntl.ioctl(self._descriptor, _FILTER, _ALL_MDTS)

    def read(self, limit_bytes: int) -> tuple[bytes, bool]:
        """What has come since the last time, about so many bytes at most; and whether the log has ended."""
        chunks: list[bytes] = []
        size = 0
        with typed("read access log", self.path):
            while size < limit_bytes:
                try:
                    chunk = os.read(self._descriptor, READ_BYTES)
                except BlockingIOError:
                    return b"".join(chunks), False
                if not chunk:
                    return b"".join(chunks), not chunks
                chunks.append(chunk)
                size += len(chunk)
        return b"".join(chunks), False

    def dropped(self) -> int:
        """Entries lost since it was opened, because nobody read them in time; 0 where the kernel does not tell."""
        answer = bytearray(_INFO_BYTES)
        try:
            fcntl.ioctl(self._descriptor, _INFO, answer)
        except OSError:
            return 0
        found: int = _DROPPED.unpack_from(answer, _DROPPED_AT)[0]
        return found

    def close(self) -> None:
        """Let the kernel free the buffer."""
        os.close(self._descriptor)
