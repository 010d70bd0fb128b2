"""Paths of FIDs, cached: each look-up is an RPC on a real client, and directories are looked up again and again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Iterable
from concurrent.futures import Executor

from lustre.fid import Fid

ResolvePath = Callable[[Fid], str]
"""Path of a FID below the root; raises OSError where nothing has it, or where asking is not allowed."""


class PathCache:
    """Least recently used paths, those that could not be had among them (as "")."""

    def __init__(self, resolve: ResolvePath, size: int = 100_000) -> None:
        self._resolve = resolve
        self._size = size
        self._paths: OrderedDict[Fid, str] = OrderedDict()
        self._nameless: dict[Fid, str] = {}
        """Their FIDs in brackets: one string for all the files of a directory."""
        self.changes = 0
        """Number of times that cached paths may have become wrong."""

    def __call__(self, fid: Fid) -> str:
        """Path of a FID, or "" where it has none any more."""
        known = self._paths.get(fid)
        if known is not None:
            self._paths.move_to_end(fid)
            return known
        return self._keep(fid, self._asked(fid))

    @property
    def known(self) -> Container[Fid]:
        """FIDs that need not be asked for."""
        return self._paths

    def look_up(self, fids: Iterable[Fid], executor: Executor) -> None:
        """Ask for several at the same time: on a slow metadata target one after the other takes too long."""
        asked = list(fids)
        for fid, path in zip(asked, executor.map(self._asked, asked), strict=True):
            self._keep(fid, path)

    def _asked(self, fid: Fid) -> str:
        try:
            return self._resolve(fid) if fid else ""
        except OSError:
            return ""

    def _keep(self, fid: Fid, path: str) -> str:
        self._paths[fid] = path
        if len(self._paths) > self._size:
            self._paths.popitem(last=False)
        return path

    def place(self, fid: Fid) -> str:
        """Path of a directory, or its FID in brackets where it has none that is known; "" where a record named none."""
        path = self(fid)
        if path:
            return path
        place = self._nameless.get(fid)
        if place is None:
            if len(self._nameless) >= self._size:
                self._nameless.clear()
            place = self._nameless[fid] = str(fid) if fid else ""
        return place

    def learn(self, fid: Fid, path: str) -> None:
        """Take a path from a record that names it: one question less."""
        if fid in self._paths:
            self.changes += 1
        self._paths[fid] = path
        if len(self._paths) > self._size:
            self._paths.popitem(last=False)

    def clear(self) -> None:
        """Forget them all."""
        self._paths.clear()
        self.changes += 1

    def renamed(self, fid: Fid) -> None:
        """Forget what a rename made untrue: if a directory moved, any path below it."""
        if fid in self._paths:
            self.clear()


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
