"""Values by their keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
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
