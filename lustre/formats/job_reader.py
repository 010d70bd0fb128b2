r"""``job_stats`` blocks of the usual form, read quickly: one pass for the lines above the operations, one for these.

>>> head = (b"- job_id:          cp.0\n  snapshot_time:   9.5 secs.nsecs\n  start_time:      5.25 secs.nsecs\n"
...         b"  elapsed_time:    4.25 secs.nsecs\n")
>>> row = b"  %-16s { samples: %11d, unit: usecs, min: %8d, max: %8d, sum: %16d, sumsq: %18d }\n"
>>> usual(head + row % (b"getattr:", 7, 1, 9, 21, 99) + row % (b"punch:", 0, 0, 0, 0, 0))
Usual(job_id=b'cp.0', start_time=b'5.25', of_bytes=(), names=(b'getattr',), samples=(b'7',), sums=(b'21',))
>>> usual(head + b"  getattr:  { samples: 7, unit:  reqs }\n") is None
True
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lustre.formats.job_stats import unquoted

_TIME = rb"(?:[ \t]*+:)?[ \t]++"
_NUMBER = rb" *+-?+\d{1,20}+"
_LIMITS = rb"min:" + _NUMBER + rb", max:" + _NUMBER
_ZERO = (
    rb"(?: ++\w++: *+\{ samples: *+0, unit: *+(?:usecs|bytes), min: *+0, max: *+0, sum: *+0, sumsq: *+0"
    rb"(?:, hist: \{ *+\})? \}\n)*"
)
_BYTES = (
    rb" ++(read|write)_bytes: *+\{ samples: *+[1-9]\d{0,19}+, unit: bytes, " + _LIMITS + rb", sum: *+(\d{1,20}+),"
    rb" sumsq:" + _NUMBER + rb"(?:, hist: \{([^}\n]*+)\})? \}\n"
)  # fmt: skip
_FRONT = re.compile(
    rb"- job_id: {10}([^\n]*+)\n *+snapshot_time" + _TIME + rb"[0-9.]{1,40}+[^\n]*+\n"
    rb" *+start_time" + _TIME + rb"([0-9.]{1,40}+)[^\n]*+\n *+elapsed_time" + _TIME + rb"[^\n]*+\n"
    + _ZERO + rb"(?:" + _BYTES + _ZERO + rb")?(?:" + _BYTES + _ZERO + rb")?"
)  # fmt: skip
_OPERATION = re.compile(
    rb" ++(\w++): *+\{ samples: *+([1-9]\d{0,19}+), unit: usecs, " + _LIMITS + rb", sum: *+(\d{1,20}+), sumsq:"
    + _NUMBER + rb" \}\n" + _ZERO
)  # fmt: skip


class Usual(NamedTuple):
    """A job whose block holds its id, its times, and counters of bytes and of time, as most do since 2.15.

    Counters at zero are left out.
    """

    job_id: bytes
    start_time: bytes
    of_bytes: tuple[tuple[bytes, bytes, bytes], ...]
    """``read`` or ``write``, the sum, and what stands between the braces of ``hist``, unread (see ``buckets``)."""
    names: tuple[bytes, ...]
    samples: tuple[bytes, ...]
    """Digits, as printed."""
    sums: tuple[bytes, ...]
    """Microseconds."""


def usual(block: bytes) -> Usual | None:
    """What ``job_stats.parse_block`` says of a block of the usual form; None when it has another."""
    front = _FRONT.match(block)
    if front is None:
        return None
    parts = _OPERATION.split(block[front.end() :])
    if any(parts[::4]):  # something between two operations
        return None
    job_id, start_time, kind, total, hist, second, second_total, second_hist = front.groups(b"")
    of_bytes: tuple[tuple[bytes, bytes, bytes], ...] = ()
    if second:
        of_bytes = (kind, total, hist), (second, second_total, second_hist)
    elif kind:
        of_bytes = ((kind, total, hist),)
    return Usual(unquoted(job_id), start_time, of_bytes, tuple(parts[1::4]), tuple(parts[2::4]), tuple(parts[3::4]))
