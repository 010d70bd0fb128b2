# ruff: noqa: N818 -- these are conditions of a file system, and named as such
"""Errors of Lustre calls: each is an OSError whose class names the kind of error.

>>> error = of_errno(28, "swap layouts", "/mnt/lustre/a")
>>> type(error).__name__, error.errno, str(error)
('NoSpace', 28, "[Errno 28] swap layouts: No space left on device: '/mnt/lustre/a'")
>>> type(of_errno(-5, "read")).__name__
'LustreError'
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class LustreError(OSError):
    """A call that failed. The subclass names the kind; ``errno`` is the number that Lustre returned."""


def copied_before(error: OSError) -> int | None:
    """Bytes that a migration copied before this error ended it; None if it is unknown."""
    copied_bytes = getattr(error, "copied_bytes", None)
    return copied_bytes if isinstance(copied_bytes, int) else None


class Busy(LustreError):
    """The file is in use: open for writing, under another lease, or running as a program."""


class Stale(LustreError):
    """The lease is broken, or the file handle is out of date."""


class NoSpace(LustreError):
    """A target, or every target of a pool, is full."""


class QuotaExceeded(LustreError):
    """The owner's quota is used up."""


class NotPermitted(LustreError, PermissionError):
    """The operation is not permitted: ownership, an immutable file, root squash, or a nodemap."""


class ReadOnly(LustreError):
    """The file system is mounted or exported read-only."""


class NotLustre(LustreError):
    """The file is not on Lustre, or this release does not support the request."""


class Unsupported(LustreError):
    """Lustre does not support the request for this file, such as a released file or a component on the MDT."""


class NoLayout(LustreError):
    """The file has no layout, or the directory no default of its own."""


class NoKey(LustreError):
    """The file is encrypted and this client does not have the key."""


class Gone(LustreError, FileNotFoundError):
    """The file does not exist, or no longer exists."""


class UnknownLayout(LustreError, ValueError):
    """The layout has an unknown form: a later release wrote it, or it is damaged."""


class NoPath(LustreError, ValueError):
    """The path is not below the root of the file system."""


class LibraryMissing(LustreError):
    """The machine has no liblustreapi, or a release without the function."""


_KINDS: dict[int, type[LustreError]] = {
    errno.EBUSY: Busy, errno.ETXTBSY: Busy, errno.EAGAIN: Busy,
    errno.ESTALE: Stale, errno.ENOLCK: Stale,
    errno.ENOSPC: NoSpace, errno.EDQUOT: QuotaExceeded,
    errno.EPERM: NotPermitted, errno.EACCES: NotPermitted, errno.EROFS: ReadOnly,
    errno.ENOTTY: NotLustre, errno.EOPNOTSUPP: Unsupported,
    errno.ENODATA: NoLayout, errno.ENOKEY: NoKey, errno.ENOENT: Gone,
}  # fmt: skip


def kind_of(number: int) -> type[LustreError]:
    return _KINDS.get(number, LustreError)


def of_errno(number: int, what: str, path: str | None = None) -> LustreError:
    """Make the error of a call from its errno, negative or positive, and a description of the call."""
    number = abs(number)
    kind = kind_of(number)
    message = f"{what}: {os.strerror(number)}"
    return kind(number, message) if path is None else kind(number, message, path)


@contextmanager
def typed(what: str, path: str | None = None) -> Iterator[None]:
    """Context manager that converts an OSError of a plain system call to its subclass of LustreError."""
    try:
        yield
    except LustreError:
        raise
    except OSError as error:
        raise of_errno(error.errno or errno.EIO, what, path or _name(error)) from error


def understood(decode: Callable[[bytes], T], data: bytes) -> T:
    """Decode what a file system returned. Raises UnknownLayout, which is an OSError like other file errors."""
    try:
        return decode(data)
    except ValueError as error:
        raise UnknownLayout(errno.EBADMSG, str(error)) from error


def _name(error: OSError) -> str | None:
    return None if error.filename is None else os.fsdecode(error.filename)
