"""What each job got in a window on all targets together, of bytes and of metadata operations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from tierd.model import Window


class Totals:
    """What jobs did in a window on all targets and metadata targets: summed once, however many acts it judges."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Window, Mapping[str, float], Mapping[str, float]]] = {}
        self._asked: set[int] = set()

    def moved(self, window: Window) -> Mapping[str, float]:
        """Bytes per second by job."""
        return self._of(window)[1]

    def asked(self, window: Window) -> Mapping[str, float]:
        """Metadata operations per second by job."""
        return self._of(window)[2]

    def settle(self) -> None:
        """Let go of windows nobody has asked for since the last time: most acts are judged within two minutes."""
        self._known = {key: known for key, known in self._known.items() if key in self._asked}
        self._asked = set()

    def _of(self, window: Window) -> tuple[Window, Mapping[str, float], Mapping[str, float]]:
        self._asked.add(id(window))
        known = self._known.get(id(window))
        if known is None:  # the window is held with it, so that no other gets its id
            known = self._known[id(window)] = window, moved(window), asked(window)
        return known


def throughput(window: Window, job: str) -> float:
    """Bytes per second of a job in a window, on all targets."""
    return sum(window.loads[key].moved_bytes for key in window.loads if key[1] == job) / window.seconds


def moved(window: Window) -> dict[str, float]:
    """Bytes per second by job."""
    found: defaultdict[str, float] = defaultdict(float)
    for (_, job), load in window.loads.items():
        found[job] += load.read_bytes + load.write_bytes
    return {job: moved_bytes / window.seconds for job, moved_bytes in found.items()}


def asked(window: Window) -> dict[str, float]:
    """Metadata operations per second by job."""
    return {job: load.operations / window.seconds for job, load in window.namespace.items()}
