r"""Where Lustre is mounted, from ``/proc/mounts``.

A server's targets also have the type ``lustre``. The device of a client mount has ``:/`` before the name of the file
system. This module does not use liblustreapi's enumeration of mounts, because it does not end.

>>> parse(b"10.0.2.15@tcp:/lustre/home /mnt/a\\040b lustre rw,flock 0 0\n/dev/vdb /mnt/ost lustre ro 0 0\n")
(Mount(fsname='lustre', path='/mnt/a b', subdirectory='/home', read_only=False),)
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass

from lustre.errors import NotLustre

_LINE = re.compile(rb"^\S*:/([^/\s]+)(\S*) (\S+) lustre (\S+) ", re.MULTILINE)
_OCTAL = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One client mount."""

    fsname: str
    path: str
    subdirectory: str = ""
    """Mounted subdirectory of the file system; empty for the whole file system."""
    read_only: bool = False


def parse(text: bytes) -> tuple[Mount, ...]:
    return tuple(
        Mount(os.fsdecode(fsname), _path(path), _path(rest).rstrip("/"), b"ro" in options.split(b","))
        for fsname, rest, path, options in _LINE.findall(text)
    )


def find(path: str, text: bytes) -> Mount:
    """Find the mount of a path. Raises NotLustre, which names the existing mounts."""
    mounts = parse(text)
    real = os.path.realpath(path)
    holding = [mount for mount in mounts if real == mount.path or real.startswith(mount.path.rstrip("/") + "/")]
    if not holding:
        known = ", ".join(mount.path for mount in mounts) or "none"
        raise NotLustre(errno.ENOTTY, f"not on a mounted Lustre file system (mounted: {known})", path)
    return max(holding, key=lambda mount: len(mount.path))


def _path(field: bytes) -> str:
    return os.fsdecode(_OCTAL.sub(lambda octal: bytes((int(octal[1], 8) & 0xFF,)), field))
