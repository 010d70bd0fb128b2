"""The two ports to a Lustre file system: :class:`Filesystem` for tierd, and :class:`Calls` for the movers.

:class:`Filesystem` has the reads and the few changes that tierd makes. The simulator implements it over its model.
:class:`lustre.mounted.MountedFilesystem` implements it over a mounted client.

:class:`Calls` has one small method for each request that a mover makes to Lustre.
:class:`lustre.mounted_calls.MountedCalls` implements it over a mount point. The tests implement it with a Lustre in
memory that has leases, volatile files and layout swaps. The ``open`` methods return the file descriptors.

Paths are relative to the root of the file system and begin with a slash: ``/proj/ingest`` is
``/mnt/lustre/proj/ingest`` on a client. Every method may raise OSError with the errno Lustre returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag
from typing import Protocol

from lustre.fid import Fid
from lustre.layout.directory import DefaultStriping, DirectoryStripes
from lustre.layout.model import Layout


@dataclass(frozen=True, slots=True)
class Space:
    """Space on one target, in bytes."""

    size_bytes: int
    free_bytes: int
    avail_bytes: int
    """Bytes that can still be written; lower where the target runs out of objects first."""


@dataclass(frozen=True, slots=True)
class MetadataSpace:
    """Space and inodes on one MDT."""

    size_bytes: int
    avail_bytes: int
    inodes: int
    inodes_free: int

    @property
    def used(self) -> float:
        """Used share of the scarcer of bytes and inodes."""
        bytes_used = 1 - self.avail_bytes / self.size_bytes if self.size_bytes else 1.0
        return max(bytes_used, 1 - self.inodes_free / self.inodes if self.inodes else 1.0)


@dataclass(frozen=True, slots=True)
class FileStatus:
    """The result of stat(2), with the FID. Times are epoch seconds."""

    fid: Fid
    size_bytes: int
    mtime: float
    atime: float
    uid: int
    gid: int
    link_count: int
    is_directory: bool = False
    mode: int = 0
    """Type and permission bits, as in ``st_mode``. 0, which permits nothing, where they are not known."""


class Filesystem(Protocol):
    """One Lustre file system, as tierd uses it."""

    @property
    def fsname(self) -> str:
        """Name of the file system: ``lustre`` where an OST is called ``lustre-OST0003``."""

    def pools(self) -> Mapping[str, tuple[str, ...]]:
        """Return the full target names of each pool: ``{"flash": ("lustre-OST0000", …)}``."""

    def space(self) -> Mapping[str, Space]:
        """Return the space on each OST, by full target name."""

    def metadata_space(self) -> Mapping[str, MetadataSpace]:
        """Return the space on each MDT that can be reached, by full target name."""

    def path_of(self, fid: Fid, link: int = 0) -> str:
        """Return a path of a FID, by the number of the link. Raises FileNotFoundError when no file has the FID."""

    def status(self, path: str) -> FileStatus:
        """Stat a path without following symbolic links."""

    def entries(self, directory: str) -> Iterator[str]:
        """List the names in a directory, without ``.`` and ``..``."""

    def subdirectories(self, directory: str) -> Sequence[str]:
        """List the subdirectories of a directory, without symbolic links. No file is stat'ed."""

    def xattr(self, path: str, name: str) -> bytes:
        """Read an extended attribute (``user.tierd``) without following a symbolic link; b"" if absent.

        Raises Unsupported where the mount (``nouser_xattr``) or the release has no attributes of this kind.
        """

    def layout(self, path: str) -> Layout | None:
        """Read the layout of a file, or the default layout of a directory; None for a directory without its own."""

    def set_default_layout(self, directory: str, layout: Layout | None, fid: Fid | None = None) -> None:
        """Set the default layout of a directory, or (None) delete it. Raises ValueError, and Stale for another FID."""

    def directory_stripes(self, directory: str) -> DirectoryStripes:
        """Read the stripes of a directory over MDTs."""

    def default_striping(self, directory: str) -> DefaultStriping | None:
        """Read a directory's own default striping of new subdirectories; None if it has none of its own."""

    def set_default_striping(self, directory: str, striping: DefaultStriping | None, fid: Fid | None = None) -> None:
        """Set the default striping of new subdirectories, or (None) delete it. Raises as the above."""

    def changelog(self, mdt: str, after_index: int) -> bytes:
        """Read the raw records of one MDT (``MDT0000``) above an index, oldest first; b"" when there are none.

        A record that was written late may be missing in one call, and there in a later one from before it.
        """


class FileFlags(Flag):
    """Inode flags that matter to a mover, as ``lsattr`` shows them."""

    NONE = 0
    IMMUTABLE = 0x10
    APPEND_ONLY = 0x20
    ENCRYPTED = 0x800


class HsmFlags(Flag):
    """HSM state flags, as ``lfs hsm_state`` shows them."""

    NONE = 0
    EXISTS = 0x1
    DIRTY = 0x2
    RELEASED = 0x4
    ARCHIVED = 0x8
    NO_RELEASE = 0x10
    NO_ARCHIVE = 0x20
    LOST = 0x40
    CACHED_WRITABLE = 0x80
    """The data is on the local disk of a client (PCC)."""
    CACHED_READ_ONLY = 0x100


@dataclass(frozen=True, slots=True)
class Hsm:
    """The HSM state of a file."""

    flags: HsmFlags = HsmFlags.NONE
    in_progress: bool = False
    """An archive, restore or remove request is running."""
    unknown_flags: int = 0
    """Unknown bits, which a later release defined."""
    left_behind: bool = False
    """The file has an archived copy that a move would invalidate, because this release does not notify the MDT
    (:mod:`lustre.mounted`)."""

    @property
    def copied(self) -> bool:
        """Whether the archive has a copy or is making one."""
        return bool(self.flags & (HsmFlags.EXISTS | HsmFlags.ARCHIVED))


@dataclass(frozen=True, slots=True)
class Status:
    """The result of stat(2). Times are nanoseconds of the epoch; Lustre stores whole seconds."""

    mode: int
    uid: int
    gid: int
    size_bytes: int
    link_count: int
    atime_ns: int
    mtime_ns: int
    ctime_ns: int
    held_bytes: int = 0
    """Space that the file uses on its targets; less than its size if it has holes."""


@dataclass(frozen=True, slots=True)
class Belongings:
    """The extended attributes of a file that a mover needs, from one listing."""

    names: frozenset[str] = frozenset()
    """The file's own attributes, including ACLs, without those that describe its objects or its place."""
    pin: bytes = b""
    """Value of ``lustre.pin``, which pins the file to a pool; b"" for a file without a pin."""


@dataclass(frozen=True, slots=True)
class Quota:
    """Block quota of one owner, for the file system or for one pool. A limit of 0 means no limit."""

    used_bytes: int
    soft_limit_bytes: int
    hard_limit_bytes: int
    whole: bool = True
    """Whether all targets reported their usage. Otherwise the real usage may be higher."""

    def room_bytes(self) -> int | None:
        """Bytes that can still be written below both limits; None without limits."""
        limits = [limit for limit in (self.soft_limit_bytes, self.hard_limit_bytes) if limit]
        return max(0, min(limits) - self.used_bytes) if limits else None


class Calls(Protocol):
    """One mounted Lustre file system, as a mover uses it."""

    def status_of(self, path: str) -> Status:
        """Stat a path without opening the file or following a symbolic link."""

    def layout_of(self, path: str) -> Layout | None:
        """Read the layout of a path without opening the file; None for a file without a layout."""

    def open_for_reading(self, path: str) -> int:
        """Open a path for reading. Does not follow a symbolic link, change the access time or block."""

    def open_for_swap(self, path: str, direct: bool) -> int:
        """Open for reading and writing, as a lease and a layout swap need it. Reads can bypass the page cache."""

    def open_fid(self, fid: Fid) -> int:
        """Open a file for reading by its FID, whatever its present name is."""

    def exists(self, fid: Fid) -> bool:
        """Ask the MDT whether the file still has a name. Raises OSError when the MDT does not answer."""

    def create_volatile(self, beside: str, mdt_index: int, layout: Layout, source: int) -> int:
        """Create a file without a name on an MDT, in the directory of ``beside``. It is deleted at its last close."""

    def close(self, descriptor: int) -> None:
        """Close a descriptor. This ends a lease and destroys a volatile file."""

    def status(self, descriptor: int) -> Status: ...

    def size(self, descriptor: int) -> int:
        """Return the size in bytes. Sends no request while this client holds the locks of the data that it wrote."""

    def fid(self, descriptor: int) -> Fid: ...

    def mdt_index(self, descriptor: int) -> int: ...

    def mdt_index_of(self, fid: Fid) -> int:
        """Return the index of the MDT of a FID, from the FID location database."""

    def layout(self, descriptor: int) -> Layout | None:
        """Read the layout of an open file; None for a file without a layout."""

    def belongings(self, descriptor: int) -> Belongings:
        """Read the extended attributes and the pin. Sends one request if the file has no pin."""

    def hsm(self, descriptor: int) -> Hsm: ...

    def flags(self, descriptor: int) -> FileFlags: ...

    def project(self, descriptor: int) -> int: ...

    def project_beside(self, path: str) -> int:
        """Read the project id that a new file in the directory of a path would get."""

    def set_project(self, descriptor: int, project: int) -> None:
        """Set the project id of an open file. Its objects then count for that project's quota."""

    def set_owner(self, descriptor: int, uid: int, gid: int) -> None:
        """Set the owner of an open file. Its objects then count for the owner's quota, and a swap is permitted."""

    def set_times(self, descriptor: int, atime_ns: int, mtime_ns: int) -> None:
        """Set the access and the modification time of an open file."""

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        """Read up to a number of bytes at an offset; b"" at the end of the file."""

    def write(self, descriptor: int, data: bytes, offset: int) -> int:
        """Write at an offset; returns the number of bytes written."""

    def truncate(self, descriptor: int, size_bytes: int) -> None: ...

    def next_data(self, descriptor: int, offset: int) -> tuple[int, int] | None:
        """Return start and end of the next data at or after an offset; None when only a hole follows."""

    def sync(self, descriptor: int) -> None:
        """Wait until all data written is on the targets' storage."""

    def drop_cache(self, descriptor: int) -> None:
        """Drop the client's cached pages of an open file."""

    def lease(self, descriptor: int) -> None:
        """Take a read lease. Raises Busy when another process has the file open for writing or holds a lease."""

    def lease_held(self, descriptor: int) -> bool:
        """Whether the lease is unbroken: no process has opened the file for writing, truncated or unlinked it."""

    def data_version(self, descriptor: int) -> int:
        """Return the data version, which changes with the data.

        First every client, this one too, writes back its dirty pages and loses its write locks.
        """

    def stored_version(self, descriptor: int) -> int:
        """Return the data version of what is on the targets, and leave all clients their dirty pages and locks."""

    def swap_and_close(self, source: int, volatile: int, source_version: int, volatile_version: int) -> None:
        """In one transaction, release the unbroken lease, swap the two layouts and close the source.

        The caller must still close both descriptors. If the lease is broken, raises Stale or Busy and changes nothing.
        """
