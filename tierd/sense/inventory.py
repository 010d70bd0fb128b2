"""Finds the files on flash and their last use, by a slow walk of the directories whose files go to flash.

tierd walks only while flash is short of space, a few hundred files each time. Changelogs do not record reads, and a
scan of the whole file system is robinhood's work. Where robinhood's database is available, the files it holds for the
coldest come first. Times and layouts are always read from the file itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice

from lustre.fid import Fid
from lustre.filesystem import Filesystem
from lustre.layout.model import pools_within
from tierd.model import StoredFile
from tierd.sense.paths import join

MAX_FILES = 50_000
"""Files kept in memory. The most recently used are dropped, because the coldest matter."""
ColdestFirst = Callable[[str], Sequence[str]]
"""Names in a directory to examine first. A hint: it may be out of date, and may name removed files."""


def no_hints(_: str) -> Sequence[str]:
    """No hints, for tierd without robinhood."""
    return ()


class Inventory:
    """The files that the walk has seen, and its position."""

    def __init__(self, filesystem: Filesystem, pools: Collection[str], directories: Callable[[], Collection[str]],
                 coldest_first: ColdestFirst = no_hints) -> None:
        self._coldest_first = coldest_first
        self._filesystem = filesystem
        self._pools = frozenset(pools)
        self._directories = directories
        self._walk: Iterator[str] = iter(())
        self._found: dict[Fid, StoredFile] = {}

    @property
    def files(self) -> tuple[StoredFile, ...]:
        """Files that were on a flash pool when they were examined last."""
        return tuple(self._found.values())

    def step(self, most: int = 500) -> None:
        """Examine some more files; begin again after the last."""
        names = list(islice(self._walk, most))
        if not names:
            self._walk = self._paths()
            names = list(islice(self._walk, most))
        for path in names:
            self._examine(path)
        if len(self._found) > MAX_FILES:
            coldest = sorted(self._found.values(), key=lambda f: f.read_at)[:MAX_FILES]
            self._found = {file.fid: file for file in coldest}

    def forget(self) -> None:
        """Forget all files: flash has space again."""
        self._found.clear()
        self._walk = iter(())

    def _paths(self) -> Iterator[str]:
        for directory in sorted(self._directories()):
            try:
                hinted = self._coldest_first(directory)
                yield from (join(directory, name) for name in hinted)
                known = frozenset(hinted)
                yield from (join(directory, name) for name in self._filesystem.entries(directory) if name not in known)
            except OSError:
                continue  # removed or unreadable: its files are unknown and stay where they are

    def _examine(self, path: str) -> None:
        try:
            status = self._filesystem.status(path)
            layout = None if status.is_directory else self._filesystem.layout(path)
        except OSError:
            return
        self._found.pop(status.fid, None)
        if layout is not None and status.link_count == 1:
            pools = pools_within(layout, status.size_bytes)
            if status.size_bytes and not self._pools.isdisjoint(pools):
                self._found[status.fid] = StoredFile(status.fid, path, status.size_bytes, pools,
                                                     max(status.atime, status.mtime), layout=layout)
