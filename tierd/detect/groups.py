"""Values by their keys, their sums, and the keys that hold a part of all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import accumulate
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> defaultdict[K, list[V]]:
    """The values of each key, in their order; none for another key.

    >>> found = grouped([("a", 1), ("b", 2), ("a", 3)])
    >>> found["a"], found["c"]
    ([1, 3], [])
    """
    found: defaultdict[K, list[V]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found


def totals(pairs: Iterable[tuple[K, float]]) -> defaultdict[K, float]:
    """The sum of the values of each key; 0 for another key.

    >>> found = totals([("a", 1.0), ("b", 2.0), ("a", 3.0)])
    >>> found["a"], found["c"]
    (4.0, 0.0)
    """
    found: defaultdict[K, float] = defaultdict(float)
    for key, value in pairs:
        found[key] += value
    return found


def covering(pairs: Iterable[tuple[K, float]], share: float) -> list[K]:
    """The first keys, until their values together are this share of all.

    >>> covering([("a", 6.0), ("b", 3.0), ("c", 1.0)], 0.9), covering([], 0.5)
    (['a', 'b'], [])
    """
    every = list(pairs)
    before = [*accumulate((value for _, value in every), initial=0.0)]
    return [key for (key, _), so_far in zip(every, before[:-1], strict=True) if so_far < share * before[-1]]
