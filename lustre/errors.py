# ruff: noqa: N818 -- these are conditions of a file system, and named as such
"""What Lustre refuses, by kind: every error of a file system call is an OSError that says which kind it is.

>>> error = of_errno(28, "swap layouts", "/mnt/lustre/a")
>>> type(error).__name__, error.errno, str(error)
('NoSpace', 28, "[Errno 28] swap layouts: No space left on device: '/mnt/lustre/a'")
>>> type(of_errno(-5, "read")).__name__
'LustreError'
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager


class LustreError(OSError):
    """A call that failed; subclasses say how. ``errno`` is what Lustre gave."""


class Busy(LustreError):
    """Somebody uses the file in a way that excludes us: open for writing, another lease, running as a program."""


class Stale(LustreError):
    """What was agreed no longer holds: the lease is broken, the file handle outdated."""


class NoSpace(LustreError):
    """A target, or every target of a pool, is full."""


class QuotaExceeded(LustreError):
    """The owner's quota is used up."""


class NotPermitted(LustreError, PermissionError):
    """Not allowed: ownership, an immutable file, root squash, a nodemap."""


class ReadOnly(LustreError):
    """Mounted or exported read-only."""


class NotLustre(LustreError):
    """The file is not on Lustre, or this Lustre does not know the request."""


class Unsupported(LustreError):
    """Lustre knows the request but not for this file: a released file, a component on the MDT."""


class NoLayout(LustreError):
    """The file has no layout, or the directory no default of its own."""


class NoKey(LustreError):
    """Encrypted, and the key is not here."""


class Gone(LustreError, FileNotFoundError):
    """No such file, or no longer."""


class Refused(LustreError):
    """A mover will not touch the file, for a reason it names. Nothing was tried."""


class UnknownLayout(LustreError, ValueError):
    """The file has a layout of a form that is not known here: a later release made it, or it is damaged."""


class NoPath(LustreError, ValueError):
    """Not a path below the root of the file system."""


class LibraryMissing(LustreError):
    """liblustreapi, or a function this Lustre release does not have yet, is not on this machine."""


_KINDS: dict[int, type[LustreError]] = {
    errno.EBUSY: Busy, errno.ETXTBSY: Busy, errno.EAGAIN: Busy,
    errno.ESTALE: Stale, errno.ENOLCK: Stale,
    errno.ENOSPC: NoSpace, errno.EDQUOT: QuotaExceeded,
    errno.EPERM: NotPermitted, errno.EACCES: NotPermitted, errno.EROFS: ReadOnly,
    errno.ENOTTY: NotLustre, errno.EOPNOTSUPP: Unsupported,
    errno.ENODATA: NoLayout, errno.ENOKEY: NoKey, errno.ENOENT: Gone,
}  # fmt: skip


def kind_of(number: int) -> type[LustreError]:
    """The kind of error an errno means here."""
    return _KINDS.get(number, LustreError)


def of_errno(number: int, what: str, path: str | None = None) -> LustreError:
    """The error of a call, from its errno, negative or not, and words for what was tried."""
    number = abs(number)
    kind = kind_of(number)
    message = f"{what}: {os.strerror(number)}"
    return kind(number, message) if path is None else kind(number, message, path)


@contextmanager
def typed(what: str, path: str | None = None) -> Iterator[None]:
    """Give the errors of plain system calls their kind."""
    try:
        yield
    except LustreError:
        raise
    except OSError as error:
        raise of_errno(error.errno or errno.EIO, what, path or _name(error)) from error


def _name(error: OSError) -> str | None:
    return None if error.filename is None else os.fsdecode(error.filename)
