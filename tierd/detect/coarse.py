"""Windows of half a minute, made of the short ones: what changes slowly is looked at rarely, and costs less to look at.

The sums are made as the short windows come, so that no single cycle pays for all of them: with 5,000 jobs on 400
targets a window may hold 50,000 loads.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from tierd.detect.packed import packed_loads, packed_namespace
from tierd.detect.sums import ByKey, by_key, total
from tierd.model import NamespaceLoad, Window

SIZED = 4
"""Newest windows that keep the sizes of RPCs: what a job is like is told from these, and sizes take the most memory."""


class CoarseWindows:
    """Takes short windows in and keeps long ones."""

    def __init__(self, span_seconds: float = 30.0, history_seconds: float = 900.0, most_loads: float = float("inf"),
                 thin: Callable[[Window], Window] = lambda window: window) -> None:
        self._span_seconds = span_seconds
        self._history_seconds = history_seconds
        self._most_loads = most_loads
        self._thin = thin
        self._done: deque[Window] = deque()
        self._begin(0.0)

    def _begin(self, start: float) -> None:
        self._start = self._end = start
        self._loads: ByKey = by_key(())
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
            self._loads[key].append(load)
        for job, names in window.namespace.items():
            self._names[job].append(names)
        self._end = window.end
        if self._end - self._start < self._span_seconds:
            return False
        loads = {key: total(each) for key, each in self._loads.items()}
        namespace = {job: together(parts) for job, parts in self._names.items()}
        self._done.append(self._thin(Window(self._start, self._end, loads, namespace, window.conditions)))
        if len(self._done) > SIZED:
            self._done[-SIZED - 1] = packed(self._done[-SIZED - 1])
        while len(self._done) > 1 and (self._done[0].end < self._end - self._history_seconds
                                       or sum(len(w.loads) for w in self._done) > self._most_loads):
            self._done.popleft()
        self._begin(self._end)
        return True


def packed(window: Window) -> Window:
    """The same in little room, without the sizes of RPCs."""
    return replace(window, loads=packed_loads(window.loads), namespace=packed_namespace(window.namespace))


def together(parts: Sequence[NamespaceLoad]) -> NamespaceLoad:
    """Sum of one job's metadata operations."""
    return NamespaceLoad(parts[0].job, sum(p.opens for p in parts), sum(p.closes for p in parts),
                         sum(p.creates for p in parts), sum(p.unlinks for p in parts),
                         sum(p.other_operations for p in parts))
