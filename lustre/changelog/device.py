"""The changelog of one MDT, read through its character device ``/dev/changelog-lustre-MDT0000`` (root only).

Reading needs no registered reader. Lustre keeps records only while a reader is registered (``lctl changelog_register``
on the MDS), and deletes records only when all readers have cleared them explicitly. The device returns whole records,
often one at a time. At the end of the changelog, a read returns no bytes.
"""

from __future__ import annotations

import os

from lustre.errors import typed

READ_BYTES = 1 << 20


def read(device: str, after_index: int, limit_bytes: int = 4 << 20) -> bytes:
    """Read records with a higher index, oldest first, up to about ``limit_bytes``; b"" if there are no such records.

    Each call opens the device again, because a descriptor cannot seek backwards and stays at the end once it is there.
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
