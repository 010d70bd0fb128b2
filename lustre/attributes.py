"""Attributes of files: extended attributes (including the layout), inode flags and project ids.

Extended attributes are read from an open file or from a path. A symbolic link is never followed. Inode flags and
project ids are read with the generic ioctls of Linux file systems, which Lustre implements.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct

from lustre.errors import typed
from lustre.filesystem import FileFlags
from lustre.layout.model import Layout
from lustre.layout.xattr import understood

LAYOUT = "lustre.lov"


def layout_at(place: int | str) -> Layout | None:
    """Read the layout of an open file or of a path, without following a symbolic link; None if there is no layout."""
    value = attribute(place, LAYOUT)
    return None if value is None else understood(value)


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


_GET_FLAGS = 0x80086601
_GET_ATTRIBUTES = 0x801C581F
_SET_ATTRIBUTES = 0x401C5820
_GET_POLICY = 0xC0096616
"""FS_IOC_GET_ENCRYPTION_POLICY_EX; ENODATA for a file that is not encrypted."""
_POLICY_BYTES = 24
_INHERIT, _IMMUTABLE, _APPEND_ONLY = 0x200, 0x8, 0x10
_ATTRIBUTES = struct.Struct("=IIIII8x")
"""struct fsxattr: flags, extent size, extents, project id, copy-on-write extent size."""


def inode_flags(descriptor: int) -> FileFlags:
    """Read the inode flags that forbid a move.

    Lustre answers ``FS_IOC_FSGETXATTR`` and the encryption policy ioctl from attributes that the client cached at the
    last stat. ``FS_IOC_GETFLAGS`` sends a request to the MDT each time (``fileattr_get`` in lustre/llite/llite_lib.c).
    This function therefore uses it only if the client was built or mounted without encryption, because such a client
    does not support the encryption policy ioctl.
    """
    encrypted = _has_policy(descriptor)
    if encrypted is None:
        answer = fcntl.ioctl(descriptor, _GET_FLAGS, bytes(8))
        bits = int.from_bytes(answer[:4], "little")
        return FileFlags(bits & sum(flag.value for flag in FileFlags))
    bits = _ATTRIBUTES.unpack(fcntl.ioctl(descriptor, _GET_ATTRIBUTES, bytes(_ATTRIBUTES.size)))[0]
    found = FileFlags.ENCRYPTED if encrypted else FileFlags.NONE
    found |= FileFlags.IMMUTABLE if bits & _IMMUTABLE else FileFlags.NONE
    return found | (FileFlags.APPEND_ONLY if bits & _APPEND_ONLY else FileFlags.NONE)


def _has_policy(descriptor: int) -> bool | None:
    """Whether the file has an encryption policy; None if the ioctl is not supported."""
    room = bytearray(_POLICY_BYTES.to_bytes(8, "little") + bytes(_POLICY_BYTES))
    try:
        fcntl.ioctl(descriptor, _GET_POLICY, room, True)
    except OSError as error:
        return False if error.errno == errno.ENODATA else None
    return True


def project(descriptor: int) -> int:
    """Read the project id of an open file."""
    return int(_ATTRIBUTES.unpack(fcntl.ioctl(descriptor, _GET_ATTRIBUTES, bytes(_ATTRIBUTES.size)))[3])


def inherited_project(directory: int) -> int:
    """Project id of new files in a directory: the directory's if its inherit flag is set, else 0."""
    found = _ATTRIBUTES.unpack(fcntl.ioctl(directory, _GET_ATTRIBUTES, bytes(_ATTRIBUTES.size)))
    return int(found[3]) if found[0] & _INHERIT else 0


def set_project(descriptor: int, number: int) -> None:
    """Set the project id of an open file and leave its other attributes as they are."""
    answer = fcntl.ioctl(descriptor, _GET_ATTRIBUTES, bytes(_ATTRIBUTES.size))
    bits, extent_size, extents, _, copy_size = _ATTRIBUTES.unpack(answer)
    fcntl.ioctl(descriptor, _SET_ATTRIBUTES, _ATTRIBUTES.pack(bits, extent_size, extents, number, copy_size))
