"""A Lustre file system over the mount point of a client: the port ``lustre.filesystem.Filesystem`` made real.

How files are moved is handed in (``tierd.act.movers`` has the engines): this class knows places, layouts and records.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence

from lustre import changelog_device, default_layout, mounted_pools
from lustre.attributes import attribute, attribute_names
from lustre.calls import Quota
from lustre.errors import Stale, typed
from lustre.fid import Fid
from lustre.filesystem import FileStatus, Space
from lustre.layout import Layout
from lustre.llapi import Library
from lustre.mounted_calls import whole
from lustre.mounts import Mount
from lustre.tree import Tree

Move = Callable[[str, Layout], None]
"""Rewrites one file, or raises OSError; the file is whole either way."""

_ATTEMPTS = 3


class MountedFilesystem:
    """Implements :class:`lustre.filesystem.Filesystem`."""

    def __init__(self, mount: Mount, library: Library, tree: Tree, move: Move, devices: str = "/dev") -> None:
        self._mount = mount
        self._library = library
        self._tree = tree
        self._move = move
        self._devices = devices

    @property
    def fsname(self) -> str:
        """See the port."""
        return self._mount.fsname

    def pools(self) -> Mapping[str, tuple[str, ...]]:
        """See the port."""
        return mounted_pools.pools(self._tree, self.fsname)

    def space(self) -> Mapping[str, Space]:
        """See the port."""
        return mounted_pools.space(self._tree, self.fsname)

    def path_of(self, fid: Fid) -> str:
        """See the port."""
        return self._library.path_of(self._mount.path, fid)

    def status(self, path: str) -> FileStatus:
        """See the port. Raises Stale when names at that path change faster than it can be asked."""
        place = self._whole(path)
        for _ in range(_ATTEMPTS):
            with typed("stat", path):
                before = os.lstat(place)
            fid = self._library.path_fid(place)
            with typed("stat", path):
                found = os.lstat(place)
            if before.st_ino == found.st_ino:
                return FileStatus(fid, found.st_size, found.st_mtime, found.st_atime, found.st_uid, found.st_gid,
                                  found.st_nlink, stat.S_ISDIR(found.st_mode))  # fmt: skip
        raise Stale(116, "another file takes this name again and again", path)

    def entries(self, directory: str) -> Iterator[str]:
        """See the port."""
        with typed("list", directory), os.scandir(self._whole(directory)) as found:
            for entry in found:
                yield entry.name

    def subdirectories(self, directory: str) -> Sequence[str]:
        """See the port. Of what kind an entry is, the list itself says."""
        with typed("list", directory), os.scandir(self._whole(directory)) as found:
            return [entry.name for entry in found if entry.is_dir(follow_symlinks=False)]

    def xattr(self, path: str, name: str) -> bytes:
        """See the port. Releases that know no pins call it unsupported, and so do mounts with ``nouser_xattr``."""
        try:
            return os.getxattr(self._whole(path), name, follow_symlinks=False)
        except OSError as error:
            if error.errno in {errno.ENODATA, errno.EOPNOTSUPP}:
                return b""
            with typed(f"get {name}", path):
                raise

    def layout(self, path: str) -> Layout | None:
        """See the port. Where a directory has none of its own, Lustre tells that of the root: it is left out here."""
        return default_layout.own(self._whole(path), self._mount.path, attribute, attribute_names,
                                  default_layout.told_whole)

    def set_default_layout(self, directory: str, layout: Layout | None) -> None:
        """See the port. Raises ValueError for a layout Lustre cannot have."""
        default_layout.put(self._library, self._whole(directory), layout)

    def migrate(self, path: str, layout: Layout) -> None:
        """See the port."""
        self._move(path, layout)

    def changelog(self, mdt: str, after_index: int) -> bytes:
        """See the port. Some 16 MiB at a time: ask again with the last index."""
        return changelog_device.read(f"{self._devices}/changelog-{self.fsname}-{mdt}", after_index)

    def clear_changelog(self, mdt: str, reader: str, index: int) -> None:
        """Let Lustre forget what one registered reader (``cl1``) has dealt with. Raises ValueError for index 0."""
        self._library.clear_changelog(f"{self.fsname}-{mdt}", reader, index)

    def quota(self, kind: int, owner: int, pool: str = "") -> Quota:
        """Block quota of a user (0), a group (1) or a project (2), of all or of one pool."""
        return self._library.quota(self._mount.path, kind, owner, pool)

    def _whole(self, path: str) -> str:
        return whole(self._mount.path, path)
