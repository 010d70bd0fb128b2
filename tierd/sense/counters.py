"""The counters of one job on one target, kept small: of a large file system there are tens of thousands, twice.

Jobs have the same few sets of counters. So the names are kept once for all of them, and of each only the numbers, in
one piece: a seventh of what mappings take. Where nothing happened the pieces are equal, which is seen at once.

>>> before, after = JobCounters({"read": 3.0}, {"read": 70.0}), JobCounters({"read": 5.0}, {"read": 90.0})
>>> before.shape is after.shape, after.samples, after.sums, after.sizes
(True, {'read': 5.0}, {'read': 90.0}, {})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import isnan
from struct import Struct

from tierd.model import NO_SIZES

_NAN, _MINUS_NAN = 0x7F, 0xFF
"""One of these bytes is in what is no number, and rarely in another."""

@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Which counters there are, and how their numbers are kept: samples, sums and sizes one after the other."""

    samples: tuple[str, ...]
    sums: tuple[str, ...]
    sizes: tuple[int, ...]
    sums_at: int
    """Where the sums begin."""
    sizes_at: int
    """Where the sizes begin."""
    numbers: Struct


@lru_cache(maxsize=4096)  # an exporter may make names up
def shape(samples: tuple[str, ...], sums: tuple[str, ...], sizes: tuple[int, ...]) -> Shape:
    """The one of these names, in this order."""
    sizes_at = len(samples) + len(sums)
    return Shape(samples, sums, sizes, len(samples), sizes_at, Struct(f"{sizes_at + len(sizes)}d"))


class JobCounters:
    """The counters of one job on one target, as they stood."""

    __slots__ = ("numbers", "shape", "start")

    def __init__(self, samples: Mapping[str, float], sums: Mapping[str, float], sizes: Mapping[int, float] = NO_SIZES,
                 start: str = "") -> None:
        self.shape = shape(tuple(samples), tuple(sums), tuple(sizes))
        self.numbers = self.shape.numbers.pack(*samples.values(), *sums.values(), *sizes.values())
        self.start = start
        """When the entry began, as the kernel printed it; empty where it is not known."""

    def stood_still(self, before: JobCounters) -> bool:
        """Whether nothing has happened since. What is no number has no equal, as ever."""
        numbers = self.numbers
        if self.shape is not before.shape or numbers != before.numbers:
            return False
        return not ((_NAN in numbers or _MINUS_NAN in numbers) and any(map(isnan, self.values)))

    @property
    def values(self) -> tuple[float, ...]:
        """All numbers, in the order of the shape."""
        return self.shape.numbers.unpack(self.numbers)

    @property
    def samples(self) -> dict[str, float]:
        """By operation, ``read_bytes`` and ``write_bytes`` among them (their samples are bulk RPCs)."""
        return dict(zip(self.shape.samples, self.values, strict=False))

    @property
    def sums(self) -> dict[str, float]:
        """Bytes for ``…_bytes``, microseconds for the others."""
        return dict(zip(self.shape.sums, self.values[self.shape.sums_at:], strict=False))

    @property
    def sizes(self) -> dict[int, float]:
        """Bulk RPCs by upper bound of their size in bytes."""
        return dict(zip(self.shape.sizes, self.values[self.shape.sizes_at:], strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JobCounters):
            return NotImplemented
        return (self.samples, self.sums, self.sizes, self.start) == (other.samples, other.sums, other.sizes,
                                                                     other.start)

    __hash__ = None  # type: ignore[assignment] # nobody looks for counters, and 0.0 and -0.0 are kept as two

    def __repr__(self) -> str:
        return f"JobCounters({self.samples}, {self.sums}, {self.sizes}, {self.start!r})"
