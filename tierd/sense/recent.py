"""What jobs did in directories lately: differences of tallies that only ever grow."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tierd.model import DirectoryActivity

Key = tuple[str, str]
Counts = tuple[int, int, int, int, int]
"""Creates, opens, closes, unlinks, outgrown."""
NONE: Counts = (0, 0, 0, 0, 0)


class RecentDirectories:
    """Keeps a snapshot of the tallies now and then, and tells what came since the oldest of them."""

    def __init__(self, span_seconds: float = 600.0, step_seconds: float = 60.0) -> None:
        self._span_seconds = span_seconds
        self._step_seconds = step_seconds
        self._snapshots: deque[tuple[float, dict[Key, Counts]]] = deque()

    def since_then(self, activities: Sequence[DirectoryActivity], now: float,
                   ) -> tuple[tuple[DirectoryActivity, ...], float]:
        """What was done since the oldest snapshot, and how many seconds that is; nothing at the first look."""
        counts = {(a.job, a.directory): (a.creates, a.opens, a.closes, a.unlinks, a.outgrown)
                  for a in activities}
        if not self._snapshots or now - self._snapshots[-1][0] >= self._step_seconds:
            self._snapshots.append((now, counts))
        while len(self._snapshots) > 1 and self._snapshots[0][0] < now - self._span_seconds:
            self._snapshots.popleft()
        begun, before = self._snapshots[0]
        found = []
        for (job, directory), count in counts.items():
            done = _difference(before.get((job, directory), NONE), count)
            if any(done):
                creates, opens, closes, unlinks, outgrown = done
                found.append(DirectoryActivity(job, directory, creates, opens, closes, unlinks, outgrown))
        return tuple(found), now - begun


def _difference(before: Counts, now: Counts) -> tuple[int, ...]:
    """What came on top; a tally that fell out of the table and came again began at zero."""
    if any(n < b for b, n in zip(before, now, strict=True)):
        return now
    return tuple(n - b for b, n in zip(before, now, strict=True))
