"""A Lustre file system over the mount point of a client: implements :class:`lustre.filesystem.Filesystem`.

Pools, their members and the space on each target come from the parameters of this client, which ``lfs`` also reads. Two
mounts of one file system return the same values. A mount that was just removed counts as absent.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from lustre import mounts
from lustre.attributes import attribute, attribute_names, layout_at
from lustre.changelog.device import ChangelogDevice
from lustre.errors import LustreError, Stale, typed, understood
from lustre.fid import Fid
from lustre.filesystem import FileStatus, MetadataSpace, Quota, Space
from lustre.formats import df, import_, version
from lustre.formats import pools as pool_text
from lustre.layout.directory import DefaultStriping, DirectoryStripes, default_of_xattr, stripes_of_xattr
from lustre.layout.model import Layout
from lustre.llapi import directories, layouts
from lustre.llapi.calls import Library
from lustre.mounted_calls import pinned, whole
from lustre.mounts import Mount
from lustre.parameters import Tree, parse_device

_ATTEMPTS = 3
_ROOT = Fid(0x200000007, 1)  # of every file system (lu_root_fid)
NEWEST_MIRROR_STAYS = 2, 15
"""Release whose MDTs refuse to remove the only mirror in sync (LU-14514). Earlier ones lose what was written to it."""


class MountedFilesystem:
    """The file system below one mount point of this client."""

    def __init__(self, mount: Mount, library: Library, tree: Tree, devices: str = "/dev") -> None:
        self._mount, self._whole = mount, partial(whole, mount.path)
        self._library = library
        self._tree = tree
        self._devices = devices
        self._changelogs: dict[str, ChangelogDevice] = {}
        """By MDT. The device of an MDT is open while more of its records are to be read."""
        self._unreachable: Mapping[int, str] = {}
        """OSTs that could not be reached when the space was last read, by index."""

    @property
    def fsname(self) -> str:
        return self._mount.fsname

    def pools(self) -> Mapping[str, tuple[str, ...]]:
        return read_pools(self._tree, self.fsname)

    def space(self) -> Mapping[str, Space]:
        every = _space_of_osts(self._tree, self.fsname)
        self._unreachable = {int(target[-4:], 16): target for target, space in every.items() if space is None}
        return {target: space for target, space in every.items() if space is not None}

    def metadata_space(self) -> Mapping[str, MetadataSpace]:
        return read_metadata_space(self._tree, self.fsname)

    def path_of(self, fid: Fid, link: int = 0) -> str:
        return self._library.path_of(self._mount.path, fid, link)

    def status(self, path: str) -> FileStatus:
        """Raises Stale when the names on the path change faster than they can be read."""
        place = self._whole(path)
        if self._unreachable:  # stat would wait for such an OST
            refuse_unreachable(layout_at(place), self._unreachable, path)
        # the library takes a path, whose file may be another one from call to call
        for _ in range(_ATTEMPTS):
            with typed("stat", path), pinned(self._mount.path, path) as name:
                before, fid, found = os.lstat(name), self._library.path_fid(name), os.lstat(name)
            if before.st_ino == found.st_ino:
                return FileStatus(fid, found.st_size, found.st_mtime, found.st_atime, found.st_uid, gid=found.st_gid,
                                  link_count=found.st_nlink, is_directory=stat.S_ISDIR(found.st_mode),
                                  mode=found.st_mode)  # fmt: skip
        raise Stale(116, "other files take this name again and again", path)

    def _listed(self, directory: str) -> Iterator[os.DirEntry[str]]:
        place = self._whole(directory)
        try:
            with (typed("list", directory), directories.opened(f"{place}/.", place) as descriptor,
                  os.scandir(descriptor) as found):
                yield from found
        finally:  # after an unmount all looks removed: the folder at the mount point is empty. Raises NotLustre
            mounts.find(self._mount.path, (self._tree.roots.procfs / "self/mounts").read_bytes())

    def entries(self, directory: str) -> Iterator[str]:
        return (entry.name for entry in self._listed(directory))

    def subdirectories(self, directory: str) -> Sequence[str]:
        return [entry.name for entry in self._listed(directory) if entry.is_dir(follow_symlinks=False)]

    def xattr(self, path: str, name: str) -> bytes:
        return attribute(self._whole(path), name) or b""

    def layout(self, path: str) -> Layout | None:
        return layouts.own_layout(self._whole(path), self._mount.path, attribute, attribute_names,
                                  layouts.whole_default)

    def set_default_layout(self, directory: str, layout: Layout | None, fid: Fid | None = None) -> None:
        with self._opened(directory, fid) as descriptor:
            layouts.set_default(self._library, descriptor, layout)

    def directory_stripes(self, directory: str) -> DirectoryStripes:
        """Read the stripes of a directory over MDTs (``trusted.lmv``, which only root may read)."""
        place = self._whole(directory)
        value = attribute(place, directories.STRIPES)
        with directories.opened(place) as descriptor:
            index = self._library.mdt_index(descriptor)
        # without the attribute it is on one MDT
        return DirectoryStripes(0, index) if value is None else understood(stripes_of_xattr, value)

    def default_striping(self, directory: str) -> DefaultStriping | None:
        value = attribute(self._whole(directory), directories.DEFAULT)
        return None if value is None else understood(default_of_xattr, value)

    def set_default_striping(self, directory: str, striping: DefaultStriping | None, fid: Fid | None = None) -> None:
        with self._opened(directory, fid) as descriptor:
            directories.set_default(descriptor, striping)

    @contextmanager
    def _opened(self, directory: str, fid: Fid | None) -> Iterator[int]:
        with directories.opened(self._whole(directory)) as found:
            if fid not in {None, self._library.fid(found)}:
                raise Stale(116, "another directory has this name now", directory)
            yield found

    def changelog(self, mdt: str, after_index: int) -> bytes:
        """Read at most about 2 MiB; call again with the last index for more. One thread may read an MDT."""
        if (device := self._changelogs.get(mdt)) is None:
            device = self._changelogs[mdt] = ChangelogDevice(f"{self._devices}/changelog-{self.fsname}-{mdt}")
        return device.read(after_index)

    def clear_changelog(self, mdt: str, reader: str, index: int) -> None:
        """Clear the records up to an index for one registered reader (``cl1``). Raises ValueError for index 0."""
        self._library.clear_changelog(f"{self.fsname}-{mdt}", reader, index)


def read_pools(tree: Tree, fsname: str) -> dict[str, tuple[str, ...]]:
    """Read the members of each pool: their full target names, sorted. A pool without members is empty."""
    devices = [name for name in tree.devices("lov")
               if (device := parse_device(name)).fsname == fsname and device.kind != "mdtlov"]
    return {pool: tuple(sorted(pool_text.parse(data).rows))
            for name in devices for pool in tree.children(f"lov/{name}/pools")
            if (data := tree.read(f"lov/{name}/pools/{pool}")) is not None}


def read_space(tree: Tree, fsname: str) -> dict[str, Space]:
    """Read the space on each OST that this client can reach, by full target name."""
    return {target: space for target, space in _space_of_osts(tree, fsname).items() if space is not None}


def _space_of_osts(tree: Tree, fsname: str) -> dict[str, Space | None]:
    """The space on each OST that this client knows; None for one that it cannot reach."""
    found: dict[str, Space | None] = {}
    for name in tree.devices("osc"):
        device = parse_device(name)
        # connections of servers to each other
        if device.fsname != fsname or device.instance.startswith(("MDT", "OST")):
            continue
        room, target = _space_if_reachable(tree, f"osc/{name}"), f"{fsname}-{device.target}"
        found[target] = None
        if room.size_bytes and room.size_bytes > 0 and room.free_bytes is not None and room.avail_bytes is not None:
            found[target] = Space(room.size_bytes, room.free_bytes, _avail_bytes(room, room.avail_bytes))
    return found


def refuse_unreachable(layout: Layout | None, unreachable: Mapping[int, str], path: str) -> None:
    """Raise an error for a file with an object on one of these OSTs, by its layout, which comes from the MDT.

    The client would wait for the size of the file until the OST is back, and nothing ends that wait.
    """
    for stripe in (stripe for part in (layout.components if layout else ()) for stripe in part.objects):
        if target := unreachable.get(stripe.ost_index):
            raise LustreError(errno.EHOSTDOWN, f"{target} cannot be reached", path)


def mdts_of(tree: Tree, fsname: str) -> tuple[str, ...]:
    """MDTs this node knows: those its client is connected to, or else those it serves."""
    devices = map(parse_device, _connections(tree, fsname) or tree.devices("mdt"))
    return tuple(sorted({d.target for d in devices if d.fsname == fsname and d.target.startswith("MDT")}))


def _connections(tree: Tree, fsname: str) -> list[str]:
    """Devices of this client for MDTs, without those that an administrator has deactivated, as of removed MDTs."""
    return [name for name in tree.devices("mdc") if parse_device(name).fsname == fsname
            and (tree.read(f"mdc/{name}/active") or b"").strip() != b"0"]


def read_metadata_space(tree: Tree, fsname: str) -> dict[str, MetadataSpace]:
    """Read the space on each MDT that this client can reach, by full target name."""
    rooms = [(parse_device(name), _space_if_reachable(tree, f"mdc/{name}")) for name in _connections(tree, fsname)]
    return {f"{fsname}-{device.target}": MetadataSpace(room.size_bytes, room.avail_bytes, room.files, room.files_free)
            for device, room in rooms
            if room.size_bytes and room.avail_bytes is not None and room.files and room.files_free is not None}


def space_of(tree: Tree, device: str) -> df.Df:
    """Read the df parameters of a device. Raises OSError."""
    return df.parse(*[tree.read(f"{device}/{file}") for file in df.FILES])


def _space_if_reachable(tree: Tree, device: str) -> df.Df:
    """The same of a target as this client sees it. One that it cannot reach has 0 for everything, or none.

    Its files cannot be read then: EAGAIN while the client is not connected (``obd_statfs``), EIO after an eviction.
    """
    try:
        return space_of(tree, device)
    except PermissionError:
        raise
    except OSError:
        return df.of_numbers(None, None, None, None, None)


def _avail_bytes(room: df.Df, avail_bytes: int) -> int:
    """Return the bytes that may still be written, reduced if the target is shorter of objects than of bytes.

    A target without free objects accepts no file, even if bytes are free (``OS_STATFS_ENOINO`` in
    lustre/osp/osp_precreate.c). For example, a target formatted with one object per 64 KiB is full of 4 KiB files when
    a sixteenth of its bytes is used. The target therefore counts as full as its scarcer resource.
    """
    objects, left = room.files or 0, room.files_free
    if objects <= 0 or left is None or left < 0:
        return avail_bytes
    return min(avail_bytes, (room.size_bytes or 0) * left // objects)


def archives_follow_swaps(tree: Tree, fsname: str) -> bool:
    """Whether an archived copy of a file stays valid when Lustre swaps the layouts of two files.

    The archived copy is valid while it has the version of the file's data. A swap of layouts changes the data version.
    Before 2.16 (LU-13048) the MDT did not update the version of the archived copy: the file stayed marked as archived,
    could no longer be released ("Operation not permitted"), and was not archived again.
    """
    return oldest_release(tree, fsname) >= (2, 16)


def copies_by_fid(tree: Tree, mount: Mount) -> bool:
    """Whether ``lfs`` can copy a file by its FID (LU-12516, 2.13). A mounted subdirectory has no ``.lustre``."""
    return not mount.subdirectory and oldest_release(tree, mount.fsname) >= (2, 13)


def with_fileset(library: Library, mount: Mount) -> Mount:
    """A mount with what /proc/mounts does not show: the fileset of a nodemap is its root (``mdt_get_root``)."""
    if mount.subdirectory or library.path_fid(mount.path) == _ROOT:
        return mount
    return replace(mount, subdirectory="the fileset of a nodemap")


def client_release(tree: Tree) -> tuple[int, int]:
    """The release of this client, and so of its ``lfs``; (0, 0) if it is unknown."""
    return _number(version.parse(tree.read("version") or b"").release)


def oldest_release(tree: Tree, fsname: str) -> tuple[int, int]:
    """The oldest release of this client and its metadata targets; (0, 0) if one is unknown."""
    mdts = _mdt_releases(tree, fsname)
    return min(client_release(tree), *mdts) if mdts else (0, 0)


def read_quota(library: Library, tree: Tree, mount: Mount, kind: int, owner: int, pool: str) -> Quota:
    """Read the block quota of a user (0), a group (1) or a project (2), for the file system, or for one pool of OSTs.

    Pools have quotas since 2.14 (LU-11023), and in older releases of some vendors. Others refuse the request.
    """
    try:
        return library.quota(mount.path, kind, owner, pool)
    except OSError as error:
        if not pool or error.errno not in {524, errno.EFAULT}:  # ENOTSUPP of this client's kernel; of the MDT
            raise
        mdts = _mdt_releases(tree, mount.fsname)
        if mdts and all((0, 0) < mdt < (2, 14) for mdt in mdts):
            return Quota(0, 0, 0)
        raise LustreError(errno.EIO, "this client or an MDT is too old to tell quotas of pools", mount.path) from error


def _mdt_releases(tree: Tree, fsname: str) -> list[tuple[int, int]]:
    """The releases of the metadata targets; (0, 0) for an unknown one."""
    return [_number(import_.parse(tree.read(f"mdc/{name}/import") or b"").target_version)
            for name in _connections(tree, fsname)]


def _number(release: bytes | None) -> tuple[int, int]:
    found = re.match(rb"(\d{1,4})\.(\d{1,4})\.", release or b"")
    return (0, 0) if found is None else (int(found[1]), int(found[2]))
