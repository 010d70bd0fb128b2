"""Bounds of histograms, and counts as buckets take them.

The kernel prints a table up to the last bucket that is not empty, and each count by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate

INFINITY = float("inf")


def doubling(first: int, last: int, unit: float = 1.0) -> tuple[float, ...]:
    """Bounds of a table of powers of two, from the first to the last.

    >>> doubling(1, 8), doubling(1, 4, 1e-3)
    ((1.0, 2.0, 4.0, 8.0), (0.001, 0.002, 0.004))
    """
    powers = range(first.bit_length() - 1, last.bit_length())
    return tuple([round((1 << power) * unit, 12) for power in powers])


def counting(last: int) -> tuple[float, ...]:
    """Bounds of a table of single values, from 1 to the last."""
    return tuple(map(float, range(1, last + 1)))


SINGLE = counting(30)
"""Bounds of a table of single values. The kernel's next bucket, 31, is its last: it counts all that is larger too."""


@lru_cache(maxsize=4096)
def continued(usual: tuple[float, ...], bounds: tuple[float, ...]) -> tuple[float, ...]:
    """These bounds, and the usual ones above them."""
    last = bounds[-1] if bounds else 0.0
    return (*bounds, *[upper for upper in usual if upper > last])


def cumulative(bounds: Sequence[float], counts: Iterable[int]) -> tuple[int, ...]:
    """Counts as a bucket template takes them. Where there are fewer than bounds, the rest are empty.

    >>> cumulative((1, 2), (5, 7)), cumulative((1, INFINITY), (5, 7)), cumulative((1, 2, 4), (5, 7))
    ((5, 12, 12), (5, 12), (5, 12, 12, 12))
    """
    counted = tuple(accumulate(counts))
    lines = len(bounds) + (not bounds or bounds[-1] != INFINITY)
    return counted + (counted[-1] if counted else 0,) * (lines - len(counted))
