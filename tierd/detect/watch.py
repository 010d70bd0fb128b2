"""A finding begins when it was seen several times in a row, and ends when it was not: one odd look changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from tierd.detect.plugin import Configured, View
from tierd.model import Finding

Key = tuple[str, str, str]


@dataclass(slots=True)
class _Streak:
    """A finding as last seen, and for how many looks in a row it was seen, or was not."""

    finding: Finding
    detector: Configured
    seen: int = 0
    missed: int = 0
    holds: bool = False


class Watch:
    """The configured detectors, and what they saw before."""

    def __init__(self, detectors: Iterable[Configured]) -> None:
        self._detectors = tuple(detectors)
        self._streaks: dict[Key, _Streak] = {}
        self.faults: dict[str, str] = {}
        """Detectors that failed in the last look, and how: the others go on, and nothing is known of theirs."""

    @property
    def active(self) -> Collection[Key]:
        """What holds."""
        return frozenset(key for key, streak in self._streaks.items() if streak.holds)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What holds, each as it was seen last."""
        return tuple(streak.finding for streak in self._streaks.values() if streak.holds)

    def look(self, view: View) -> tuple[Finding, ...]:
        """What holds after one more look."""
        view = replace(view, active=self.active)
        self.faults = {}
        seen = {finding.key: (finding, detector) for detector in self._detectors
                for finding in self._found(detector, view)}
        for key, (finding, detector) in seen.items():
            streak = self._streaks.setdefault(key, _Streak(finding, detector))
            streak.finding, streak.seen, streak.missed = finding, streak.seen + 1, 0
            streak.holds = streak.holds or streak.seen >= detector.settings.begin_looks
        for key in [key for key in self._streaks if key not in seen]:
            streak = self._streaks[key]
            streak.seen, streak.missed = 0, streak.missed + 1
            if not streak.holds or streak.missed >= streak.detector.settings.end_looks:
                del self._streaks[key]
        return self.findings

    def _found(self, detector: Configured, view: View) -> Iterator[Finding]:
        """Findings of one detector. One of somebody else's that fails must not stop the daemon."""
        try:
            yield from detector(view)
        except Exception as error:  # noqa: BLE001 -- whatever a plug-in raises, it is told, and only it is blind
            self.faults[detector.detector.name] = f"{type(error).__name__}: {error}"
