"""What a job did on an OST between two readings, by the numbers alone: nearly all of a window is made so.

What is in any way odd (other counters than before, one that went back, what is no number or more than can be) is left
to :mod:`tierd.sense.readings`, which asks more questions and comes to the same where there is nothing odd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import inf
from operator import itemgetter, sub

from tierd.model import NO_SIZES, JobLoad
from tierd.sense.counters import JobCounters, Shape

DATA = frozenset({"read", "write", "read_bytes", "write_bytes"})
FREE = frozenset({"statfs", "get_info", "set_info", "quotactl", "prealloc", "getattr"})
"""OST operations that are answered from memory: they make no disk seek and are no load."""
_make = partial(tuple.__new__, JobLoad)
_ABSENT = -1
"""Behind all numbers stands a zero."""


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the numbers of a load stand in those of a shape."""

    read_bytes: int
    write_bytes: int
    reads: int
    writes: int
    read_calls: int
    write_calls: int
    others: Callable[[Sequence[float]], Sequence[float]]
    """Takes the numbers of all other operations out."""
    read_usec: int
    write_usec: int


@lru_cache(maxsize=4096)
def _places(shape: Shape) -> _Places:
    def at(names: Sequence[str], name: str, first: int = 0) -> int:
        return first + names.index(name) if name in names else _ABSENT

    samples, sums, first = shape.samples, shape.sums, shape.sums_at
    return _Places(
        at(sums, "read_bytes", first), at(sums, "write_bytes", first), at(samples, "read_bytes"),
        at(samples, "write_bytes"), at(samples, "read"), at(samples, "write"),
        _out([i for i, name in enumerate(samples) if name not in DATA and name not in FREE]),
        at(sums, "read", first), at(sums, "write", first),
    )


def _out(places: Sequence[int]) -> Callable[[Sequence[float]], Sequence[float]]:
    """Several at once are taken out quickest; a single one would not come as a sequence."""
    return itemgetter(*places) if len(places) > 1 else lambda numbers: [numbers[place] for place in places]


def quick(target: str, job: str, before: JobCounters, after: JobCounters, most_operations: float,
          most_bytes: float) -> JobLoad | None:
    """The load, or None where more must be asked: what more than ``most_…`` is cannot be."""
    shape = after.shape
    if before.shape is not shape or (before.start != after.start and before.start and after.start):
        return None
    numbers = shape.numbers.unpack
    more = list(map(sub, numbers(after.numbers), numbers(before.numbers)))
    if not more or not sum(more) < inf or min(more) < 0:
        return None
    sums_at, sizes_at = shape.sums_at, shape.sizes_at
    operations, sizes = sum(more[:sums_at]), more[sizes_at:]
    if not 0 < operations <= most_operations or sum(more[sums_at:sizes_at]) > most_bytes or (
            sum(sizes) > most_operations):
        return None
    more.append(0.0)
    at = _places(shape)
    # 2.12 and 2.13 print no `read` and `write`; there the samples of the byte counters are the RPCs.
    # `or 0.0` is the same zero for all of them: most numbers of most loads are none
    return _make((
        target, job, more[at.read_bytes] or 0.0, more[at.write_bytes] or 0.0,
        more[at.reads] or more[at.read_calls] or 0.0, more[at.writes] or more[at.write_calls] or 0.0,
        sum(at.others(more)) or 0.0, more[at.read_usec] + more[at.write_usec] or 0.0,
        {upper: count for upper, count in zip(shape.sizes, sizes, strict=True) if count} if sizes else NO_SIZES,
    ))
