"""Chooses the busiest items by recent activity: every pass halves the weight of earlier passes.

Instead of halving all scores, each pass doubles the weight of new activity, so that only active items cost time.

>>> first, second = Scored("first"), Scored("second")
>>> busiest: Busiest[Scored] = Busiest(1)
>>> for one in busiest.choose([first, second], [first, second]): print(one.name)
second
>>> busiest.credit(first, 5)
>>> for one in busiest.choose([first], [first, second]): print(one.name)
first
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import nlargest
from typing import Generic, TypeVar

MAX_WEIGHT = 2.0**512
"""Exponent above which scores are rescaled to a weight of 1. A float holds about twice this exponent."""


class Scored:
    """An item with its score."""

    __slots__ = ("name", "score")

    def __init__(self, name: str) -> None:
        self.name = name
        self.score = 0.0


S = TypeVar("S", bound=Scored)


class Busiest(Generic[S]):
    """Chooses the items with the highest scores in each pass."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 1.0
        self._chosen: list[S] = []

    def begin(self, every: Callable[[], Iterable[S]]) -> None:
        """Start a new pass. ``every`` returns all items that have a score."""
        self._weight *= 2
        if self._weight >= MAX_WEIGHT:
            for one in every():
                one.score /= self._weight
            self._weight = 1.0
            self._chosen = []  # scores may have become equal

    def credit(self, one: S, growth: int) -> None:
        one.score += growth * self._weight

    def choose(self, risen: Sequence[S], every: Iterable[S], *, rechoose: bool = False) -> Sequence[S]:
        """Return the busiest items. Only items in ``risen``, which were active or are new, can replace chosen items.

        ``rechoose`` means that a chosen item no longer exists.
        """
        if rechoose or len(self._chosen) < self._most:
            self._chosen = nlargest(self._most, every, key=_rank)
        elif risen:
            least = min([one.score for one in self._chosen])
            above = [one for one in risen if one.score >= least]
            self._chosen = nlargest(self._most, {*self._chosen, *above}, key=_rank)
        return self._chosen


def _rank(one: Scored) -> tuple[float, str]:
    return one.score, one.name
