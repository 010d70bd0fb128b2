"""Read a parameter file to its end; one that has gone away is absent, not an error.

Parameter files are generated while they are read. One ``read`` may hand out a single record (one job of ``job_stats``),
so a short answer is not the end: only an empty one is. Files are always opened read-only, because any write to a
statistics file clears it, and closed at once, because an open one would keep Lustre's modules from being unloaded.

>>> read_whole("/nowhere/at/all") is None
True
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

CHUNK_BYTES = 1 << 16
"""Asked for at a time: more than most files hold, and small enough to stay off ``mmap``."""

LINE_BYTES = 256
"""More than any parameter of one number holds."""

ABSENT = frozenset({errno.ENOENT, errno.ENODEV, errno.ENOTDIR, errno.ENXIO, errno.ESTALE})
"""What the kernel says of a parameter that is not there, or whose device was just taken away."""


MOST_BYTES = 256 << 20
"""A hundred thousand jobs take less. A text that is longer has no end: the kernel tells it in a circle."""


def read_whole(path: str | os.PathLike[str]) -> bytes | None:
    """The whole file, or None when it is absent. Any other OSError is raised: EFBIG where it has no end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.read(descriptor, CHUNK_BYTES)
            if not data or not (more := os.read(descriptor, CHUNK_BYTES)):
                return data
            return _rest(descriptor, [data, more], path)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in ABSENT:
            return None
        raise


def read_through(path: str | os.PathLike[str], take: Callable[[bytes], None]) -> bool:
    """Hand over the file in pieces, in memory that is used again and again; False when it is absent, or went away.

    New memory costs more than reading into it: 22 MB of jobs at once take three times as long as in pieces.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = 0
            while piece := os.read(descriptor, CHUNK_BYTES):
                size = _ends(size + len(piece), path)
                take(piece)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in ABSENT:
            return False
        raise
    return True


def read_line(path: str | os.PathLike[str]) -> bytes | None:
    """The same of a file that holds one line: the kernel hands it out at once, and need not be asked for more."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.read(descriptor, LINE_BYTES)
            return data if data[-1:] == b"\n" and len(data) < LINE_BYTES else _rest(descriptor, [data], path)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in ABSENT:
            return None
        raise


def _rest(descriptor: int, chunks: list[bytes], path: str | os.PathLike[str]) -> bytes:
    size = 0
    while more := os.read(descriptor, CHUNK_BYTES):
        size = _ends(size + len(more), path)
        chunks.append(more)
    return b"".join(chunks)


def _ends(size: int, path: str | os.PathLike[str]) -> int:
    if size > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it does not end within {MOST_BYTES >> 20} MiB", path)
    return size
