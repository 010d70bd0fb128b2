"""Reads and sets the striping of directories over MDTs, with the requests that ``lfs setdirstripe -D`` makes.

A client returns ``trusted.dmv`` as the MDT stores it: only a directory with a default of its own has it. The ioctl of
``lfs getdirstripe -D`` would return the default of the root for all others (``ll_dir_get_default_lmv`` in
lustre/llite/dir.c). A default with no stripes and no MDT deletes the present one (``LMVEA_DELETE_VALUES`` in
lustre/lod/lod_object.c).
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lustre.errors import Stale, typed
from lustre.layout.directory import DefaultStriping, to_xattr

STRIPES, DEFAULT = "trusted.lmv", "trusted.dmv"
SET_DEFAULT_STRIPE = 0xC03066F6
"""``LL_IOC_LMV_SET_DEFAULT_STRIPE``: _IOWR('f', 246, struct lmv_user_md of 48 bytes)."""
NO_DEFAULT = DefaultStriping(0, -1)
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
Ioctl = Callable[[int, int, bytes], object]


def set_default(directory: int, striping: DefaultStriping | None, ioctl: Ioctl = fcntl.ioctl) -> None:
    """Set the default striping of new subdirectories, or (None) delete it. Raises OSError, and ValueError."""
    value = to_xattr(NO_DEFAULT if striping is None else striping)
    with typed("set default directory striping"):
        ioctl(directory, SET_DEFAULT_STRIPE, value)


def is_directory(place: str) -> bool:
    """Whether a path is a directory. Unlike a stat of a file, this asks no OST. A symbolic link is not followed."""
    try:
        os.close(os.open(place, os.O_PATH | DIRECTORY))
    except NotADirectoryError:
        return False
    return True


@contextmanager
def opened(place: str, below: str = "", flags: int = 0) -> Iterator[int]:
    """A descriptor of a directory, until the end. Raises Stale if a symbolic link leads out of ``below``, or any."""
    with typed("open", place):
        descriptor = os.open(place, DIRECTORY | flags)
    try:
        # O_NOFOLLOW is about the last name only; this is the path that the kernel went
        if not f"{os.readlink(f'/proc/self/fd/{descriptor}')}/".startswith(f"{(below or place).rstrip('/')}/"):
            raise Stale(errno.ESTALE, "a symbolic link on the path leads elsewhere", place)
        yield descriptor
    finally:
        os.close(descriptor)
