"""Attributes of files: extended attributes (including the layout), inode flags and project ids.

Extended attributes are read from an open file or from a path. A symbolic link is never followed. Inode flags and
project ids are read from what the client knows since the last stat, and with the generic ioctls of Linux file systems
where a release does not offer that.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Callable

from lustre.errors import typed, understood
from lustre.filesystem import FileFlags
from lustre.layout.model import Layout
from lustre.layout.xattr import from_xattr
from lustre.llapi.statx import shown_flags

LAYOUT = "lustre.lov"


def layout_at(place: int | str) -> Layout | None:
    """Read the layout of an open file or of a path, without following a symbolic link; None if there is no layout."""
    value = attribute(place, LAYOUT)
    return None if value is None else understood(from_xattr, value)


def attribute(place: int | str, name: str) -> bytes | None:
    """Read an extended attribute of an open file or of a path, without following a symbolic link; None if absent."""
    try:
        return os.getxattr(place, name) if isinstance(place, int) else os.getxattr(place, name, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.ENODATA:
            return None
        with typed(f"get {name}"):
            raise


def attribute_names(place: str) -> list[str]:
    """List the extended attributes of a path that this process may see, without following a symbolic link."""
    with typed("list attributes"):
        return os.listxattr(place, follow_symlinks=False)


Ioctl = Callable[[int, int, bytes], bytes]
_GET_FLAGS = 0x80086601
_GET_ATTRIBUTES = 0x801C581F
_SET_ATTRIBUTES = 0x401C5820
_INHERIT = 0x200
_ATTRIBUTES = struct.Struct("=IIIII8x")
"""struct fsxattr: flags, extent size, extents, project id, copy-on-write extent size."""
_PROJECT = 0x411066FD
"""LL_IOC_PROJECT, since Lustre 2.15."""
_PROJECT_FORM = struct.Struct("=IIII256x")
"""struct lu_project: command, project id, flags, reserved, and the name of a file below an open directory."""
_SET, _GET = 1, 2
_SHOWN = FileFlags.IMMUTABLE | FileFlags.APPEND_ONLY
"""Flags by which a file system tells that statx(2) shows its flags. Lustre shows ENCRYPTED without telling."""
_ENCRYPTED = 0x00800000
"""LUSTRE_ENCRYPT_FL, which Lustre 2.15 shows instead of ENCRYPTED."""


def inode_flags(descriptor: int) -> FileFlags:
    """Read the inode flags that forbid a move, as of the last stat of the file.

    statx(2) sends no request for them. ``FS_IOC_GETFLAGS`` sends one each time (``fileattr_get`` in
    lustre/llite/llite_lib.c), so it is used only before Lustre 2.14, where statx(2) does not show them.
    """
    if (bits := shown_flags(descriptor, _SHOWN.value)) is None:
        bits = int.from_bytes(fcntl.ioctl(descriptor, _GET_FLAGS, bytes(8))[:4], "little")
    found = FileFlags(bits & sum(flag.value for flag in FileFlags))
    return found | FileFlags.ENCRYPTED if bits & _ENCRYPTED else found


def project(descriptor: int, ioctl: Ioctl = fcntl.ioctl) -> int:
    """Read the project id of an open file, as of its last stat. Lustre does not update it when the project is set.

    ``LL_IOC_PROJECT`` sends no request. ``FS_IOC_FSGETXATTR`` sends one, and returns the same value: the client ignores
    the project in the answer (``fileattr_get`` in lustre/llite/llite_lib.c).
    """
    try:
        return _project(ioctl, descriptor, _GET)[1]
    except OSError as error:
        if error.errno != errno.ENOTTY:
            raise
        return _generic_attributes(ioctl, descriptor)[3]


def inherited_project(directory: int) -> int:
    """Project id of new files in a directory: the directory's if its inherit flag is set, else 0."""
    found = _generic_attributes(fcntl.ioctl, directory)
    return found[3] if found[0] & _INHERIT else 0


def set_project(descriptor: int, number: int, ioctl: Ioctl = fcntl.ioctl) -> None:
    """Set the project id of an open file and leave its other attributes as they are.

    ``LL_IOC_PROJECT`` sends one request. For ``FS_IOC_FSSETXATTR`` the kernel reads all attributes first.
    """
    try:
        _project(ioctl, descriptor, _SET, number, _project(ioctl, descriptor, _GET)[2])
    except OSError as error:
        if error.errno != errno.ENOTTY:
            raise
        bits, extent_size, extents, _, copy_size = _generic_attributes(ioctl, descriptor)
        ioctl(descriptor, _SET_ATTRIBUTES, _ATTRIBUTES.pack(bits, extent_size, extents, number, copy_size))


def _project(ioctl: Ioctl, descriptor: int, command: int, number: int = 0, bits: int = 0) -> tuple[int, int, int, int]:
    found: tuple[int, int, int, int] = _PROJECT_FORM.unpack(
        ioctl(descriptor, _PROJECT, _PROJECT_FORM.pack(command, number, bits, 0)))
    return found


def _generic_attributes(ioctl: Ioctl, descriptor: int) -> tuple[int, int, int, int, int]:
    found: tuple[int, int, int, int, int] = _ATTRIBUTES.unpack(
        ioctl(descriptor, _GET_ATTRIBUTES, bytes(_ATTRIBUTES.size)))
    return found
