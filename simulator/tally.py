"""How Lustre counts: samples with minimum, maximum, sum and sum of squares, and histograms of 32 buckets.

>>> stats = Stats((("write_bytes", "bytes", STDDEV), ("ioctl", "reqs", COUNT)), start_time=0.0)
>>> stats.tally("write_bytes", 4096)
>>> stats.tally("write_bytes", 8192)
>>> counter = stats["write_bytes"]
>>> counter.samples, counter.minimum, counter.maximum, counter.total
(2, 4096, 8192, 12288)
"""

from __future__ import annotations

from typing import TypeAlias

COUNT, MINMAX, STDDEV = 0, 1, 2
"""How much the kernel keeps of a counter: samples; with minimum, maximum, sum; with the sum of squares."""

Shape: TypeAlias = tuple[tuple[str, str, int], ...]
"""Counters of one stats file in the kernel's order: name, unit, how much is kept."""

BUCKETS = 32


class Counter:
    """One line of a stats file."""

    __slots__ = ("detail", "maximum", "minimum", "samples", "squares", "total", "unit")

    def __init__(self, unit: str, detail: int) -> None:
        self.unit = unit
        self.detail = detail
        self.samples = self.minimum = self.maximum = self.total = self.squares = 0

    def tally(self, value: int) -> None:
        """One more sample."""
        if value < self.minimum or not self.samples:
            self.minimum = value
        if value > self.maximum:  # noqa: PLR1730 -- called for everything that happens; max() takes three times as long
            self.maximum = value
        self.samples += 1
        self.total += value
        self.squares += value * value

    def bulk(self, samples: int, value: int) -> None:
        """So many samples more of the same value."""
        if samples == 1:
            self.tally(value)
        elif samples > 0:
            self.minimum = min(self.minimum, value) if self.samples else value
            self.maximum = max(self.maximum, value)
            self.samples += samples
            self.total += samples * value
            self.squares += samples * value * value

    def join(self, other: Counter) -> None:
        """Take the samples of another counter in, as the sum over several targets."""
        if other.samples:
            self.minimum = min(self.minimum, other.minimum) if self.samples else other.minimum
            self.maximum = max(self.maximum, other.maximum)
        self.samples += other.samples
        self.total += other.total
        self.squares += other.squares


class Stats:
    """The counters of one stats file since ``start_time`` (virtual seconds)."""

    __slots__ = ("_counters", "start_time")

    def __init__(self, shape: Shape, start_time: float) -> None:
        self.start_time = start_time
        self._counters = {name: Counter(unit, detail) for name, unit, detail in shape}

    def tally(self, name: str, value: int = 1) -> None:
        """One more sample of a counter."""
        self._counters[name].tally(value)

    def count(self, name: str, samples: int) -> None:
        """More samples of a counter that keeps nothing else."""
        self._counters[name].samples += samples

    def __getitem__(self, name: str) -> Counter:
        return self._counters[name]

    def items(self) -> tuple[tuple[str, Counter], ...]:
        """All counters in the kernel's order, those without samples too."""
        return tuple(self._counters.items())


class Histogram:
    """32 buckets, linear or by powers of two."""

    __slots__ = ("buckets",)

    def __init__(self) -> None:
        self.buckets = [0] * BUCKETS

    def tally(self, value: int) -> None:
        """Bucket number = value; the last bucket takes what is larger."""
        self.buckets[min(value, BUCKETS - 1)] += 1

    def tally_log2(self, value: int, samples: int = 1) -> None:
        """Bucket i holds the values above 2^(i-1) up to 2^i."""
        bucket = (value - 1).bit_length() if value else 0
        self.buckets[bucket if bucket < BUCKETS else BUCKETS - 1] += samples

    @property
    def total(self) -> int:
        """Samples in all buckets."""
        return sum(self.buckets)


def microseconds(seconds: float) -> int:
    """A duration as the kernel's counters hold it."""
    return round(seconds * 1_000_000)
