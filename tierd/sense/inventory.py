"""Which files lie on flash, and since when nobody used them: a slow walk of the directories that were sent there.

Only walked while flash is short of room, a few hundred files each time. Nothing else knows: changelogs do not record
reads, and a scan of the whole file system is robinhood's work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import islice

from lustre.fid import Fid
from lustre.filesystem import Filesystem
from lustre.layout import pools_within
from tierd.facts import StoredFile

MOST_FILES = 50_000
"""Kept in memory; the coldest matter, so those used last fall out."""


class Inventory:
    """What the walk has seen, and where it is."""

    def __init__(self, filesystem: Filesystem, pool: str, directories: Callable[[], Collection[str]]) -> None:
        self._filesystem = filesystem
        self._pool = pool
        self._directories = directories
        self._walk: Iterator[str] = iter(())
        self._found: dict[Fid, StoredFile] = {}

    @property
    def files(self) -> tuple[StoredFile, ...]:
        """All that were seen on the pool and not seen elsewhere since."""
        return tuple(self._found.values())

    def step(self, most: int = 500) -> None:
        """Look at some more files; begin again after the last."""
        names = list(islice(self._walk, most))
        if not names:
            self._walk = self._paths()
            names = list(islice(self._walk, most))
        for path in names:
            self._look(path)
        if len(self._found) > MOST_FILES:
            coldest = sorted(self._found.values(), key=lambda f: f.read_at)[:MOST_FILES]
            self._found = {file.fid: file for file in coldest}

    def forget(self) -> None:
        """Flash has room again: what was seen need not be kept true."""
        self._found.clear()
        self._walk = iter(())

    def _paths(self) -> Iterator[str]:
        for directory in sorted(self._directories()):
            try:
                for name in self._filesystem.entries(directory):
                    yield f"{directory.rstrip('/')}/{name}"
            except OSError:
                continue  # gone, or not to be read: its files are not known, and stay where they are

    def _look(self, path: str) -> None:
        try:
            status = self._filesystem.status(path)
            layout = None if status.is_directory else self._filesystem.layout(path)
        except OSError:
            return
        self._found.pop(status.fid, None)
        if layout is not None and status.link_count == 1:
            pools = pools_within(layout, status.size_bytes)
            if self._pool in pools and status.size_bytes:
                self._found[status.fid] = StoredFile(status.fid, path, status.size_bytes, pools,
                                                     max(status.atime, status.mtime), layout)
