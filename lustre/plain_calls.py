"""Those calls of a mover that any file system has: read, write, holes, times, owner."""

from __future__ import annotations

import errno
import mmap
import os

from lustre.calls import Status
from lustre.errors import typed

_BLOCK_BYTES = 512
"""Of ``st_blocks``, whatever the file system's blocks are."""


class PlainCalls:
    """Part of :class:`lustre.mounted_calls.MountedCalls`."""

    def close(self, descriptor: int) -> None:
        """See :class:`~lustre.calls.Calls`."""
        os.close(descriptor)

    def status(self, descriptor: int) -> Status:
        """See :class:`~lustre.calls.Calls`."""
        with typed("stat"):
            return status_from(os.fstat(descriptor))

    def size(self, descriptor: int) -> int:
        """See :class:`~lustre.calls.Calls`."""
        with typed("seek"):
            return os.lseek(descriptor, 0, os.SEEK_END)

    def set_owner(self, descriptor: int, uid: int, gid: int) -> None:
        """See :class:`~lustre.calls.Calls`."""
        with typed("set owner"):
            os.fchown(descriptor, uid, gid)

    def set_times(self, descriptor: int, atime_ns: int, mtime_ns: int) -> None:
        """See :class:`~lustre.calls.Calls`."""
        with typed("set times"):
            os.utime(descriptor, ns=(atime_ns, mtime_ns))

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        """See :class:`~lustre.calls.Calls`. The buffer is page-aligned, as reading past the page cache needs it."""
        with typed("read"), mmap.mmap(-1, -(-length // mmap.PAGESIZE) * mmap.PAGESIZE) as buffer:
            return buffer[: os.preadv(descriptor, [buffer], offset)][:length]

    def write(self, descriptor: int, data: bytes, offset: int) -> int:
        """See :class:`~lustre.calls.Calls`."""
        with typed("write"):
            return os.pwrite(descriptor, data, offset)

    def truncate(self, descriptor: int, size_bytes: int) -> None:
        """See :class:`~lustre.calls.Calls`."""
        with typed("truncate"):
            os.ftruncate(descriptor, size_bytes)

    def next_data(self, descriptor: int, offset: int) -> tuple[int, int] | None:
        """See :class:`~lustre.calls.Calls`. A release that cannot tell holes from data says that all is data."""
        try:
            with typed("seek data"):
                start = os.lseek(descriptor, offset, os.SEEK_DATA)
                return start, os.lseek(descriptor, start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return None

    def sync(self, descriptor: int) -> None:
        """See :class:`~lustre.calls.Calls`.

        fdatasync(2) leaves out the request to the MDT (``ll_fsync`` in lustre/llite/file.c, since 2.17). Nothing is
        lost by that: the exchange comes after the creation of the copy in the journal of the same MDT.
        """
        with typed("sync"):
            os.fdatasync(descriptor)

    def drop_cache(self, descriptor: int) -> None:
        """See :class:`~lustre.calls.Calls`."""
        with typed("drop cache"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def status_from(found: os.stat_result) -> Status:
    """What a mover needs of a stat."""
    return Status(found.st_mode, found.st_uid, found.st_gid, found.st_size, found.st_nlink, found.st_atime_ns,
                  found.st_mtime_ns, found.st_ctime_ns, found.st_blocks * _BLOCK_BYTES)  # fmt: skip
