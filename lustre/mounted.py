"""A Lustre file system over the mount point of a client: implements :class:`lustre.filesystem.Filesystem`.

The caller passes in the function that moves a file (``tierd.act.movers`` has the engines).

Pools, their members and the space on each target come from the parameters of this client, which ``lfs`` reads too. Two
mounts of one file system give the same answers. A mount that has just gone is absent.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence

from lustre.attributes import attribute, attribute_names
from lustre.changelog import device
from lustre.errors import Stale, typed
from lustre.fid import Fid
from lustre.filesystem import FileStatus, Quota, Space
from lustre.formats import df, import_, version
from lustre.formats import pools as pool_text
from lustre.layout.model import Layout
from lustre.llapi import layouts
from lustre.llapi.calls import Library
from lustre.mounted_calls import whole
from lustre.mounts import Mount
from lustre.parameters import Tree, parse_device

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
        return read_pools(self._tree, self.fsname)

    def space(self) -> Mapping[str, Space]:
        """See the port."""
        return read_space(self._tree, self.fsname)

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
        return layouts.own_layout(self._whole(path), self._mount.path, attribute, attribute_names,
                                  layouts.whole_default)

    def set_default_layout(self, directory: str, layout: Layout | None) -> None:
        """See the port. Raises ValueError for a layout Lustre cannot have."""
        layouts.set_default(self._library, self._whole(directory), layout)

    def migrate(self, path: str, layout: Layout) -> None:
        """See the port."""
        self._move(path, layout)

    def changelog(self, mdt: str, after_index: int) -> bytes:
        """See the port. Some 16 MiB at a time: ask again with the last index."""
        return device.read(f"{self._devices}/changelog-{self.fsname}-{mdt}", after_index)

    def clear_changelog(self, mdt: str, reader: str, index: int) -> None:
        """Let Lustre forget what one registered reader (``cl1``) has dealt with. Raises ValueError for index 0."""
        self._library.clear_changelog(f"{self.fsname}-{mdt}", reader, index)

    def quota(self, kind: int, owner: int, pool: str = "") -> Quota:
        """Block quota of a user (0), a group (1) or a project (2), of all or of one pool."""
        return self._library.quota(self._mount.path, kind, owner, pool)

    def _whole(self, path: str) -> str:
        return whole(self._mount.path, path)


def read_pools(tree: Tree, fsname: str) -> dict[str, tuple[str, ...]]:
    """Pool name to the full names of its targets, sorted; a pool without members is there, and empty."""
    found: dict[str, tuple[str, ...]] = {}
    for name in tree.devices("lov"):
        device = parse_device(name)
        if device.fsname != fsname or device.kind == "mdtlov":
            continue
        for pool in tree.children(f"lov/{name}/pools"):
            data = tree.read(f"lov/{name}/pools/{pool}")
            if data is not None:
                found[pool] = tuple(sorted(pool_text.parse(data).members))
    return found


def read_space(tree: Tree, fsname: str) -> dict[str, Space]:
    """Full target name to its room, for the OSTs this client can reach."""
    found: dict[str, Space] = {}
    for name in tree.devices("osc"):
        device = parse_device(name)
        if device.fsname != fsname or device.instance.startswith(("MDT", "OST")):
            continue
        room = df.parse(**{file: tree.read(f"osc/{name}/{file}") for file in df.FILES})
        if room.size_bytes is None or room.free_bytes is None or room.avail_bytes is None:
            continue
        if room.size_bytes > 0:  # an OST that cannot be reached says 0 of everything
            avail_bytes = _avail_bytes(room, room.avail_bytes)
            found[f"{fsname}-{device.target}"] = Space(room.size_bytes, room.free_bytes, avail_bytes)
    return found


def _avail_bytes(room: df.Df, avail_bytes: int) -> int:
    """What may still be written, or less where the target has fewer objects left than bytes.

    A target that has no objects left takes no file, however many bytes are free (``OS_STATFS_ENOINO`` in
    lustre/osp/osp_precreate.c). One formatted with an object for every 64 KiB is full of 4 KiB files when a sixteenth
    of its bytes is used. So it counts as full as the scarcer of the two says.
    """
    objects, left = room.files or 0, room.files_free
    if objects <= 0 or left is None or left < 0:
        return avail_bytes
    return min(avail_bytes, (room.size_bytes or 0) * left // objects)


_SINCE = (2, 16)
_RELEASE = re.compile(rb"(\d{1,4})\.(\d{1,4})\.")


def archives_follow_swaps(tree: Tree, fsname: str) -> bool:
    """Whether Lustre tells the MDT that the archive's copy still fits when it exchanges the layouts of two files.

    The archive's copy of a file is valid as long as it has the version of the file's data. An exchange of layouts gives
    the data another version. Before 2.16 (LU-13048) the MDT was not told: the file stayed marked as archived, could not
    be released any more ("Operation not permitted"), and was not archived again. True if this client and all metadata
    targets it is connected to are 2.16 or later; not knowing counts as no.
    """
    ours = tree.read("version")
    releases = [None if ours is None else version.parse(ours).release]
    for name in tree.devices("mdc"):
        if parse_device(name).fsname == fsname:
            connection = tree.read(f"mdc/{name}/import")
            releases.append(None if connection is None else import_.parse(connection).target_version)
    return len(releases) > 1 and all(map(_follows_swaps, releases))


def _follows_swaps(release: bytes | None) -> bool:
    found = _RELEASE.match(release or b"")
    return found is not None and (int(found[1]), int(found[2])) >= _SINCE
