"""Finds files by the OSTs of their objects: a slow walk of directories through the file system port.

Lustre has no list of the files on an OST: only the layout of each file names its objects, and the layouts are on the
MDTs. The walk therefore reads every directory in the order of its path, and the layout of every file in it. The caller
limits how many files it examines, because each costs requests to an MDT: one for the layout, and one for the status of
a file that matches. The order is fixed, so a walk continues after a directory that an earlier one has finished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
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
        """Path of the entry."""
        return join(self.directory, self.name)


def walk(filesystem: Filesystem, tops: Sequence[str], after: str = "",
         unreadable: Counter[Refusal] | None = None) -> Iterator[Visit]:
    """Visit all entries below directories that are no directories, in the order of the paths of their directories.

    ``after`` is a directory that was finished: it and all directories before it are left out. Directories that cannot
    be read are counted in ``unreadable``. A directory that was removed is left out.
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
                if unreadable is not None:
                    unreadable[of_error(error)] += 1
                continue
            yield Visit(directory)


def parts_of(path: str) -> tuple[str, ...]:
    """The names on a path. In the order of these tuples, a directory comes before everything below it."""
    return tuple(part for part in path.split("/") if part)


def stored_file(filesystem: Filesystem, path: str, osts: Collection[int]) -> StoredFile | None:
    """The file at a path if it has an object on one of these OSTs; None otherwise. Raises OSError.

    A symbolic link or a device has no layout.
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
"""Files kept in memory. The largest are kept, because they need the fewest moves."""


class UnevenPools:
    """Files on the fuller targets of unevenly filled pools, found by a walk that begins again after its end."""

    def __init__(self, filesystem: Filesystem, directories: Sequence[str], files_per_second: float,
                 min_bytes: int = 1) -> None:
        self._filesystem = filesystem
        self._directories = directories
        self._files_per_second = files_per_second
        self._min_bytes = min_bytes
        self._walk: Iterator[Visit] = iter(())
        self._found: dict[str, StoredFile] = {}
        self._stepped_at = 0.0

    @property
    def files(self) -> tuple[StoredFile, ...]:
        """Files that had an object on such a target when they were examined last."""
        return tuple(self._found.values())

    def step(self, osts: Collection[int], now: float) -> None:
        """Examine as many files as the rate allows since the last step."""
        seconds, self._stepped_at = min(max(now - self._stepped_at, 0.0), 60.0), now
        most = max(1, int(seconds * self._files_per_second))
        visits = list(islice(self._walk, most))
        if len(visits) < most:
            self._walk = walk(self._filesystem, self._directories)
            visits += islice(self._walk, most - len(visits))
        for visit in visits:
            if visit.name:
                self._examine(visit.path, osts)
        if len(self._found) > MAX_FILES:
            largest = sorted(self._found.values(), key=lambda file: -file.size_bytes)[:MAX_FILES]
            self._found = {file.path: file for file in largest}

    def forget(self) -> None:
        """Forget all files: the pools are even."""
        self._found.clear()
        self._walk = iter(())

    def _examine(self, path: str, osts: Collection[int]) -> None:
        self._found.pop(path, None)
        try:
            found = stored_file(self._filesystem, path, osts)
        except OSError:
            return  # removed or unreadable: it stays where it is
        if found is not None and found.size_bytes >= self._min_bytes:
            self._found[path] = found
