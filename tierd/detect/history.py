"""The history of windows: the last minutes as measured, earlier windows summed to half minutes.

Negligible loads are dropped. With 5,000 jobs on 400 targets a window may hold 50,000 loads, most of them a thousandth
of their target's load. A job with such a load slows no other job, and tierd cannot measure whether it is slowed.
Windows that are too old for profiles of jobs lose the sizes of RPCs, which are two thirds of their numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from tierd.detect.groups import totals
from tierd.loads import Floats, Loads, NamespaceLoads, Numbers, names_together, together
from tierd.model import UNSEEN, Window

SPAN_SECONDS = 30.0
"""Length of a long window."""
LONG_WITH_SIZES = 4
"""Number of the newest half minutes that keep the sizes of RPCs, for profiles of jobs."""
SHORT_SECONDS, LEAST_SHORT_SECONDS = 300.0, 30.0
"""Short windows are kept for this long if there are few loads, and at least for the second."""
MAX_SHORT_LOADS, MAX_LONG_LOADS = 40_000, 100_000
"""Maximum number of loads in all short and in all long windows. With very many loads the history is shorter."""
CROWDED_JOBS = 16
"""A target with at most this many jobs keeps all its loads."""
MIN_SHARE = 0.02
"""Share of a crowded target's operations or bytes below which a load is dropped."""


class History:
    """Keeps windows without negligible loads: long windows, then short windows, oldest first."""

    def __init__(self, history_seconds: float, recent_seconds: float = 30.0) -> None:
        self._history_seconds = history_seconds
        self.recent_seconds = recent_seconds
        """Period from which profiles of jobs are made in every cycle. Its windows keep the sizes of RPCs."""
        self._begin()

    def _begin(self) -> None:
        self._long: deque[Window] = deque()
        self._short: deque[Window] = deque()
        self._parts: list[Window] = []
        """Of the next long window."""

    @property
    def half_minutes(self) -> Sequence[Window]:
        """Complete long windows, oldest first."""
        return tuple(self._long)

    @property
    def windows(self) -> Sequence[Window]:
        """All windows, oldest first."""
        begun = self._short[0].start if self._short else float("inf")
        return (*(w for w in self._long if w.end <= begun), *self._short)

    @property
    def recent(self) -> Sequence[Window]:
        """Windows of the last ``recent_seconds``, oldest first."""
        begun = self._short[-1].end - self.recent_seconds if self._short else 0.0
        return [window for window in self._short if window.end > begun]

    def add(self, window: Window) -> bool:
        """Add a window. Returns whether a long window is now complete. After a gap a new long window begins."""
        if self._short and window.end <= self._short[-1].end:
            self._begin()  # the clock went back: drop the history
        window = thinned(window)
        if self._parts and window.start != self._parts[-1].end:  # summed windows must follow each other
            self._parts = []
        self._parts.append(window)
        self._short.append(window)
        for at, each in enumerate(self._short):
            if each.end <= window.end - self.recent_seconds and Loads.of(each.loads).sizes.names:
                self._short[at] = without_sizes(each)
        complete = window.end - self._parts[0].start >= SPAN_SECONDS
        if complete:
            self._long.append(thinned(summed(self._parts)))
            self._parts = []
            if len(self._long) > LONG_WITH_SIZES:
                self._long[-LONG_WITH_SIZES - 1] = without_sizes(self._long[-LONG_WITH_SIZES - 1])
        self._forget(window.end)
        return complete

    def _forget(self, now: float) -> None:
        """Remove old long windows, and short windows that are old or too many, up to the end of a long one or a gap."""
        while len(self._long) > 1 and (self._long[0].end < now - self._history_seconds
                                       or loads_in(self._long) > MAX_LONG_LOADS):
            self._long.popleft()
        ends = {w.end for w in self._long}
        oldest = now - min(SHORT_SECONDS, self._history_seconds)
        while self._short[0].end < now - LEAST_SHORT_SECONDS and (
                self._short[0].end < oldest or loads_in(self._short) > MAX_SHORT_LOADS):
            while len(self._short) > 1:
                end = self._short.popleft().end
                if end in ends or end != self._short[0].start:
                    break


def loads_in(windows: Collection[Window]) -> int:
    return sum(len(window.loads) for window in windows)


def summed(parts: Sequence[Window]) -> Window:
    """Windows that follow each other as one. A target that was seen last was seen, in its own seconds."""
    last = parts[-1]
    conditions = {name: why for part in parts for name, why in part.conditions.items() if why != UNSEEN or part is last}
    return Window(parts[0].start, last.end, together([Loads.of(part.loads) for part in parts]),
                  names_together([NamespaceLoads.of(part.namespace) for part in parts]), conditions,
                  storage_work=last.storage_work, spans=totals(each for part in parts for each in part.spans.items()))


def without_sizes(window: Window) -> Window:
    return replace(window, loads=Loads.of(window.loads).without_sizes())


def thinned(window: Window) -> Window:
    """The window without negligible loads on crowded targets, and metadata loads of jobs that have no others."""
    loads, targets = Loads.of(window.loads), Numbers[str]()
    at = targets.of(loads.target.tolist(), len(loads))
    crowded = (np.bincount(at, minlength=1) > CROWDED_JOBS)[at]
    if not crowded.any():
        return replace(window, loads=loads, namespace=NamespaceLoads.of(window.namespace))

    def least(amount: Floats) -> Floats:
        return np.where(crowded, MIN_SHARE * np.bincount(at, amount)[at], 0.0)

    operations, moved = loads.operations, loads.moved_bytes
    kept = loads.rows((operations >= least(operations)) | ((moved >= least(moved)) & (moved > 0)))
    done, jobs = NamespaceLoads.of(window.namespace), set(kept.job.tolist())
    here = np.fromiter(map(jobs.__contains__, done.keys_by_row()), bool, len(done))
    some = here | (done.operations >= 0.001 * done.operations.sum())  # a thousandth of all metadata operations
    return replace(window, loads=kept, namespace=done.rows(some))
