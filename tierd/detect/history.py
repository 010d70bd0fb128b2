"""The history of windows: the last minutes as measured, earlier windows summed to half minutes.

Negligible loads are dropped. With 5,000 jobs on 400 targets a window may hold 50,000 loads, most of them a thousandth
of their target's load. A job with such a load slows no other job, and tierd cannot measure whether it is slowed.
Windows that are too old for profiles of jobs lose the sizes of RPCs, which are two thirds of their numbers.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tierd.loads import Floats, Loads, NamespaceLoads, Numbers, names_together, together
from tierd.model import NamespaceLoad, Window

WINDOWS_WITH_SIZES = 4
"""Number of the newest half minutes that keep the sizes of RPCs, for profiles of jobs."""


class CoarseWindows:
    """Sums short windows into long windows, and keeps the long windows."""

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
        self._parts: list[Window] = []

    @property
    def windows(self) -> Sequence[Window]:
        """Complete long windows, oldest first."""
        return tuple(self._done)

    def add(self, window: Window) -> bool:
        """Add a short window. Returns whether a long window is now complete. After a gap a new long window begins."""
        if window.start != self._end:
            self._begin(window.start)
        self._parts.append(window)
        self._end = window.end
        if self._end - self._start < self._span_seconds:
            return False
        spans: defaultdict[str, float] = defaultdict(float)
        for part in self._parts:
            for target, seconds in part.spans.items():
                spans[target] += seconds
        self._done.append(self._thin(Window(
            self._start, self._end, together([Loads.of(part.loads) for part in self._parts]),
            names_together([NamespaceLoads.of(part.namespace) for part in self._parts]), window.conditions,
            storage_work=window.storage_work, spans=spans)))
        if len(self._done) > WINDOWS_WITH_SIZES:
            self._done[-WINDOWS_WITH_SIZES - 1] = without_sizes(self._done[-WINDOWS_WITH_SIZES - 1])
        while len(self._done) > 1 and (self._done[0].end < self._end - self._history_seconds
                                       or sum(len(w.loads) for w in self._done) > self._most_loads):
            self._done.popleft()
        self._begin(self._end)
        return True


def without_sizes(window: Window) -> Window:
    """The window without the sizes of RPCs."""
    return replace(window, loads=Loads.of(window.loads).without_sizes())


WHOLE_SECONDS = 300.0
"""Short windows are kept for this long if there are few loads."""
MIN_WHOLE_SECONDS = 30.0
"""Short windows are kept for at least this long."""
MAX_LOADS = 40_000
"""Maximum number of loads in all short windows."""
MAX_COARSE_LOADS = 100_000
"""Maximum number of loads in all long windows. With very many loads the history is shorter."""
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
        self.coarse = CoarseWindows(history_seconds=self._history_seconds, most_loads=MAX_COARSE_LOADS, thin=thinned)
        self._whole: deque[Window] = deque()
        self._loads = 0
        self._begun: float | None = None
        self.learned: tuple[Window, ...] = ()
        """Windows from Prometheus' history, until tierd's own history is long enough."""

    @property
    def windows(self) -> Sequence[Window]:
        """All windows, oldest first."""
        begun = self._whole[0].start if self._whole else float("inf")
        return (*self.learned, *(w for w in self.coarse.windows if w.end <= begun), *self._whole)

    @property
    def recent(self) -> Sequence[Window]:
        """Windows of the last ``recent_seconds``, oldest first."""
        begun = self._whole[-1].end - self.recent_seconds if self._whole else 0.0
        return [window for window in self._whole if window.end > begun]

    def add(self, window: Window) -> bool:
        """Add a window. Returns whether a long window is now complete."""
        if self._whole and window.end <= self._whole[-1].end:
            self._begin()  # the clock went back: drop the history
        self._begun = window.start if self._begun is None else self._begun
        if window.end - self._begun > self._history_seconds:
            self.learned = ()
        window = thinned(window)
        self._whole.append(window)
        self._loads += len(window.loads)
        begun = window.end - self.recent_seconds
        for at in range(len(self._whole) - 1, -1, -1):
            if self._whole[at].end <= begun:
                if not Loads.of(self._whole[at].loads).sizes.names:
                    break  # those before lost theirs in earlier cycles
                self._whole[at] = without_sizes(self._whole[at])
        complete = self.coarse.add(window)
        if complete:
            self._forget(window.end)
        return complete

    def _forget(self, now: float) -> None:
        """Remove short windows that long windows cover, if they are old or too many."""
        ends = {w.end for w in self.coarse.windows}
        while len(self._whole) > 1 and self._whole[0].end < now - MIN_WHOLE_SECONDS and self._is_due(now):
            while len(self._whole) > 1:
                gone = self._whole.popleft()
                self._loads -= len(gone.loads)
                if gone.end in ends:
                    break

    def _is_due(self, now: float) -> bool:
        return self._whole[0].end < now - min(WHOLE_SECONDS, self._history_seconds) or self._loads > MAX_LOADS


def thinned(window: Window) -> Window:
    """The window without negligible loads on crowded targets."""
    loads, targets = Loads.of(window.loads), Numbers[str]()
    at = targets.of(loads.target.tolist(), len(loads))
    crowded = (np.bincount(at, minlength=1) > CROWDED_JOBS)[at]
    if not crowded.any():
        return replace(window, loads=loads, namespace=NamespaceLoads.of(window.namespace))

    def least(amount: Floats) -> Floats:
        found: Floats = np.where(crowded, MIN_SHARE * np.bincount(at, amount)[at], 0.0)
        return found

    operations, moved = loads.operations, loads.moved_bytes
    kept = loads.rows((operations >= least(operations)) | ((moved >= least(moved)) & (moved > 0)))
    return replace(window, loads=kept, namespace=thinned_namespace(window.namespace, set(kept.job.tolist())))


def thinned_namespace(namespace: Mapping[str, NamespaceLoad], jobs: Collection[str]) -> NamespaceLoads:
    """Metadata loads of these jobs, and of jobs with at least a thousandth of all metadata operations."""
    loads = NamespaceLoads.of(namespace)
    here = np.fromiter(map(jobs.__contains__, loads.keys_by_row()), bool, len(loads))
    return loads.rows(here | (loads.operations >= 0.001 * loads.operations.sum()))
