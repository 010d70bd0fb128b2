"""Pages of files that a client keeps; the file used longest ago goes first."""

from __future__ import annotations

from collections import OrderedDict

from lustre.fid import Fid


class PageCache:
    """Bytes per file.

    >>> cache = PageCache(8192)
    >>> cache.keep(Fid(1, 1), 4096); cache.keep(Fid(1, 2), 8192)
    >>> cache.has(Fid(1, 1), 4096), cache.has(Fid(1, 2), 8192), cache.used_bytes
    (False, True, 8192)
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0
        self._files: OrderedDict[Fid, int] = OrderedDict()

    def keep(self, fid: Fid, size_bytes: int) -> None:
        """The first so many bytes of a file are here now."""
        before = self._files.pop(fid, 0)
        self._files[fid] = max(before, size_bytes)
        self.used_bytes += self._files[fid] - before
        while self.used_bytes > self.max_bytes:
            _, dropped = self._files.popitem(last=False)
            self.used_bytes -= dropped

    def drop(self, fid: Fid) -> None:
        """The file is gone, or somebody else changed it."""
        self.used_bytes -= self._files.pop(fid, 0)

    def has(self, fid: Fid, size_bytes: int) -> bool:
        """Whether a read up to there needs no server."""
        return self._files.get(fid, 0) >= size_bytes > 0
