r"""Space on a target, from its five one-number files: ``kbytestotal``, ``kbytesfree``, ``kbytesavail``, ``filestotal``,
``filesfree``. The kilobytes are KiB.

>>> integer(b"1996344\n"), integer(b"1996344"), integer(b"-1\n"), integer(b"")
(1996344, None, -1, None)
>>> parse(kbytestotal=b"1000\n", kbytesfree=b"900\n", kbytesavail=b"850\n", filesfree=b"7\n")
Df(size_bytes=1024000, free_bytes=921600, avail_bytes=870400, files=None, files_free=7)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_INTEGER = re.compile(rb"\s*+(-?+\d{1,20}+)[ \t]*+\n\s*+")
_KIB = 1024

FILES = ("kbytestotal", "kbytesfree", "kbytesavail", "filestotal", "filesfree")
"""The files to read, named like the parameters of ``parse``."""


@dataclass(frozen=True, slots=True)
class Df:
    """Space and inodes of a target, as ``df`` shows them; None if a file was absent or did not hold a number."""

    size_bytes: int | None
    free_bytes: int | None
    avail_bytes: int | None
    """Bytes that can still be written: free bytes minus the reserve."""
    files: int | None
    files_free: int | None


def integer(data: bytes) -> int | None:
    """Parse a one-number file; None if it has no number or if the newline is missing (truncated)."""
    match = _INTEGER.fullmatch(data)
    return None if match is None else int(match[1])


def parse(
    kbytestotal: bytes | None = None,
    kbytesfree: bytes | None = None,
    kbytesavail: bytes | None = None,
    filestotal: bytes | None = None,
    filesfree: bytes | None = None,
) -> Df:
    """Parse the contents of the five files; pass None for an absent file."""
    return Df(_bytes(kbytestotal), _bytes(kbytesfree), _bytes(kbytesavail), _count(filestotal), _count(filesfree))


def _count(data: bytes | None) -> int | None:
    return None if data is None else integer(data)


def _bytes(data: bytes | None) -> int | None:
    kilobytes = _count(data)
    return None if kilobytes is None else kilobytes * _KIB
