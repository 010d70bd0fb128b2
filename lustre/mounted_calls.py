"""The calls of a mover over a mount point: implements :class:`lustre.filesystem.Calls`.

Requests that only Lustre supports go through liblustreapi and extended attributes, all others through system calls.
"""

from __future__ import annotations

import errno
import mmap
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from lustre import attributes
from lustre.attributes import layout_at
from lustre.errors import Gone, NoPath, typed
from lustre.fid import Fid
from lustre.filesystem import Belongings, FileFlags, Hsm, Status
from lustre.layout.model import Layout
from lustre.layout.xattr import of_new_file
from lustre.llapi.calls import Library
from lustre.llapi.directories import opened
from lustre.llapi.layouts import open_with_layout


def status_from(found: os.stat_result) -> Status:
    return Status(found.st_mode, found.st_uid, found.st_gid, found.st_size, found.st_nlink, atime_ns=found.st_atime_ns,
                  mtime_ns=found.st_mtime_ns, ctime_ns=found.st_ctime_ns,
                  held_bytes=found.st_blocks * 512)  # in this unit on any file system (stat(2))  # fmt: skip


_VOLATILE = ".\x0c\x13\x14\x12:VOLATILE"
"""Prefix of the names of volatile files, which Lustre never writes into a directory."""
_WITHOUT_LAYOUT = os.O_NOCTTY | os.O_ASYNC
"""O_LOV_DELAY_CREATE: the file gets no objects before its layout is set."""
_CAREFUL = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_NOT_THE_FILES_OWN = ("lustre.", "trusted.")
"""Attributes that describe the objects or the place of a file, and change with a move."""
PIN = "trusted.pin"
"""Attribute in which an MDT stores the pin of a file. The listing has it only for pinned files."""


class MountedCalls:
    """The calls of a mover below one mount point. Any number of threads may share it."""

    def __init__(self, library: Library, mount_point: str,
                 archives_notified: Callable[[], bool] = lambda: False) -> None:
        """``archives_notified`` returns whether archived copies stay valid after a layout swap
        (:mod:`lustre.mounted`).
        """
        self._library = library
        self._archives_notified = archives_notified
        self._mount = mount_point.rstrip("/") or "/"
        self._mdt_of_sequence: dict[int, int] = {}

    def whole(self, path: str) -> str:
        return whole(self._mount, path)

    def status_of(self, path: str) -> Status:
        with typed("stat", path):
            return status_from(os.lstat(self.whole(path)))

    def layout_of(self, path: str) -> Layout | None:
        return layout_at(self.whole(path))

    def open_for_reading(self, path: str) -> int:
        with typed("open", path), pinned(self._mount, path) as place:
            return os.open(place, os.O_RDONLY | os.O_NOATIME | _CAREFUL)

    def open_for_swap(self, path: str, direct: bool) -> int:
        with typed("open", path), pinned(self._mount, path) as place:
            return os.open(place, os.O_RDWR | os.O_NOATIME | _CAREFUL | (os.O_DIRECT if direct else 0))

    def open_fid(self, fid: Fid) -> int:
        return self._library.open_fid(self._mount, fid, os.O_RDONLY | os.O_NOATIME | os.O_NONBLOCK | os.O_CLOEXEC)

    def exists(self, fid: Fid) -> bool:
        # fid2path returns ENOENT only for a file that no longer exists (mdt_fid2path in lustre/mdt/mdt_handler.c).
        # Opening by FID proves nothing: since 2.16 it uses open_by_handle_at(2), for which Linux returns ESTALE on any
        # error, even if the MDT cannot be reached
        try:
            self._library.path_of(self._mount, fid)
        except Gone:
            return False
        return True

    def create_volatile(self, beside: str, mdt_index: int, layout: Layout, source: int) -> int:
        if mdt_index < 0:
            raise ValueError("a volatile file needs the MDT of its source: on another, the swap would lose the data")
        with pinned(self._mount, beside) as place:
            # by fd= Lustre copies the encryption context of the source
            name = f":{mdt_index:04X}:{secrets.randbits(31):04X}:fd={source:02d}"
            return self._new_file(f"{os.path.dirname(place)}/{_VOLATILE}{name}", beside, layout)

    def _new_file(self, name: str, beside: str, layout: Layout) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        value = of_new_file(layout)
        if value is not None:
            with typed("create volatile file", beside):
                descriptor = os.open(name, flags | _WITHOUT_LAYOUT, 0o600)
        else:
            descriptor = open_with_layout(self._library, name, flags, 0o600, layout)
        try:
            self._library.fid(descriptor)  # only a file of Lustre has one; this asks no server
            if value is not None:  # as the library does, which first looks for the name, twice, and for the pools
                with typed("set layout", beside):
                    os.setxattr(descriptor, attributes.LAYOUT, value)
        except OSError:
            os.close(descriptor)
            with suppress(OSError):  # an ordinary name where something else is mounted below Lustre
                os.unlink(name)
            raise
        return descriptor

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def status(self, descriptor: int) -> Status:
        with typed("stat"):
            return status_from(os.fstat(descriptor))

    def size(self, descriptor: int) -> int:
        with typed("seek"):
            return os.lseek(descriptor, 0, os.SEEK_END)

    def set_owner(self, descriptor: int, uid: int, gid: int) -> None:
        with typed("set owner"):
            os.fchown(descriptor, uid, gid)

    def set_times(self, descriptor: int, atime_ns: int, mtime_ns: int) -> None:
        with typed("set times"):
            os.utime(descriptor, ns=(atime_ns, mtime_ns))

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        # a direct read needs a buffer that is aligned to pages
        with typed("read"), mmap.mmap(-1, -(-length // mmap.PAGESIZE) * mmap.PAGESIZE) as buffer:
            return buffer[: os.preadv(descriptor, [buffer], offset)][:length]

    def write(self, descriptor: int, data: bytes, offset: int) -> int:
        # clients of 2.17 write large buffers directly (hybrid_io), and copy what is not aligned page by page
        # (__ll_dio_user_copy): on 2.17.57 that once gave up half way, and the copy differed from the file
        with typed("write"), mmap.mmap(-1, len(data)) as buffer:
            buffer.write(data)
            return os.pwritev(descriptor, [buffer], offset)

    def truncate(self, descriptor: int, size_bytes: int) -> None:
        with typed("truncate"):
            os.ftruncate(descriptor, size_bytes)

    def next_data(self, descriptor: int, offset: int) -> tuple[int, int] | None:
        """A release that cannot tell holes from data reports only data."""
        try:
            with typed("seek data"):
                start = os.lseek(descriptor, offset, os.SEEK_DATA)
                return start, os.lseek(descriptor, start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno != errno.ENXIO:  # no data from there on
                raise
            return None

    def sync(self, descriptor: int) -> None:
        # omits the request to the MDT (ll_fsync in lustre/llite/file.c, since 2.17), and loses nothing: the journal of
        # the same MDT has the swap after the creation of the copy
        with typed("sync"):
            os.fdatasync(descriptor)

    def drop_cache(self, descriptor: int) -> None:
        with typed("drop cache"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def fid(self, descriptor: int) -> Fid:
        return self._library.fid(descriptor)

    def mdt_index(self, descriptor: int) -> int:
        return self._library.mdt_index(descriptor)

    def mdt_index_of(self, fid: Fid) -> int:
        # a sequence belongs to one MDT for ever
        if fid.sequence not in self._mdt_of_sequence:
            with opened(self._mount) as root:  # closed at once, because an open descriptor blocks an unmount
                self._mdt_of_sequence[fid.sequence] = self._library.mdt_index_of(root, fid)
        return self._mdt_of_sequence[fid.sequence]

    def layout(self, descriptor: int) -> Layout | None:
        return layout_at(descriptor)

    def belongings(self, descriptor: int) -> Belongings:
        with typed("list extended attributes"):
            listed = os.listxattr(descriptor)
        own = frozenset(name for name in listed if not name.startswith(_NOT_THE_FILES_OWN))
        # a process that may see trusted attributes sees trusted.lma on every file: then only a pin in the list is read
        complete = any(name.startswith("trusted.") for name in listed)
        return Belongings(own, self._pin(descriptor) if not complete or PIN in listed else b"")

    def hsm(self, descriptor: int) -> Hsm:
        found = self._library.hsm(descriptor)
        return replace(found, left_behind=not self._archives_notified()) if found.copied else found

    def flags(self, descriptor: int) -> FileFlags:
        with typed("get inode flags"):
            return attributes.inode_flags(descriptor)

    def _pin(self, descriptor: int) -> bytes:
        try:
            return os.getxattr(descriptor, "lustre.pin")
        except OSError as error:
            if error.errno in {errno.ENODATA, errno.EOPNOTSUPP}:  # no pin, or a release without pins
                return b""
            with typed("get pin"):
                raise

    def project(self, descriptor: int) -> int:
        with typed("get project"):
            return attributes.project(descriptor)

    def project_beside(self, path: str) -> int:
        directory = os.path.dirname(self.whole(path))
        with typed("get project", path), opened(f"{directory}/.", self._mount) as descriptor:
            return attributes.inherited_project(descriptor)

    def set_project(self, descriptor: int, project: int) -> None:
        with typed("set project"):
            attributes.set_project(descriptor, project)

    def lease(self, descriptor: int) -> None:
        self._library.lease(descriptor)

    def lease_held(self, descriptor: int) -> bool:
        return self._library.lease_held(descriptor)

    def data_version(self, descriptor: int) -> int:
        return self._library.data_version(descriptor, flush=True)

    def stored_version(self, descriptor: int) -> int:
        return self._library.data_version(descriptor, flush=False)

    def swap_and_close(self, source: int, volatile: int, source_version: int, volatile_version: int) -> None:
        self._library.swap_and_close(source, volatile, source_version, volatile_version)


def whole(mount_point: str, path: str) -> str:
    """Join a path to a mount point. Raises NoPath for a path that leaves the mount point, or that no name can have."""
    try:
        sound = path.startswith("/") and ".." not in path.split("/") and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can have
        sound = False
    if not sound:
        raise NoPath(errno.EINVAL, f"not a path from the root of the file system: {path!r}")
    return mount_point.rstrip("/") + path


@contextmanager
def pinned(mount_point: str, path: str) -> Iterator[str]:
    """A path by its opened directory. Raises Stale where a symbolic link leads out of the mount, as to a device."""
    directory, _, name = whole(mount_point, path).rpartition("/")
    with opened(f"{directory}/.", mount_point, os.O_PATH) as descriptor:
        yield f"/proc/self/fd/{descriptor}/./{name}"
