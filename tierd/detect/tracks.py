"""What jobs did on targets, window by window: looked up once a cycle, and gone on with in the next."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from operator import add, eq

from tierd.model import JobLoad, Window

Course = tuple[Sequence[float], Sequence[float]]
"""Bytes and operations, window by window."""
Track = tuple["array[float]", "array[float]"]
"""Bytes and operations of one job on one target, window by window."""


class Tracks:
    """What jobs did on targets, window by window. Each is looked up once, however many pairs of jobs it is in.

    ``before`` is that of the cycle before, of which what was looked up is taken over, as most windows are the same: it
    has it no more then.
    """

    def __init__(self, windows: Sequence[Window], before: Tracks | None = None) -> None:
        self.windows = windows
        self._seconds = [window.seconds for window in windows]
        self.marks = [(window.start, window.end, id(window.conditions)) for window in windows]
        """What windows are known by: one that was packed is the same here."""
        self.known: dict[tuple[str, str], Track] = {}
        self._old: dict[tuple[str, str], Track] = {}
        self._from = self._to = 0
        """Where the windows at the front stand in ``before``."""
        if before is not None and windows and self.marks[0] in before.marks:
            self._old = before.known
            self._from = before.marks.index(self.marks[0])
            self._to = self._from + sum(takewhile(bool, map(eq, self.marks, before.marks[self._from:])))
        self._loads = [window.loads for window in windows[self._to - self._from:]]
        """Of the windows that were not there before."""

    def of(self, target: str, job: str) -> Track:
        """Of one job on one target."""
        key = target, job
        known = self.known.get(key)
        if known is None:
            known = self.known[key] = self._looked_up(key)
        return known

    def _looked_up(self, key: tuple[str, str]) -> Track:
        track = self._old.pop(key, None)
        if track is None:
            track = array("d"), array("d")
            append(track, key, [window.loads for window in self.windows])
        else:
            for numbers in track:
                del numbers[self._to:], numbers[:self._from]
            append(track, key, self._loads)
        return track

    def settle(self) -> None:
        """Let go of what was taken over; nothing more is looked up."""
        self._old = {}

    def on(self, targets: Collection[str], job: str) -> Course:
        """Of one job on several targets together."""
        return self.moved(targets, job), self.operations(targets, job)

    def moved(self, targets: Collection[str], job: str) -> Sequence[float]:
        """Bytes of one job on several targets together."""
        if len(targets) == 1:
            return self.of(next(iter(targets)), job)[0]
        return together([self.of(target, job)[0] for target in targets])

    def operations(self, targets: Collection[str], job: str) -> Sequence[float]:
        """Operations of one job on several targets together."""
        if len(targets) == 1:
            return self.of(next(iter(targets)), job)[1]
        return together([self.of(target, job)[1] for target in targets])

    def rates(self, targets: Collection[str], job: str) -> list[float]:
        """Bytes per second of one job on several targets together, in the windows it was active in."""
        return [moved / seconds for moved, seconds in zip(self.moved(targets, job), self._seconds, strict=True)
                if moved]

    def learnt_rates(self, targets: Collection[str], job: str) -> list[float]:
        """The same, in the windows somebody else saw before our start."""
        if not (self.windows and self.windows[0].learnt):
            return []
        return [moved / w.seconds for moved, w in zip(self.moved(targets, job), self.windows, strict=True)
                if moved and w.learnt]


def append(track: Track, key: tuple[str, str], windows: Iterable[Mapping[tuple[str, str], JobLoad]]) -> None:
    """What a job did on a target in further windows."""
    moved, operations = track
    for loads in windows:
        load = loads.get(key)
        if load is None:
            moved.append(0.0)
            operations.append(0.0)
        else:
            moved.append(load.read_bytes + load.write_bytes)
            operations.append(load.reads + load.writes + load.other_operations)


def together(parts: Sequence[Sequence[float]]) -> Sequence[float]:
    """Sums, window by window."""
    total = parts[0]
    for part in parts[1:]:
        total = list(map(add, total, part))
    return total
