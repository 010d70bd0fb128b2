"""The busiest of many, by what each did lately: every pass halves what earlier ones counted.

Nothing is halved, though: what is done counts twice as much at each pass as at the one before, so that a pass costs
something for those only that did something.

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
"""From here on begins anew at 1: twice the exponent is about what a float holds."""


class Scored:
    """One of many."""

    __slots__ = ("name", "score")

    def __init__(self, name: str) -> None:
        self.name = name
        self.score = 0.0


S = TypeVar("S", bound=Scored)


class Busiest(Generic[S]):
    """Chooses them, pass after pass."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 1.0
        self._chosen: list[S] = []

    def begin(self, every: Callable[[], Iterable[S]]) -> None:
        """A new pass. ``every`` says who has a score."""
        self._weight *= 2
        if self._weight >= MAX_WEIGHT:
            for one in every():
                one.score /= self._weight
            self._weight = 1.0
            self._chosen = []  # scores may have become the same

    def credit(self, one: S, growth: int) -> None:
        """It did so much since the last pass."""
        one.score += growth * self._weight

    def choose(self, risen: Sequence[S], every: Iterable[S], *, anew: bool = False) -> Sequence[S]:
        """The busiest of all. Only those that did something, or are new, may take the place of some chosen before.

        ``anew`` when one of the chosen is no longer there.
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
