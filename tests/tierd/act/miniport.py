"""The Lustre in memory as the gate sees it: the part of the file system port that looks, and default layouts."""

import errno
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lustre.errors import of_errno
from lustre.fid import Fid
from lustre.filesystem import FileStatus, Space
from lustre.layout.model import Layout
from tests.tierd.act.movers.minicalls import MiniCalls
from tests.tierd.act.movers.minilustre import MiniLustre

BEGIN = 1000.0
"""Time at which the tests begin."""


class MiniPort:
    """Implements :class:`lustre.filesystem.Filesystem`, as far as the gate, undo and recovery ask."""

    fsname = "lustre"

    def __init__(self, lustre: MiniLustre) -> None:
        self.lustre = lustre
        self.calls = MiniCalls(lustre)
        self.defaults: dict[str, Layout | None] = {}
        """Of directories, by path."""
        self.fids: dict[str, Fid] = {}
        """Of directories that somebody asked for, by path."""
        self.most_links = 100
        """Names of a file that its MDT knows."""
        self.times: dict[Fid, float] = {}
        """Modification times of directories, where it is not the time at which the tests begin."""
        self.closed: set[str] = set()
        """Directories that cannot be listed."""
        self.most_data_on_mdt: int | None = None
        """``lod.*.dom_stripesize``; None for no limit."""
        self.links: dict[str, str] = {}
        """Paths in which a link stands for a directory, and the directory they lead to."""

    def pools(self) -> Mapping[str, tuple[str, ...]]:
        return self.lustre.pool_members

    def space(self) -> Mapping[str, Space]:
        return self.lustre.space()

    def status(self, path: str) -> FileStatus:
        path = self.links.get(path, path)
        if path in self.defaults:
            fid = self.fids.setdefault(path, Fid(7, len(self.fids) + 1))
            return FileStatus(fid, 4096, self.times.get(fid, BEGIN), 0.0, 0, 0, 2, True)
        descriptor = self.calls.open_for_reading(path)
        found, fid = self.calls.status(descriptor), self.calls.fid(descriptor)
        self.calls.close(descriptor)
        return FileStatus(fid, found.size_bytes, found.mtime_ns / 1e9, found.atime_ns / 1e9, found.uid, found.gid,
                          found.link_count, mode=found.mode)

    def layout(self, path: str) -> Layout | None:
        path = self.links.get(path, path)
        if path in self.defaults or path == "/":
            return self.defaults.get(path)
        descriptor = self.calls.open_for_reading(path)
        found = self.calls.layout(descriptor)
        self.calls.close(descriptor)
        return found

    def set_default_layout(self, directory: str, layout: Layout | None, fid: Fid | None = None) -> None:
        directory = self.links.get(directory, directory)
        if fid not in {None, self.fids.get(directory)}:
            raise of_errno(errno.ESTALE, "set layout", directory)
        if directory not in self.defaults:
            raise of_errno(2, "set layout", directory)
        self.defaults[directory] = layout and self._limited(layout)

    def _limited(self, layout: Layout) -> Layout:
        """As ``lod_dom_stripesize_choose`` does it: without a word."""
        first, rest = layout.components[0], layout.components[1:]
        most = self.most_data_on_mdt
        if most is None or not first.on_mdt or (first.extent_end or 0) <= most:
            return layout
        smaller = (replace(first, extent_end=most, stripe_size=most),) if most else ()
        return replace(layout, components=(*smaller, replace(rest[0], extent_start=most), *rest[1:]))

    def xattr(self, path: str, name: str) -> bytes:
        return b""

    def path_of(self, fid: Fid, link: int = 0) -> str:
        for path, known in self.fids.items():
            if known == fid and path in self.defaults:
                return path
        if names := [path for path, node in self.lustre.names.items() if node.fid == fid]:
            return names[link if link < min(len(names), self.most_links) else 0]
        raise of_errno(errno.ENOENT, "fid2path", str(fid))

    def make(self, directory: str) -> None:
        """As mkdir does it."""
        self.defaults[directory] = self.defaults[directory.rpartition("/")[0]]

    def rename(self, directory: str, to: str) -> None:
        for each in [path for path in self.defaults if path == directory or path.startswith(directory + "/")]:
            new = to + each[len(directory):]
            self.defaults[new] = self.defaults.pop(each)
            if each in self.fids:
                self.fids[new] = self.fids.pop(each)

    def subdirectories(self, directory: str) -> list[str]:
        if directory in self.closed:
            raise of_errno(errno.EIO, "list", directory)
        parents = (path.rpartition("/") for path in self.defaults)
        return [name for parent, _, name in parents if (parent or "/") == directory]

    def __getattr__(self, name: str) -> Any:
        """Gate, undo and recovery ask for nothing else."""
        raise AttributeError(name)
