r"""OST access logs: who read and wrote which bytes of which file, from ``/dev/lustre-access-log`` on an OSS.

An entry has 64 little-endian bytes: the FID of the file (not of the object), the first byte and the byte after the last
within the object, the second, the bytes moved, the number of segments, and whether it was a read (1) or a write (2).
A log exists for an OST whose ``obdfilter.*.access_log_size`` is above 0.

Only root may open the device. The kernel gives each opener a buffer of its own, which fills from the moment of the
open. The device therefore stays open and is read without blocking. Entries that do not fit into the buffer are lost;
the kernel counts them. A new opener receives entries for files of MDT0000 only, until it requests entries for all MDTs
(Lustre 2.14 to 2.17). When an OST is unmounted, its device reports the end of the file and must be opened again.

>>> decode(bytes(64)), decode(bytes(48) + b"\2" + bytes(15))[0].writes
([], True)
"""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress
from typing import NamedTuple

from lustre.errors import typed
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
    """Byte after the last one, within the object."""
    time: int
    """Second of the epoch, from the clock of the OSS."""
    size_bytes: int
    writes: bool


def decode(data: bytes) -> list[Access]:
    """Decode all entries, except entries that are neither a read nor a write (a later release may write such entries).

    Raises ValueError if the length of the data is not a multiple of the entry size. The device returns whole entries.
    """
    if len(data) % ENTRY_BYTES:
        raise ValueError(f"access log: {len(data)} bytes are not a multiple of the entry size, {ENTRY_BYTES} bytes")
    found = []
    for sequence, number, version, begin, end, time, size, _, flags, *_ in _ENTRY.iter_unpack(data):
        if flags & (READ | WRITE):
            found.append(Access(Fid(sequence, number, version), begin, end, time, size, writes=bool(flags & WRITE)))
    return found


_ALL_MDTS = -1
_FILTER = 1 << 30 | 4 << 16 | ord("O") << 8 | 0x85
_INFO = 2 << 30 | 168 << 16 | ord("O") << 8 | 0x84
_INFO_BYTES = 168
_DROPPED = struct.Struct("<I")
_DROPPED_AT = 160
READ_BYTES = 4096 * ENTRY_BYTES


class AccessLogDevice:
    """An open access log of one OST."""

    def __init__(self, path: str) -> None:
        self.path = path
        with typed("open access log", path):
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with suppress(OSError):  # a release without the filter returns all entries
            fcntl.ioctl(self._descriptor, _FILTER, _ALL_MDTS)

    def read(self, limit_bytes: int) -> tuple[bytes, bool]:
        """Read the entries since the last call, up to about ``limit_bytes``, and return whether the log has ended."""
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
        """Number of entries lost to a full buffer since the open; 0 if the kernel does not report the number."""
        answer = bytearray(_INFO_BYTES)
        try:
            fcntl.ioctl(self._descriptor, _INFO, answer)
        except OSError:
            return 0
        found: int = _DROPPED.unpack_from(answer, _DROPPED_AT)[0]
        return found

    def close(self) -> None:
        """Close the device; the kernel then frees the buffer."""
        os.close(self._descriptor)
