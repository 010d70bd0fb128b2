r"""The header of a statistics file: time of the snapshot, start of counting and elapsed time.

Lustre up to 2.14 prints only the first line. Later releases do so if ``enable_stats_header`` is off. 2.15 prints the
colons after the padding::

    snapshot_time                       1795218508.752159935 secs.nsecs
    start_time                          1795217463.183879238 secs.nsecs
    elapsed_time                        1045.568280697 secs.nsecs
    req_waittime                        3894 samples [usecs] 139 511438 35473947 2215597260185

>>> split(b"snapshot_time:   9.5 secs.nsecs\nstart_time:   2.000000001 secs.nsecs\nread RPCs in flight:  0\n")
Header(start_time=b'2.000000001', snapshot_time=b'9.5', lines=2, end=69)
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TIME = rb"(?:[ \t]*+:)?[ \t]++"
_HEADER = re.compile(
    rb"(?:[ \t]*+(?:start_time" + _TIME + rb"([0-9.]{1,40}+)[^\n]*+\n"
    rb"|snapshot_time" + _TIME + rb"([0-9.]{1,40}+)[^\n]*+\n"
    rb"|elapsed_time" + _TIME + rb"[^\n]*+\n))*"
)
TIME_OF_LINE = re.compile(
    rb"^[ \t]*+(start_time|snapshot_time|elapsed_time)" + _TIME + rb"([0-9.]{1,40}+)", re.MULTILINE
)
"""The name and the time of each line."""
_BLANK = re.compile(rb"^[ \t]*+\n", re.MULTILINE)


class Header(NamedTuple):
    """The times in a header, and where the header ends."""

    start_time: bytes
    """Start of counting, as printed; empty if the release does not print it."""
    snapshot_time: bytes
    lines: int
    end: int


def split(data: bytes) -> Header:
    match = _HEADER.match(data)
    assert match is not None, "the pattern matches the empty text"
    return Header(match[1] or b"", match[2] or b"", data.count(b"\n", 0, match.end()), match.end())


def after(data: bytes) -> bytes:
    """Return the text after the header. Two readings have the same text if nothing was counted between them."""
    return data[split(data).end :]


WRAPPED = 1 << 63
"""Lower bound of numbers that no counter reaches: the kernel counts in 64 bits with a sign, so these have wrapped."""


def is_beyond(digits: bytes) -> bool:
    """Whether digits without a sign are a number that no counter reaches.

    >>> is_beyond(b"9223372036854775807"), is_beyond(b"9223372036854775808"), is_beyond(b"18446744073709551615")
    (False, True, True)
    """
    return len(digits) > 18 and int(digits) >= WRAPPED


def skipped_lines(data: bytes, understood: int) -> int:
    """Count the lines of ``data`` that are neither blank nor understood, including a truncated last line."""
    lines = data.count(b"\n") + (data[-1:] not in {b"", b"\n"})
    if lines - understood in (0, data.count(b"\n\n")):
        return 0
    return max(0, lines - understood - len(_BLANK.findall(data)))
