"""File sizes as they are found: around one size (lognormal), or around two (bimodal), in whole bytes."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from random import Random


@dataclass(frozen=True, slots=True)
class Distribution:
    """Lognormal around a median; with ``second_median_bytes`` a share of the files around that one instead.

    >>> sizes = [Distribution(65536, 1.0, 67108864, 0.1).draw(Random(n)) for n in range(200)]
    >>> sum(size > 8 << 20 for size in sizes) in range(10, 40), min(sizes) > 0
    (True, True)
    """

    median_bytes: int = 64 << 10
    sigma: float = 1.0
    """Of the logarithm: 1 means two thirds of the files within a factor of 2.7."""
    second_median_bytes: int = 0
    second_share: float = 0.0
    min_bytes: int = 1
    max_bytes: int = 1 << 30

    def draw(self, rng: Random) -> int:
        """One size."""
        second = self.second_share and rng.random() < self.second_share
        median = self.second_median_bytes if second else self.median_bytes
        return min(max(int(rng.lognormvariate(log(median), self.sigma)), self.min_bytes), self.max_bytes)
