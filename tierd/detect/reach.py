"""How much a neighbour can take from a stream at the most: what it asks for costs the disks only so much time.

A few files a second that come in the minute in which a disk begins to fail stand beside a stream that has lost half.
Three operations a second cannot have done that, whatever the windows look like.

In recordings of a real file system (``tests/tapes``) an operation cost its neighbour 8 to 11 ms; in simulated ones up
to 74 ms, as all stripes of a stream may wait for the slowest (``docs/evaluation.md``).
"""

from __future__ import annotations

BYTE_COST = 4.0
"""A byte of a small file costs no more than so many of a stream: stripes of a RAID are read and written for a part."""


def most_taken(operations_per_second: float, bytes_per_second: float, usual: float, operation_seconds: float) -> float:
    """Fraction of a stream's usual throughput, in bytes per second, that a neighbour with so much work can take.

    >>> round(most_taken(1.6, 50e3, 26e6, 0.1), 3), most_taken(40.0, 5e6, 50e6, 0.1)
    (0.168, 1.0)
    """
    return min(1.0, operations_per_second * operation_seconds + BYTE_COST * bytes_per_second / usual) if usual else 0.0
