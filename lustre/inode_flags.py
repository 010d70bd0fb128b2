"""Inode flags and project ids, by the ioctls every Linux file system shares; Lustre answers them too."""

from __future__ import annotations

import fcntl
import struct

from lustre.calls import FileFlags

_GET_FLAGS = 0x80086601
_GET_ATTRIBUTES = 0x801C581F
_SET_ATTRIBUTES = 0x401C5820
_INHERIT = 0x200
_ATTRIBUTES = struct.Struct("=IIIII8x")
"""struct fsxattr: flags, extent size, extents, project id, copy-on-write extent size."""


def flags(descriptor: int) -> FileFlags:
    """Those flags that keep a mover away."""
    answer = fcntl.ioctl(descriptor, _GET_FLAGS, bytes(8))
    bits = int.from_bytes(answer[:4], "little")
    return FileFlags(bits & sum(flag.value for flag in FileFlags))


def project(descriptor: int) -> int:
    """Project id."""
    return int(_ATTRIBUTES.unpack(fcntl.ioctl(descriptor, _GET_ATTRIBUTES, bytes(_ATTRIBUTES.size)))[3])


def inherited_project(directory: int) -> int:
    """Project id of new files in a directory: its own where it hands it down, else none (0)."""
    found = _ATTRIBUTES.unpack(fcntl.ioctl(directory, _GET_ATTRIBUTES, bytes(_ATTRIBUTES.size)))
    return int(found[3]) if found[0] & _INHERIT else 0


def set_project(descriptor: int, number: int) -> None:
    """Change the project id and nothing else."""
    answer = fcntl.ioctl(descriptor, _GET_ATTRIBUTES, bytes(_ATTRIBUTES.size))
    bits, extent_size, extents, _, copy_size = _ATTRIBUTES.unpack(answer)
    fcntl.ioctl(descriptor, _SET_ATTRIBUTES, _ATTRIBUTES.pack(bits, extent_size, extents, number, copy_size))
