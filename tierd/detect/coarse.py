"""Windows of half a minute, made of the short ones: what changes slowly is looked at rarely, and costs less to look at.

The sums are made as the short windows come, so that no single cycle pays for all of them: with 5,000 jobs on 400
targets a window may hold 50,000 loads.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from tierd.model import JobLoad, NamespaceLoad, Window


class _Sum:
    """Growing sums of one job on one target."""

    __slots__ = ("numbers", "sizes")

    def __init__(self) -> None:
        self.numbers = [0.0] * 6
        self.sizes: dict[int, float] = {}

    def add(self, load: JobLoad) -> None:
        numbers = self.numbers
        numbers[0] += load.read_bytes
        numbers[1] += load.write_bytes
        numbers[2] += load.reads
        numbers[3] += load.writes
        numbers[4] += load.other_operations
        numbers[5] += load.busy_usec
        for upper, count in load.sizes.items():
            self.sizes[upper] = self.sizes.get(upper, 0.0) + count

    def load(self, target: str, job: str) -> JobLoad:
        read_bytes, write_bytes, reads, writes, others, busy_usec = self.numbers
        return JobLoad(target, job, read_bytes, write_bytes, reads, writes, others, busy_usec, self.sizes)


class CoarseWindows:
    """Takes short windows in and keeps long ones."""

    def __init__(self, span_seconds: float = 30.0, history_seconds: float = 900.0) -> None:
        self._span_seconds = span_seconds
        self._history_seconds = history_seconds
        self._done: deque[Window] = deque()
        self._begin(0.0)

    def _begin(self, start: float) -> None:
        self._start = self._end = start
        self._loads: defaultdict[tuple[str, str], _Sum] = defaultdict(_Sum)
        self._names: defaultdict[str, list[NamespaceLoad]] = defaultdict(list)

    @property
    def windows(self) -> Sequence[Window]:
        """Long windows that are complete, oldest first."""
        return tuple(self._done)

    def add(self, window: Window) -> bool:
        """Take one in; whether a long window is complete now. After a gap a new one begins."""
        if window.start != self._end:
            self._begin(window.start)
        for key, load in window.loads.items():
            self._loads[key].add(load)
        for job, names in window.namespace.items():
            self._names[job].append(names)
        self._end = window.end
        if self._end - self._start < self._span_seconds:
            return False
        loads = {key: total.load(*key) for key, total in self._loads.items()}
        namespace = {job: together(parts) for job, parts in self._names.items()}
        self._done.append(Window(self._start, self._end, loads, namespace, window.conditions))
        while self._done[0].end < self._end - self._history_seconds:
            self._done.popleft()
        self._begin(self._end)
        return True


def together(parts: Sequence[NamespaceLoad]) -> NamespaceLoad:
    """Sum of one job's metadata operations."""
    return NamespaceLoad(parts[0].job, sum(p.opens for p in parts), sum(p.closes for p in parts),
                         sum(p.creates for p in parts), sum(p.unlinks for p in parts),
                         sum(p.other_operations for p in parts))
