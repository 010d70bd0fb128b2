"""The changelog of one MDT, read through its character device ``/dev/changelog-lustre-MDT0000`` (root only).

Reading needs no registered reader; registering (``lctl changelog_register`` on the MDS) is what makes Lustre keep
records, and clearing, which is explicit, what lets it forget them. The device gives whole records, often one at a
time, and nothing at the end.
"""

from __future__ import annotations

import os

from lustre.errors import typed

READ_BYTES = 1 << 20


def read(device: str, after_index: int, limit_bytes: int = 4 << 20) -> bytes:
    """Records with a higher index, oldest first, about so many bytes at most; b"" when there are none.

    The device is opened anew each time: it cannot be moved backwards, and once at the end it stays there.
    """
    with typed("read changelog", device):
        descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.lseek(descriptor, after_index + 1, os.SEEK_SET)
            return _up_to(descriptor, limit_bytes)
        finally:
            os.close(descriptor)


def _up_to(descriptor: int, limit_bytes: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while size < limit_bytes and (chunk := os.read(descriptor, READ_BYTES)):
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)
