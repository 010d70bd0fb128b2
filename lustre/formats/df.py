r"""Space on a target, from its five one-number files: ``kbytestotal``, ``kbytesfree``, ``kbytesavail``, ``filestotal``,
``filesfree``. The kilobytes are KiB.

>>> integer(b"1996344\n"), integer(b"1996344"), integer(b"-1\n"), integer(b"")
(1996344, None, -1, None)
>>> parse(b"1000\n", b"900\n", b"850\n", None, b"7\n")
Df(size_bytes=1024000, free_bytes=921600, avail_bytes=870400, files=None, files_free=7)
"""

from __future__ import annotations

import re
from typing import NamedTuple

_INTEGER = re.compile(rb"\s*+(-?+\d{1,20}+)[ \t]*+\n\s*+")
_KIB = 1024

FILES = ("kbytestotal", "kbytesfree", "kbytesavail", "filestotal", "filesfree")
"""The files to read, in this order."""


class Df(NamedTuple):
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


def parse(*texts: bytes | None) -> Df:
    """Parse the contents of the five ``FILES``; None for an absent file."""
    return of_numbers(*[None if data is None else integer(data) for data in texts])


def of_numbers(*numbers: int | None) -> Df:
    """Make the result from the numbers in the five ``FILES``; None for an unknown number."""
    size, free, avail, files, files_free = numbers
    size, free, avail = [None if number is None else number * _KIB for number in (size, free, avail)]
    return Df(size, free, avail, files, files_free)
