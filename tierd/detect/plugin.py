"""The interface of detectors: a name, the type of its settings, and a function from a frozen view to findings.

The function is pure: it uses only the view, keeps no state, and yields each problem once. It runs each time a window of
half a minute is complete. A finding begins after ``begin_looks`` consecutive runs that yield it, and ends after
``end_looks`` consecutive runs that do not. ``view.active`` has the keys of active findings, so that a finding can end
at a laxer threshold. Other packages name their detectors in the entry point group ``lustre_tierd.detectors``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Generic, Protocol, TypeVar

from annotated_types import Ge

from tierd.detect.profile import Profile, profiles
from tierd.model import Activities, DirectoryActivity, Facts, Finding, PoolPair, Window

GROUP = "lustre_tierd.detectors"
"""Entry point group of detectors in other packages."""


def no_activities(_: str, __: float) -> Sequence[DirectoryActivity]:
    """No activities. Used without changelogs."""
    return ()


def default_pools(_: str) -> PoolPair:
    """The pools of every path if none are configured."""
    return PoolPair("flash", "hdd")


@dataclass(frozen=True, slots=True)
class View:
    """The input of a detector."""

    windows: Sequence[Window]
    """Windows of half a minute, oldest first; at least one."""
    facts: Facts = field(default_factory=Facts)
    activities: Activities = no_activities
    active: Collection[tuple[str, str, str]] = ()
    """Keys of active findings."""
    pool_pairs: Sequence[PoolPair] = (PoolPair("flash", "hdd"),)
    """Each flash pool with its disk pool: first the pools of the whole file system, then the pools of scopes."""
    pools_of: Callable[[str], PoolPair] = default_pools
    """The pools for a path, by its scope."""
    memory: dict[float, Mapping[str, Profile]] = field(default_factory=dict, compare=False, repr=False)
    """Cache of ``profiles``, shared by all detectors."""

    @property
    def now(self) -> float:
        """End of the newest window; epoch seconds."""
        return self.windows[-1].end

    @property
    def flash(self) -> Collection[str]:
        """Full names of the flash targets of the file system and of scopes; empty if the pools are unknown."""
        return tuple(dict.fromkeys(target for pools in self.pool_pairs
                                   for target in self.facts.pools.get(pools.flash, ())))

    @property
    def flash_pool(self) -> str:
        """The flash pool of the whole file system."""
        return self.pool_pairs[0].flash

    @property
    def hdd_pool(self) -> str:
        """The disk pool of the whole file system."""
        return self.pool_pairs[0].hdd

    def recent(self, seconds: float) -> Sequence[Window]:
        """The windows of the last ``seconds``."""
        return [window for window in self.windows if window.end > self.now - seconds]

    def profiles(self, seconds: float) -> Mapping[str, Profile]:
        """Profiles of all jobs over the last ``seconds``."""
        if seconds not in self.memory:
            self.memory[seconds] = profiles(self.recent(seconds))
        return self.memory[seconds]


@dataclass(frozen=True)
class Common:
    """Settings of every detector."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    enabled: bool = True
    begin_looks: Annotated[int, Ge(1)] = 2
    """Consecutive half minutes with the problem before the finding begins."""
    end_looks: Annotated[int, Ge(1)] = 4
    """Consecutive half minutes without the problem before the finding ends."""


SettingsT = TypeVar("SettingsT", bound=Common)


@dataclass(frozen=True)
class Detector(Generic[SettingsT]):
    """One kind of finding and the function that finds it."""

    name: str
    """Kind of the findings, such as ``hot-small-files``. The settings' table is ``[detect.hot_small_files]``."""
    settings: type[SettingsT]
    detect: Callable[[View, SettingsT], Iterable[Finding]]

    @property
    def table(self) -> str:
        """Name of its table in the configuration."""
        return self.name.replace("-", "_")

    def find(self, view: View, settings: Common) -> Iterable[Finding]:
        """Findings with the given settings. Raises TypeError for settings of another detector."""
        if not isinstance(settings, self.settings):
            raise TypeError(f"{self.name} needs {self.settings.__qualname__}, not {type(settings).__qualname__}")
        return self.detect(view, settings)


class AnyDetector(Protocol):
    """A detector with any type of settings."""

    @property
    def name(self) -> str:
        """The kind of its findings."""

    @property
    def settings(self) -> type[Common]:
        """Type of the settings."""

    @property
    def table(self) -> str:
        """Name of its table in the configuration."""

    def find(self, view: View, settings: Common) -> Iterable[Finding]:
        """Findings with settings of that type."""


@dataclass(frozen=True)
class ConfiguredDetector:
    """A detector with its settings."""

    detector: AnyDetector
    settings: Common

    def __call__(self, view: View) -> Iterable[Finding]:
        """Findings; none if the detector is not enabled."""
        return self.detector.find(view, self.settings) if self.settings.enabled else ()


Key = tuple[str, str, str]


@dataclass(slots=True)
class _Streak:
    """A finding as last seen, and the number of consecutive runs that found or missed it."""

    finding: Finding
    detector: ConfiguredDetector
    seen: int = 0
    missed: int = 0
    holds: bool = False


class DetectorRunner:
    """Runs the configured detectors. Findings begin and end only after several consecutive runs."""

    def __init__(self, detectors: Iterable[ConfiguredDetector]) -> None:
        self._detectors = tuple(detectors)
        self._streaks: dict[Key, _Streak] = {}
        self.faults: dict[str, str] = {}
        """Errors of the detectors that failed in the last run. Other detectors are not affected."""

    def take_over(self, before: DetectorRunner) -> None:
        """Continue the findings of the same detectors in earlier settings."""
        detectors = {each.detector.name: each for each in self._detectors}
        self._streaks = {key: replace(streak, detector=detectors[name]) for key, streak in before._streaks.items()
                         if (name := streak.detector.detector.name) in detectors}

    @property
    def active(self) -> Collection[Key]:
        """Keys of active findings."""
        return frozenset(key for key, streak in self._streaks.items() if streak.holds)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Active findings, each as last seen."""
        return tuple(streak.finding for streak in self._streaks.values() if streak.holds)

    def run(self, view: View) -> tuple[Finding, ...]:
        """Run all detectors once. Returns the active findings."""
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

    def _found(self, detector: ConfiguredDetector, view: View) -> Iterator[Finding]:
        """Findings of one detector. An exception of a plug-in must not stop the daemon."""
        try:
            yield from detector(view)
        except Exception as error:  # noqa: BLE001 -- any error of a plug-in is reported and disables only that detector
            self.faults[detector.detector.name] = f"{type(error).__name__}: {error}"
