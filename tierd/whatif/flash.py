"""How much flash it takes to do what tierd would have done, and what less flash gives back.

What Prometheus does not know is how long files live: at least until their job removes them or ends, at most to the end
of the range. So the need is a range. If there is less flash than all need, the jobs come first whose files give most
back for their bytes: more flash never gives back less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tierd.detect.account import Lost, total
from tierd.loads import Floats
from tierd.whatif.account import PARTS, Neighbour


@dataclass(frozen=True, slots=True)
class Need:
    """Flash for the first jobs, and what that gives back."""

    low_bytes: float = 0.0
    """If files are removed, or moved to disks, when their job ends."""
    high_bytes: float = 0.0
    """If only the jobs themselves remove files."""
    gain: Lost = field(default_factory=Lost)

    @property
    def mean_bytes(self) -> float:
        return (self.low_bytes + self.high_bytes) / 2


def living(neighbour: Neighbour, forever: bool) -> Floats:
    """Bytes of its files on flash in each part of the range."""
    found, last = np.zeros(PARTS + 1), 0.0
    for part in range(min(neighbour.peaks), PARTS + 1 if forever else max(neighbour.peaks) + 1):
        last = found[part] = neighbour.peaks.get(part, last)
    return found


def needs(neighbours: Iterable[Neighbour], reserve: float) -> list[Need]:
    """The flash for no job, for one, for two, and so on, the most useful first. ``reserve``: share that stays free."""
    useful = sorted((each for each in neighbours if each.gain.bytes and each.peaks),
                    key=lambda each: (-each.gain.bytes / (1 + max(each.peaks.values())), each.job))
    low, high, found = np.zeros(PARTS + 1), np.zeros(PARTS + 1), [Need()]
    for count, each in enumerate(useful, 1):
        low, high = low + living(each, False), high + living(each, True)
        found.append(Need(float(low.max()) / (1 - reserve), float(high.max()) / (1 - reserve),
                          total([one.gain for one in useful[:count]])))
    return found


def given_back(needed: Sequence[Need], flash_bytes: float) -> Lost:
    """What so much flash gives back. The interval covers how long files live.

    >>> given_back([Need(), Need(2e12, 8e12, Lost(10e12, 9e12, 11e12, 60.0))], 4e12)
    Lost(bytes=8000000000000.0, low_bytes=4500000000000.0, high_bytes=11000000000000.0, seconds=48.0)
    """
    def at(size: str, gain: str) -> float:
        return float(np.interp(flash_bytes, [getattr(each, size) for each in needed],
                               [getattr(each.gain, gain) for each in needed]))

    return Lost(at("mean_bytes", "bytes"), at("high_bytes", "low_bytes"), at("low_bytes", "high_bytes"),
                at("mean_bytes", "seconds"))
