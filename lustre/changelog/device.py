"""The changelog of one MDT, read through its character device ``/dev/changelog-lustre-MDT0000`` (root only).

Reading needs no registered reader. Lustre keeps records only while a reader is registered (``lctl changelog_register``
on the MDS), and deletes records only when all readers have cleared them explicitly. The device returns whole records,
often one at a time.

What the client of Lustre 2.17 does (``lustre/mdc/mdc_changelog.c``, ``lustre/obdclass/llog.c``):

* The first read starts a kernel thread, which walks the changelog from its first uncleared record, 8 KiB for each
  request to the MDT. Records below the position are dropped on the client. Of older files of the changelog, which have
  up to 64,767 records each, it reads only the first block. So the cost of opening the device depends on the number of
  records that no reader has cleared, not on the number of new records.
* The thread reads the list of written records of each file of the changelog once. It does not see later records.
* At the end the thread stops: all further reads return no bytes. A descriptor cannot seek backwards.
* ``CHANGELOG_FLAG_FOLLOW`` makes the thread continue after its last record every second. It is not used here: a record
  that was written late is then never returned, and after an unmount the thread ends by itself, so that closing the
  device stops a thread that no longer exists.

Since 2.17 (LU-18218) MDT threads write records at the same time: ``mdd_changelog_write_rec`` gives a record its number
under a lock, and writes the record and marks it as written after that. A reader that comes in between sees record 12
and not record 11. Record 11 is there when the device is opened again.

Before 2.14.52 (LU-14663) the thread starts with the open. If it has read records below the position by then, it returns
the next one, and all that follow, although they are below the position too. Then the device is opened again.
"""

from __future__ import annotations

import os

from lustre.errors import typed

READ_BYTES = 1 << 20


class ChangelogDevice:
    """The device of one MDT. It is opened once from a position to the end of the changelog. One thread may use it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self._next_index = 0
        """Index at which the last call ended, and the next one continues."""
        self._ended = False
        """Whether the last call reached the end of the changelog."""

    def read(self, after_index: int, limit_bytes: int = 1 << 20) -> bytes:
        """Read records with a higher index, oldest first, up to about ``limit_bytes``; b"" if there are none.

        A call that continues where the last one ended uses its descriptor. After records up to the end, it returns
        b"" without opening the device again; the call after that one looks for new records.
        """
        ended, self._ended = self._ended, False
        if ended and after_index + 1 == self._next_index:
            return b""
        with typed("read changelog", self._path):
            try:
                if self._descriptor < 0 or after_index + 1 != self._next_index:
                    self._open(after_index + 1)
                data, self._ended = self._up_to(after_index + 1, limit_bytes)
            except OSError:
                self.close()
                raise
        if self._ended:
            self.close()
            self._ended = bool(data)
        return data

    def _open(self, index: int) -> None:
        self.close()
        self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        os.lseek(self._descriptor, index, os.SEEK_SET)

    def _up_to(self, index: int, limit_bytes: int) -> tuple[bytes, bool]:
        chunks: list[bytes] = []
        size, ended, tries = 0, False, 9
        while size < limit_bytes and not ended:
            chunk = os.read(self._descriptor, READ_BYTES)
            if chunk and not chunks and tries and os.lseek(self._descriptor, 0, os.SEEK_CUR) <= index:  # of old records
                tries -= 1
                self._open(index)
                continue
            chunks.append(chunk)
            size, ended = size + len(chunk), not chunk
        self._next_index = os.lseek(self._descriptor, 0, os.SEEK_CUR)  # the device's position is an index
        return b"".join(chunks), ended

    def close(self) -> None:
        """Close the descriptor, if one is open. The next read opens the device."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
