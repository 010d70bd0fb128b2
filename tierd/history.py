"""What is remembered of the windows: the last minutes whole, what was before in half minutes, and nothing too small.

With 5,000 jobs on 400 targets a window may hold 50,000 loads, most of them a thousandth of what their target had to do.
A job with so little neither slows anybody there nor can it be seen to be slowed.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tierd.detect.coarse import CoarseWindows
from tierd.model import JobLoad, NamespaceLoad, Window

WHOLE_SECONDS = 300.0
"""Windows are kept as they came for so long, where there are few loads."""
LEAST_WHOLE_SECONDS = 30.0
"""At the least, however many loads there are."""
MOST_LOADS = 40_000
"""In whole windows together."""
MOST_COARSE_LOADS = 100_000
"""In coarse windows together: with very many loads the history is shorter."""
CROWDED = 16
"""Jobs on a target up to which all are kept: only where there are more can one be too small to matter."""
LEAST_SHARE = 0.02
"""Share of a crowded target's operations or bytes below which a job is left out."""


class History:
    """Takes windows in, and gives them back thinned: whole ones after coarse ones, oldest first."""

    def __init__(self, history_seconds: float) -> None:
        self._history_seconds = history_seconds
        self._begin()

    def _begin(self) -> None:
        self.coarse = CoarseWindows(history_seconds=self._history_seconds, most_loads=MOST_COARSE_LOADS, thin=thinned)
        self._whole: deque[Window] = deque()
        self._loads = 0
        self._keys: dict[tuple[str, str], tuple[str, str]] = {}
        self._begun: float | None = None
        self.learnt: tuple[Window, ...] = ()
        """What somebody else has seen before our start, until our own history is long enough."""

    @property
    def windows(self) -> Sequence[Window]:
        """All of it."""
        begun = self._whole[0].start if self._whole else float("inf")
        return (*self.learnt, *(w for w in self.coarse.windows if w.end <= begun), *self._whole)

    def add(self, window: Window) -> bool:
        """Take one in; whether a coarse window is complete now."""
        if self._whole and window.end <= self._whole[-1].end:
            self._begin()  # the clock went back: what was before is not before any more
        self._begun = window.start if self._begun is None else self._begun
        if window.end - self._begun > self._history_seconds:
            self.learnt = ()
        window = self._with_known_keys(thinned(window))
        self._whole.append(window)
        self._loads += len(window.loads)
        complete = self.coarse.add(window)
        if complete:
            self._forget(window.end)
            self._keys = {key: key for w in self.windows for key in w.loads}
        return complete

    def _forget(self, now: float) -> None:
        """Let whole windows go that coarse ones stand for, and that are old or too many."""
        ends = {w.end for w in self.coarse.windows}
        while len(self._whole) > 1 and self._whole[0].end < now - LEAST_WHOLE_SECONDS and self._is_due(now):
            while len(self._whole) > 1:
                gone = self._whole.popleft()
                self._loads -= len(gone.loads)
                if gone.end in ends:
                    break

    def _is_due(self, now: float) -> bool:
        return self._whole[0].end < now - min(WHOLE_SECONDS, self._history_seconds) or self._loads > MOST_LOADS

    def _with_known_keys(self, window: Window) -> Window:
        """The same with one object for each pair of target and job, whichever window it stands in: it saves memory."""
        known = self._keys
        return replace(window, loads={known.setdefault(key, key): load for key, load in window.loads.items()})


def thinned(window: Window) -> Window:
    """The window without loads that are small beside what their target had to do, where many jobs crowd it."""
    at: defaultdict[str, list[JobLoad]] = defaultdict(list)
    for load in window.loads.values():
        at[load.target].append(load)
    if all(len(loads) <= CROWDED for loads in at.values()):
        return window
    kept: dict[tuple[str, str], JobLoad] = {}
    for target, loads in at.items():
        operations = [load.reads + load.writes + load.other_operations for load in loads]
        moved = [load.read_bytes + load.write_bytes for load in loads]
        least_operations = least_bytes = 0.0
        if len(loads) > CROWDED:
            least_operations, least_bytes = LEAST_SHARE * sum(operations), LEAST_SHARE * sum(moved)
        for load, own_operations, own_bytes in zip(loads, operations, moved, strict=True):
            if own_operations >= least_operations or (own_bytes >= least_bytes and own_bytes):
                kept[target, load.job] = load
    return replace(window, loads=kept, namespace=thinned_namespace(window.namespace, {job for _, job in kept}))


def thinned_namespace(namespace: Mapping[str, NamespaceLoad], jobs: Collection[str]) -> dict[str, NamespaceLoad]:
    """Metadata of the jobs that are kept, and of those that ask for a thousandth of all or more."""
    total = sum(load.operations for load in namespace.values())
    return {job: load for job, load in namespace.items() if job in jobs or load.operations >= 0.001 * total}
