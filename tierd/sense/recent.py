"""What jobs did in directories lately: differences of tallies that only ever grow."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence

from tierd.model import DirectoryActivity

Key = tuple[str, str]
Counts = tuple[int, int, int, int, int]
"""Creates, opens, closes, unlinks, outgrown."""
WIDTH = 5
LEAST_PLACES = 1000
"""So many, and twice as many as there are tallies, have a place before those that are gone lose theirs."""


class RecentDirectories:
    """Keeps a snapshot of the tallies now and then, and tells what came since the oldest of them.

    Each tally has its place in all snapshots, which are numbers one after the other: ten snapshots of ten thousand
    tallies take as much memory as one would in mappings.
    """

    def __init__(self, span_seconds: float = 600.0, step_seconds: float = 60.0) -> None:
        self._span_seconds = span_seconds
        self._step_seconds = step_seconds
        self._places: dict[Key, int] = {}
        self._snapshots: deque[tuple[float, array[int]]] = deque()

    def since_then(self, activities: Sequence[DirectoryActivity], now: float,
                   ) -> tuple[tuple[DirectoryActivity, ...], float]:
        """What was done since the oldest snapshot, and how many seconds that is; nothing at the first look."""
        if not self._snapshots or now - self._snapshots[-1][0] >= self._step_seconds:
            self._snapshots.append((now, self._snapshot(activities)))
        while len(self._snapshots) > 1 and self._snapshots[0][0] < now - self._span_seconds:
            self._snapshots.popleft()
        begun, before = self._snapshots[0]
        found = []
        for activity in activities:
            done = _difference(self._counts(before, activity), _counts(activity))
            if any(done):
                creates, opens, closes, unlinks, outgrown = done
                found.append(DirectoryActivity(activity.job, activity.directory, creates, opens, closes, unlinks,
                                               outgrown))
        return tuple(found), now - begun

    def _snapshot(self, activities: Sequence[DirectoryActivity]) -> array[int]:
        places = self._places
        if len(places) > 2 * len(activities) + LEAST_PLACES:
            self._forget_all_but(activities)
            places = self._places
        for activity in activities:
            places.setdefault((activity.job, activity.directory), len(places))
        taken = array("Q", bytes(8 * WIDTH * len(places)))
        for activity in activities:
            at = WIDTH * places[activity.job, activity.directory]
            taken[at:at + WIDTH] = array("Q", _counts(activity))
        return taken

    def _forget_all_but(self, activities: Sequence[DirectoryActivity]) -> None:
        """Give new places to the tallies there are, and none to others."""
        there = [(activity.job, activity.directory) for activity in activities]
        kept = [key for key in dict.fromkeys(there) if key in self._places]
        self._snapshots = deque(
            (time, array("Q", [n for key in kept for n in _at(snapshot, self._places[key])]))
            for time, snapshot in self._snapshots)
        self._places = {key: place for place, key in enumerate(kept)}

    def _counts(self, snapshot: array[int], activity: DirectoryActivity) -> Sequence[int]:
        place = self._places.get((activity.job, activity.directory))
        return NONE if place is None else _at(snapshot, place)


NONE = array("Q", bytes(8 * WIDTH))


def _at(snapshot: array[int], place: int) -> array[int]:
    """Counts of a place; of one that there was none of then, nothing."""
    return snapshot[WIDTH * place:WIDTH * place + WIDTH] or NONE


def _counts(activity: DirectoryActivity) -> Counts:
    return activity.creates, activity.opens, activity.closes, activity.unlinks, activity.outgrown


def _difference(before: Sequence[int], now: Sequence[int]) -> tuple[int, ...]:
    """What came on top; a tally that fell out of the table and came again began at zero."""
    if any(n < b for b, n in zip(before, now, strict=True)):
        return tuple(now)
    return tuple(n - b for b, n in zip(before, now, strict=True))
