"""What the label of a bucket means in ``rpc_stats`` and ``brw_stats``: bounds of the values it counts.

It differs from table to table. Found in Lustre's source (``osc/osc_request.c``, ``osc/lproc_osc.c``,
``obdclass/genops.c``, ``obdclass/lprocfs_status.c``, ``osd-ldiskfs/osd_io.c``), alike from 2.10 to 2.17:

* *inclusive upper bound*, powers of two (``lprocfs_oh_tally_log2`` puts a value into bucket ``fls(value - 1)``, and the
  label is 1 << bucket): pages per rpc, pages per bulk r/w, disk I/O size, I/O time, block maps. Label 4 is 3 and 4;
  label 1 is 0 and 1.
* *the value itself* (``lprocfs_oh_tally``): rpcs in flight, modify RPCs in flight, discontiguous pages and blocks, disk
  fragmented I/Os, disk I/Os in flight (after 2.17.0 it can be told to use powers of two there, which are upper bounds).
* *inclusive lower bound*: offset. The kernel tallies offset + 1 and labels bucket n with 1 << (n - 1), so label 4 is
  the pages 4 to 7, and label 0 is page 0.
* *exclusive lower bound*: RPC latency. The kernel tallies the time itself, but labels bucket n with 1 << (n - 1) as
  well, so label 4 is 5 to 8, and label 0 is 0 and 1.

There are 32 buckets, and the last counts everything larger too: 31 *or more* in flight.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_LABEL = re.compile(rb"(\d{1,20}+)([KMG]?+):")
_SCALE = {b"": 1, b"K": 1 << 10, b"M": 1 << 20, b"G": 1 << 30}


def _label_is_the_upper_bound(label: int) -> int:
    return label


def _label_is_the_lower_bound(label: int) -> int:
    return 2 * label - 1 if label else 0


def _label_is_below_the_bucket(label: int) -> int:
    return 2 * label if label else 1


LABELS: dict[bytes, Callable[[int], int]] = {
    b"offset": _label_is_the_lower_bound,
    b"RPC latency (us)": _label_is_below_the_bucket,
}
"""Tables whose labels are not the inclusive upper bound; all others' are."""

LINEAR = frozenset({
    b"rpcs in flight",
    b"discontiguous pages",
    b"discontiguous blocks",
    b"disk fragmented I/Os",
    b"disk I/Os in flight",
})  # fmt: skip
"""Tables that count single values, and therefore overflow at 31."""


@lru_cache(maxsize=1024)
def uppers_of(name: bytes, labels: tuple[bytes, ...]) -> tuple[tuple[int, ...], bool]:
    """Inclusive upper bounds, and whether the last is the kernel's last bucket. ValueError for what is no label."""
    values = [_value(label) for label in labels]
    upper = LABELS.get(name, _label_is_the_upper_bound)
    last = values[-1] if values else 0
    kernels_last = 31 if name in LINEAR else 1 << (30 if name in LABELS else 31)
    return tuple(map(upper, values)), last == kernels_last


def _value(label: bytes) -> int:
    match = _LABEL.fullmatch(label)
    if match is None:
        raise ValueError(f"no bucket label: {label!r}")
    return int(match[1]) * _SCALE[match[2]]
