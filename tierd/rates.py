"""Rates of many targets or jobs as columns of numbers: of windows, as means over longer times, and packed for a row."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from tierd.loads import BUSY_USEC, READ_BYTES, READS, WRITE_BYTES, Floats, Loads, NamespaceLoads, Numbers, sums
from tierd.model import Window

COLUMNS = ("read_bytes", "write_bytes", "operations", "metadata_operations")
"""What a record has of each name, each per second."""
Point = tuple[float, float, float, float, float]
"""End of the time of a record (epoch seconds), and the columns."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of targets or of jobs, in four columns."""

    names: Sequence[str]
    numbers: Floats

    def packed(self) -> tuple[bytes, bytes]:
        return (zlib.compress(json.dumps(list(self.names)).encode()),
                zlib.compress(self.numbers.astype("<f4").tobytes()))

    @classmethod
    def unpacked(cls, names: bytes, numbers: bytes) -> Rates:
        return cls(names_in(names), np.frombuffer(zlib.decompress(numbers), "<f4").astype(float).reshape(
            -1, len(COLUMNS)))

    def busiest(self, most: int, always: frozenset[str] = frozenset()) -> Rates:
        """So many of the names with the most bytes and of those with the most operations, and some in any case."""
        if len(self.names) <= most:
            return self
        ranks = [np.argsort(-self.numbers[:, columns].sum(axis=1), kind="stable").tolist()
                 for columns in (slice(0, 2), slice(2, 4))]
        first = islice(dict.fromkeys(chain.from_iterable(zip(*ranks, strict=True))), most)
        chosen = sorted({*first, *(at for at, name in enumerate(self.names) if name in always)})
        return Rates([self.names[at] for at in chosen], self.numbers[chosen])


def names_in(packed: bytes) -> list[str]:
    """The packed names."""
    found: list[str] = json.loads(zlib.decompress(packed))
    return found


def numbers_at(packed: bytes, place: int) -> tuple[float, float, float, float]:
    """The packed numbers of one name, by its place among the names."""
    row = np.frombuffer(zlib.decompress(packed), "<f4", len(COLUMNS), 4 * len(COLUMNS) * place)
    return tuple(row.tolist())


def mean(parts: Sequence[Rates]) -> Rates:
    """The mean over equal times. A name that a part lacks had no load then."""
    found = total([(part.names, part.numbers) for part in parts])
    return Rates(found.names, found.numbers / max(len(parts), 1))


def total(parts: Sequence[tuple[Sequence[str], Floats]]) -> Rates:
    """The sums by name."""
    names = Numbers[str]()
    at = names.of(chain.from_iterable(each for each, _ in parts), sum(len(each) for each, _ in parts))
    numbers = np.concatenate([np.empty((0, len(COLUMNS))), *(each for _, each in parts)])
    return Rates(list(names), sums(at, numbers, len(names)))


def mean_rates(windows: Sequence[Window], place: int) -> Rates:
    """Mean rates by target (``place`` 0) or job (1)."""
    every: list[tuple[Sequence[str], Floats]] = []
    data = sum(window.seconds for window in windows) or 1.0
    metadata = sum(window.seconds for window in windows if window.metadata)
    for window in windows:
        loads = Loads.of(window.loads)
        of_load = loads.target.tolist()
        spans = {target: window.seconds_of(target) for target in set(of_load)}
        per_second = window.seconds / data / np.array([spans[target] for target in of_load], float)
        every.append((of_load if place == 0 else loads.job.tolist(), per_second[:, None] * np.column_stack(
            [loads.numbers[:, READ_BYTES], loads.numbers[:, WRITE_BYTES],
             loads.numbers[:, READS:BUSY_USEC].sum(axis=1), np.zeros(len(loads))])))
        if place:
            space = NamespaceLoads.of(window.namespace)
            share = window.seconds / data / (window.metadata_seconds or 1.0)
            counts = dict(zip(space.keys_by_row(), (space.operations * share).tolist(), strict=True))
        else:
            counts = {mdt: sum(each.operations for each in services.values())
                      * window.seconds / metadata / window.seconds_of(mdt)
                      for mdt, services in window.metadata.items()}
        every.append((list(counts), np.array([(0.0, 0.0, 0.0, count) for count in counts.values()]).reshape(-1, 4)))
    return total(every)
