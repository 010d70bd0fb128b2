"""Loads of one job on one target in several windows, added up.

>>> first, second = JobLoad("l-OST0001", "j.1", writes=2.0, sizes={4096: 2.0}), JobLoad("l-OST0001", "j.1", reads=1.0)
>>> total([first, second]) == JobLoad("l-OST0001", "j.1", reads=1.0, writes=2.0, sizes={4096: 2.0})
True
>>> total([first]) is first
True
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tierd.model import JobLoad, Window

ByKey = defaultdict[tuple[str, str], list[JobLoad]]


def by_key(windows: Iterable[Window]) -> ByKey:
    """What each job did on each target, window by window."""
    found: ByKey = defaultdict(list)
    for window in windows:
        for key, load in window.loads.items():
            found[key].append(load)
    return found


def total(loads: Sequence[JobLoad]) -> JobLoad:
    """All of them together, of which there must be one; many have no more, and that is the sum."""
    if len(loads) == 1:
        return loads[0]
    read_bytes = write_bytes = reads = writes = others = busy_usec = 0.0
    sizes: dict[int, float] = {}
    target, job = loads[0][:2]
    for _, _, bytes_in, bytes_out, in_, out, other, busy, by_size in loads:  # of ten thousands: not by name
        read_bytes += bytes_in
        write_bytes += bytes_out
        reads += in_
        writes += out
        others += other
        busy_usec += busy
        for upper, count in by_size.items():
            sizes[upper] = sizes.get(upper, 0.0) + count
    return JobLoad(target, job, read_bytes, write_bytes, reads, writes, others, busy_usec, sizes)
