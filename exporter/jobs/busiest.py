"""The busiest of many, by recent activity: every pass halves the weight of earlier ones.

Instead of halving all scores, each pass doubles the weight of new activity, so that only active ones cost time.

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
"""Above this, scores are rescaled to a weight of 1: a float holds about twice this exponent."""


class Scored:
    """One of many, with its score."""

    __slots__ = ("name", "score")

    def __init__(self, name: str) -> None:
        self.name = name
        self.score = 0.0


S = TypeVar("S", bound=Scored)


class Busiest(Generic[S]):
    """Chooses the ones with the highest scores, pass after pass."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 1.0
        self._chosen: list[S] = []

    def begin(self, every: Callable[[], Iterable[S]]) -> None:
        """Start a new pass. ``every`` returns all that have a score."""
        self._weight *= 2
        if self._weight >= MAX_WEIGHT:
            for one in every():
                one.score /= self._weight
            self._weight = 1.0
            self._chosen = []  # scores may have become equal

    def credit(self, one: S, growth: int) -> None:
        """Add its activity since the last pass."""
        one.score += growth * self._weight

    def choose(self, risen: Sequence[S], every: Iterable[S], *, anew: bool = False) -> Sequence[S]:
        """The busiest of all. ``risen`` are those that were active or are new: only they can replace chosen ones.

        ``anew``: one of the chosen is gone.
        """
        if anew or len(self._chosen) < self._most:
            self._chosen = nlargest(self._most, every, key=_rank)
        elif risen:
            least = min([one.score for one in self._chosen])
            above = [one for one in risen if one.score >= least]
            self._chosen = nlargest(self._most, {*self._chosen, *above}, key=_rank)
        return self._chosen


def _rank(one: Scored) -> tuple[float, str]:
    return one.score, one.name
