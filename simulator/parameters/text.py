"""Common parts of parameter files: the kernel's headers, stats files and histogram tables.

Tables and headers have the columns of Lustre 2.17.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from simulator.counters import BUCKETS, MINMAX, Counter, Histogram, Stats

NANOSECONDS = 10**9


@dataclass(frozen=True, slots=True)
class KernelClock:
    """Formats times as the kernel prints them: an instant of the epoch, or a span."""

    epoch_ns: int
    now: float

    def header(self, start_time: float, width: int, colon: str = "", indent: str = "") -> str:
        names = ("snapshot_time", "start_time", "elapsed_time")
        elapsed = _nanoseconds(round((self.now - start_time) * NANOSECONDS))
        values = (self.instant(self.now), self.instant(start_time), elapsed)
        lines = zip(names, values, strict=True)
        return "".join(f"{indent}{name + colon:<{width}} {value} secs.nsecs\n" for name, value in lines)

    def instant(self, time: float) -> str:
        return _nanoseconds(self.epoch_ns + round(time * NANOSECONDS))

    def seconds(self, time: float) -> float:
        return self.epoch_ns / NANOSECONDS + time


def _nanoseconds(value: int) -> str:
    return f"{value // NANOSECONDS}.{value % NANOSECONDS:09d}"


def stats_file(clock: KernelClock, stats: Stats) -> str:
    """Render a ``stats`` file: the header and every counter that has samples."""
    lines = [_counter(name, counter) for name, counter in stats.items() if counter.samples]
    return clock.header(stats.start_time, 35) + "".join(lines)


def _counter(name: str, counter: Counter) -> str:
    line = f"{name:<35} {counter.samples} samples [{counter.unit}]"
    if counter.detail >= MINMAX:
        line += f" {counter.minimum} {counter.maximum} {counter.total}"
    if counter.detail > MINMAX:
        line += f" {counter.squares}"
    return line + "\n"


def percent(part: int, whole: int) -> int:
    return part * 100 // whole if whole else 0


def rows(columns: Sequence[Histogram], first: int = 0) -> Iterable[tuple[int, list[int]]]:
    """Yield the bucket number and, per column, count, percent and cumulative percent. Ends where all are complete."""
    totals = [column.total for column in columns]
    sums = [0] * len(columns)
    for number in range(first, BUCKETS):
        cells: list[int] = []
        for index, column in enumerate(columns):
            count = column.buckets[number]
            sums[index] += count
            cells += [count, percent(count, totals[index]), percent(sums[index], totals[index])]
        yield number, cells
        if sums == totals:
            return
