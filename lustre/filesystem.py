"""The two ports to a Lustre file system: :class:`Filesystem` for tierd, and :class:`Calls` for the movers.

:class:`Filesystem` is what tierd may ask of a file system, and the few things it may change. The simulator implements
it over its model, :class:`lustre.mounted.MountedFilesystem` over a mounted client.

:class:`Calls` has one small method for each thing a mover asks of Lustre.
:class:`lustre.mounted_calls.MountedCalls` implements it over a mount point. The tests implement it with a Lustre in
memory that has leases, volatile files and layout swaps. File descriptors are those that the ``open`` methods return.

Paths are relative to the root of the file system and begin with a slash: ``/proj/ingest`` is
``/mnt/lustre/proj/ingest`` on a client. Every method may raise OSError with the errno Lustre returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag
from typing import Protocol

from lustre.fid import Fid
from lustre.layout.model import Layout


@dataclass(frozen=True, slots=True)
class Space:
    """Room on one target, in bytes."""

    size_bytes: int
    free_bytes: int
    avail_bytes: int
    """What may still be written; less where there are fewer objects left than that."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """What stat(2) says, with the FID. Times are epoch seconds."""

    fid: Fid
    size_bytes: int
    mtime: float
    atime: float
    uid: int
    gid: int
    link_count: int
    is_directory: bool = False


class Filesystem(Protocol):
    """One Lustre file system."""

    @property
    def fsname(self) -> str:
        """The name in ``lustre-OST0003``: here ``lustre``."""

    def pools(self) -> Mapping[str, tuple[str, ...]]:
        """Pool name to the full names of its targets: ``{"flash": ("lustre-OST0000", …)}``."""

    def space(self) -> Mapping[str, Space]:
        """Full target name (OSTs only) to its room."""

    def path_of(self, fid: Fid) -> str:
        """One path of a FID. Raises FileNotFoundError when nothing has it any more."""

    def status(self, path: str) -> FileStatus:
        """Stat without following symbolic links."""

    def entries(self, directory: str) -> Iterator[str]:
        """Names in a directory, without ``.`` and ``..``."""

    def subdirectories(self, directory: str) -> Sequence[str]:
        """Names of the directories in a directory, links to some left out; no file is asked about."""

    def xattr(self, path: str, name: str) -> bytes:
        """An extended attribute (``user.tierd``, ``lustre.pin``), of a symbolic link its own; b"" for none."""

    def layout(self, path: str) -> Layout | None:
        """Layout of a file; default layout of a directory, None where it has none of its own."""

    def set_default_layout(self, directory: str, layout: Layout | None) -> None:
        """Give new files below a directory a layout, or (None) take the directory's own default away."""

    def migrate(self, path: str, layout: Layout) -> None:
        """Rewrite a file with another layout, never in an application's way.

        Raises OSError EBUSY when somebody has it open for writing or opens it meanwhile, ENOSPC when the pool is
        full. The file is whole either way.
        """

    def changelog(self, mdt: str, after_index: int) -> bytes:
        """Raw records of one MDT (``MDT0000``) with a higher index than given, oldest first; b"" when none are."""


class FileFlags(Flag):
    """What ``lsattr`` shows that matters to a mover."""

    NONE = 0
    IMMUTABLE = 0x10
    APPEND_ONLY = 0x20
    ENCRYPTED = 0x800


class HsmFlags(Flag):
    """What ``lfs hsm_state`` shows."""

    NONE = 0
    EXISTS = 0x1
    DIRTY = 0x2
    RELEASED = 0x4
    ARCHIVED = 0x8
    NO_RELEASE = 0x10
    NO_ARCHIVE = 0x20
    LOST = 0x40
    CACHED_WRITABLE = 0x80
    """On the local disk of a client (PCC)."""
    CACHED_READ_ONLY = 0x100


@dataclass(frozen=True, slots=True)
class Hsm:
    """A file's archive state."""

    flags: HsmFlags = HsmFlags.NONE
    in_progress: bool = False
    """Being archived, restored or removed now."""
    unknown_flags: int = 0
    """Bits a later release gave a meaning that is not known here."""
    left_behind: bool = False
    """It has a copy in the archive, which this Lustre would not tell of a move (:mod:`lustre.mounted`)."""

    @property
    def copied(self) -> bool:
        """Whether the archive has a copy, or is making its first."""
        return bool(self.flags & (HsmFlags.EXISTS | HsmFlags.ARCHIVED))


@dataclass(frozen=True, slots=True)
class Status:
    """What stat(2) says. Times are nanoseconds of the epoch; Lustre keeps whole seconds."""

    mode: int
    uid: int
    gid: int
    size_bytes: int
    link_count: int
    atime_ns: int
    mtime_ns: int
    ctime_ns: int
    held_bytes: int = 0
    """Room the file takes on its targets; less than its size where it has holes."""


@dataclass(frozen=True, slots=True)
class Belongings:
    """What one listing of a file's extended attributes says."""

    names: frozenset[str] = frozenset()
    """Attributes of the file's own, ACLs among them; those that describe its objects or its place are left out."""
    pin: bytes = b""
    """What pins the file to a pool (``lustre.pin``); b"" when nothing does."""


@dataclass(frozen=True, slots=True)
class Quota:
    """One owner's block quota, of the file system or of one pool. A limit of 0 is none."""

    used_bytes: int
    soft_limit_bytes: int
    hard_limit_bytes: int
    whole: bool = True
    """Whether all targets have told what is used; else more may be."""

    def room_bytes(self) -> int | None:
        """What may still be written below both limits; None when there are none."""
        limits = [limit for limit in (self.soft_limit_bytes, self.hard_limit_bytes) if limit]
        return max(0, min(limits) - self.used_bytes) if limits else None


class Calls(Protocol):
    """One mounted Lustre file system, as a mover needs it."""

    def status_of(self, path: str) -> Status:
        """Stat by name, without opening the file or following a symbolic link."""

    def layout_of(self, path: str) -> Layout | None:
        """Layout by name, without opening the file; None for a file that has none yet."""

    def open_for_reading(self, path: str) -> int:
        """Open without following a symbolic link, without touching the access time, without waiting."""

    def open_for_swap(self, path: str, direct: bool) -> int:
        """Open for reading and writing, as a lease and a swap need it; direct reads past the page cache."""

    def open_fid(self, fid: Fid) -> int:
        """Open for reading by identity, whatever its name is now."""

    def exists(self, fid: Fid) -> bool:
        """Whether the file still is in the name space, asked of its MDT. Raises OSError where the MDT does not say."""

    def create_volatile(self, beside: str, mdt_index: int, layout: Layout | None, source: int) -> int:
        """A file without a name, in the directory of ``beside``, on that MDT; gone when its last descriptor is.

        ``layout`` None: the file gets what a new file in that directory gets, in one request instead of three.
        """

    def close(self, descriptor: int) -> None:
        """Close; ends a lease and destroys a volatile file."""

    def status(self, descriptor: int) -> Status:
        """Stat."""

    def size(self, descriptor: int) -> int:
        """Size in bytes, and nothing else: no request while this client holds the locks of what it wrote."""

    def fid(self, descriptor: int) -> Fid:
        """Identity."""

    def mdt_index(self, descriptor: int) -> int:
        """The MDT the file is on, asked of the open file."""

    def mdt_index_of(self, fid: Fid) -> int:
        """The MDT a FID lies on, asked of the FID location database."""

    def layout(self, descriptor: int) -> Layout | None:
        """Layout; None for a file that has none yet."""

    def belongings(self, descriptor: int) -> Belongings:
        """Extended attributes and pin, in one request where the file has no pin."""

    def hsm(self, descriptor: int) -> Hsm:
        """Archive state."""

    def flags(self, descriptor: int) -> FileFlags:
        """Inode flags."""

    def project(self, descriptor: int) -> int:
        """Project id."""

    def project_beside(self, path: str) -> int:
        """Project id that a new file in the directory of that path gets."""

    def set_project(self, descriptor: int, project: int) -> None:
        """Give it to a project, so that its objects count for that project's quota."""

    def set_owner(self, descriptor: int, uid: int, gid: int) -> None:
        """Give it to its owner, so that its objects count for the owner's quota, and the swap is allowed."""

    def set_times(self, descriptor: int, atime_ns: int, mtime_ns: int) -> None:
        """Access and modification time."""

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        """Up to so many bytes; b"" at the end of the file."""

    def write(self, descriptor: int, data: bytes, offset: int) -> int:
        """Write; how much of it was."""

    def truncate(self, descriptor: int, size_bytes: int) -> None:
        """Set the size."""

    def next_data(self, descriptor: int, offset: int) -> tuple[int, int] | None:
        """Where the next data begins and ends, at or after the offset; None when only a hole follows."""

    def sync(self, descriptor: int) -> None:
        """Wait until all data written is on the targets' storage."""

    def drop_cache(self, descriptor: int) -> None:
        """Forget what the client has cached of it."""

    def lease(self, descriptor: int) -> None:
        """Take a read lease. Raises Busy when somebody writes, has it open for writing, or holds a lease."""

    def lease_held(self, descriptor: int) -> bool:
        """Whether the lease is still ours: nobody has opened the file for writing, truncated or unlinked it."""

    def data_version(self, descriptor: int) -> int:
        """A number that changes with every change of the data; other clients' unwritten data is written back first."""

    def swap_and_close(self, source: int, volatile: int, source_version: int, volatile_version: int) -> None:
        """In one transaction: give up the lease if it is unbroken, exchange the two layouts, close the source.

        Both descriptors still have to be closed. Raises Stale or Busy when the lease was broken: then nothing was done.
        """
