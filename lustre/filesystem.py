"""The port everybody acts through: what tierd may ask of a Lustre file system, and the few things it may do to it.

The simulator implements it over its model, ``MountedFilesystem`` over a mounted client. Paths are relative to the
root of the file system and begin with a slash: ``/proj/ingest`` is ``/mnt/lustre/proj/ingest`` on a client.
Every method may raise OSError with the errno Lustre gave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lustre.fid import Fid
from lustre.layout import Layout


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
