"""A cache of the paths of FIDs. Each lookup is an RPC, and the same directories are needed again and again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Iterable
from concurrent.futures import Executor

from lustre.fid import Fid

ResolvePath = Callable[[Fid], str]
"""Path of a FID below the root of the file system. Raises OSError if no file has the FID, or without permission."""


class PathCache:
    """A cache of paths; the least recently used is dropped first. A path that could not be resolved is stored as ""."""

    def __init__(self, resolve: ResolvePath, size: int = 100_000) -> None:
        self._resolve = resolve
        self._size = size
        self._paths: OrderedDict[Fid, str] = OrderedDict()
        self._places: set[str] = set()
        """These paths, those before, directories of files that got another path, and all directories above."""
        self._renamed: set[Fid] = set()
        """What was renamed, as far as it may be a directory: the record of its creation may come later."""
        self._unanswered: set[Fid] = set()
        """Those without a path because of an error, and not because the FID no longer exists."""
        self.renamed_until = 0.0
        """Directories that were made until then may have another name by now; epoch seconds."""
        self.changes = 0
        """Number of times that a cached path may have changed."""

    def __call__(self, fid: Fid) -> str:
        """Path of a FID; "" if it cannot be resolved."""
        known = self._paths.get(fid)
        if known is not None:
            self._paths.move_to_end(fid)
            return known
        return self._keep(fid, self._resolved(fid))

    @property
    def known(self) -> Container[Fid]:
        return self._paths

    def look_up(self, fids: Iterable[Fid], executor: Executor) -> None:
        """Look up several paths at the same time: one after the other takes too long on a slow MDT."""
        missing = list(fids)
        for fid, path in zip(missing, executor.map(self._resolved, missing), strict=True):
            self._keep(fid, path)

    def _resolved(self, fid: Fid) -> str:
        try:
            return self._resolve(fid) if fid else ""
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                self._unanswered.add(fid)
            return ""

    def _keep(self, fid: Fid, path: str) -> str:
        if len(self._places) > 2 * self._size:
            self._places.clear()
            self.clear()
        self._paths[fid] = path
        self._paths.move_to_end(fid)
        if len(self._paths) > self._size:
            self._paths.popitem(last=False)
        self.note_place(path)
        return path

    def note_place(self, place: str) -> None:
        """Remember that a file has this path, or is in this directory."""
        while len(place) > 1 and place not in self._places:
            self._places.add(place)
            place = directory_of(place)

    def place(self, fid: Fid) -> str:
        """Path of a directory, or its FID in brackets if the path is unknown; "" without a FID."""
        return self(fid) or (str(fid) if fid else "")

    def learn(self, fid: Fid, path: str, made_at: float) -> None:
        """Store a path that the record of a new directory named, which saves a lookup."""
        if fid in self._renamed or made_at <= self.renamed_until:
            return
        if fid in self._paths:
            self.changes += 1
        self._keep(fid, path)

    def clear(self) -> None:
        self._paths.clear()
        self.changes += 1

    def ask_again(self) -> None:
        """Forget which lookups failed: the MDT may have been away, or the client evicted."""
        if self._unanswered:
            self.changes += 1
        while self._unanswered:
            self._paths.pop(self._unanswered.pop(), None)

    def note_renamed(self, fid: Fid) -> None:
        """Remember that something, which may be a directory, was renamed: its path will be asked for."""
        if len(self._renamed) >= self._size:
            self._renamed.clear()
        self._renamed.add(fid)

    def forget(self, fid: Fid) -> None:
        self._paths.pop(fid, None)

    def may_contain(self, path: str) -> bool:
        """Whether this may be one of the paths, or a directory above one: the paths change when it is renamed.

        The directory that changes them need not be in the cache itself, and the FID of a directory that is striped
        over MDTs is not that of its stripes, which records name.
        """
        return path in self._places


def directory_of(path: str) -> str:
    """Directory of a path below the root.

    >>> directory_of("/proj/rand/table.dat"), directory_of("/top")
    ('/proj/rand', '/')
    """
    return path.rpartition("/")[0] or "/"


def join(directory: str, name: str) -> str:
    """Path of a name in a directory.

    >>> join("/", "top"), join("/proj", "x")
    ('/top', '/proj/x')
    """
    return f"{directory.rstrip('/')}/{name}"
