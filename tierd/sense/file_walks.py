"""Finds files by the OSTs of their objects, or on flash: slow walks of directories through the file system port.

Lustre has no list of the files on an OST: only the layout of each file names its objects, and the layouts are on the
MDTs. The walk therefore reads every directory in the order of its path, and the layout of every file in it. The caller
limits how many files it examines, because each costs requests to an MDT: one for the layout, and one for the status of
a file that matches. The order is fixed, so a walk continues after a directory that an earlier one has finished.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from lustre.filesystem import Filesystem
from lustre.layout.model import pools_within
from tierd.model import StoredFile
from tierd.refusal import Refusal, of_error
from tierd.sense.paths import join


@dataclass(frozen=True, slots=True)
class Visit:
    """One step of a walk: a file or another entry, or the end of a directory if ``name`` is empty."""

    directory: str
    name: str = ""

    @property
    def path(self) -> str:
        return join(self.directory, self.name)


def walk(filesystem: Filesystem, tops: Sequence[str], after: str = "",
         leave: Callable[[str, Refusal], None] = lambda *_: None,
         allowed: Callable[[str], Refusal | None] = lambda _: None) -> Iterator[Visit]:
    """Visit all entries below directories that are not directories, in the order of the paths of their directories.

    ``after`` is a directory that was finished: it and all directories before it are left out. ``leave`` gets each
    directory that cannot be read or is not ``allowed``, and why. A directory that was removed is left out.
    """
    done = parts_of(after) if after else None
    for top in sorted(tops, key=parts_of):
        waiting = [top]
        while waiting:
            directory = waiting.pop()
            parts = parts_of(directory)
            if done is not None and parts < done and done[:len(parts)] != parts:
                continue  # it and everything below it comes before the finished one
            try:
                if refused := allowed(directory):
                    leave(directory, refused)
                    continue
                below = sorted(filesystem.subdirectories(directory))
                waiting += [join(directory, name) for name in reversed(below)]
                if done is not None and parts <= done:
                    continue  # its own entries were visited; directories below may come after the finished one
                known = frozenset(below)
                for name in filesystem.entries(directory):
                    if name not in known:
                        yield Visit(directory, name)
            except FileNotFoundError:
                continue
            except OSError as error:
                leave(directory, of_error(error))
                continue
            yield Visit(directory)


def parts_of(path: str) -> tuple[str, ...]:
    """The names on a path. In the order of these tuples, a directory comes before everything below it."""
    return tuple(part for part in path.split("/") if part)


def stored_file(filesystem: Filesystem, path: str, osts: Collection[int]) -> StoredFile | None:
    """The file at a path if it has an object on one of these OSTs; None otherwise. Raises OSError. A symbolic link or a
    device has no layout.
    """
    layout = filesystem.layout(path)
    if layout is None or not any(one.ost_index in osts for part in layout.components for one in part.objects):
        return None
    status = filesystem.status(path)
    if status.is_directory:
        return None
    return StoredFile(status.fid, path, status.size_bytes, pools_within(layout, status.size_bytes),
                      max(status.atime, status.mtime), layout=layout)


MAX_FILES = 50_000
"""Files that a walk keeps in memory. A choice."""


class SlowWalk:
    """Files that are found a few hundred at a time, by a walk of directories that begins again after its end."""

    def __init__(self, filesystem: Filesystem) -> None:
        self._filesystem = filesystem
        self._walk: Iterator[str] = iter(())
        self._found: dict[Hashable, StoredFile] = {}

    @property
    def files(self) -> tuple[StoredFile, ...]:
        """Files that were of interest when they were examined last."""
        return tuple(self._found.values())

    def forget(self) -> None:
        """Forget all files: they are of no interest now."""
        self._found.clear()
        self._walk = iter(())

    def _next(self, most: int, begin: Callable[[], Iterator[str]]) -> list[str]:
        """The next paths of the walk; "" is one that need not be examined."""
        if not (paths := list(islice(self._walk, most))):
            self._walk = begin()
            paths = list(islice(self._walk, most))
        return paths

    def _keep(self, worth: Callable[[StoredFile], float]) -> None:
        if len(self._found) > MAX_FILES:
            kept = sorted(self._found.items(), key=lambda item: -worth(item[1]))[:MAX_FILES]
            self._found = dict(kept)


class UnevenPools(SlowWalk):
    """Files on the fuller targets of unevenly filled pools. The largest are kept: they need the fewest moves."""

    def __init__(self, filesystem: Filesystem, directories: Sequence[str], files_per_second: float,
                 min_bytes: int = 1) -> None:
        super().__init__(filesystem)
        self._directories = directories
        self._files_per_second = files_per_second
        self._min_bytes = min_bytes
        self._stepped_at = 0.0

    def step(self, osts: Collection[int], now: float) -> None:
        """Examine as many files as the rate allows since the last step."""
        # no burst after a pause
        seconds, self._stepped_at = min(max(now - self._stepped_at, 0.0), 60.0), now
        for path in filter(None, self._next(max(1, int(seconds * self._files_per_second)), self._paths)):
            self._found.pop(path, None)
            with suppress(OSError):  # removed or unreadable: it stays where it is
                found = stored_file(self._filesystem, path, osts)
                if found is not None and found.size_bytes >= self._min_bytes:
                    self._found[path] = found
        self._keep(lambda file: file.size_bytes)

    def _paths(self) -> Iterator[str]:
        return (visit.path if visit.name else "" for visit in walk(self._filesystem, self._directories))


class Inventory(SlowWalk):
    """Files on flash and their last use, in the directories whose files go to flash. The coldest are kept.

    tierd walks only while flash is short of space. Changelogs do not record reads, and a scan of the whole file system
    is robinhood's work.
    """

    def __init__(self, filesystem: Filesystem, pools: Collection[str], directories: Callable[[], Collection[str]],
                 removed: Callable[[str], None] = lambda _: None) -> None:
        """``removed`` gets each directory that no longer exists."""
        super().__init__(filesystem)
        self._removed = removed
        self._pools = frozenset(pools)
        self._directories = directories

    def step(self, most: int = 500) -> None:
        """Examine some more files; begin again after the last."""
        for path in filter(None, self._next(most, self._paths)):
            with suppress(OSError):
                self._examine(path)
        self._keep(lambda file: -file.read_at)

    def _paths(self) -> Iterator[str]:
        for directory in sorted(self._directories()):
            with suppress(OSError):  # unreadable: its files are unknown and stay where they are
                try:
                    yield from (join(directory, name) for name in self._filesystem.entries(directory))
                except FileNotFoundError:
                    self._removed(directory)
            yield ""  # a directory is a request, too: thousands may have been removed

    def _examine(self, path: str) -> None:
        status = self._filesystem.status(path)
        layout = None if status.is_directory else self._filesystem.layout(path)
        self._found.pop(status.fid, None)
        if layout is not None and status.link_count == 1 and status.size_bytes:
            pools = pools_within(layout, status.size_bytes)
            if not self._pools.isdisjoint(pools):
                self._found[status.fid] = StoredFile(status.fid, path, status.size_bytes, pools,
                                                     max(status.atime, status.mtime), layout=layout)
