"""What a detector is: a name, the type of its settings, and a function from a frozen view to findings.

The function is pure: it looks at the view and nothing else, keeps nothing between calls, and yields each trouble once.
It is asked each time a window of half a minute is complete. A finding begins only after it was yielded several times,
and ends only after it was not (``begin_looks`` and ``end_looks``, which every detector has); ``view.active`` says which
hold, for a second, laxer threshold. Packages of other people name theirs in the entry point group
``lustre_tierd.detectors``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from annotated_types import Ge

from tierd.detect.profile import Profile, profiles
from tierd.facts import Activities, Facts
from tierd.model import DirectoryActivity, Finding, Window

GROUP = "lustre_tierd.detectors"
"""Entry points of detectors that are not built in."""


def nowhere(_: str, __: float) -> Sequence[DirectoryActivity]:
    """Activities where no changelog is read."""
    return ()


@dataclass(frozen=True, slots=True)
class View:
    """What a detector may look at."""

    windows: Sequence[Window]
    """Of half a minute each, oldest first; at least one."""
    facts: Facts = field(default_factory=Facts)
    activities: Activities = nowhere
    active: Collection[tuple[str, str, str]] = ()
    """Keys of findings that hold."""
    flash_pool: str = "flash"
    hdd_pool: str = "hdd"
    """Those of the whole file system."""
    of_scopes: Sequence[tuple[str, str]] = ()
    """Further flash pools, each with the disks beside it, that scopes name."""
    memory: dict[float, Mapping[str, Profile]] = field(default_factory=dict, compare=False, repr=False)
    """What ``profiles`` has worked out: several detectors ask for the same."""

    @property
    def now(self) -> float:
        """End of the newest window; epoch seconds."""
        return self.windows[-1].end

    @property
    def flash(self) -> Collection[str]:
        """Full names of the flash targets, those of scopes among them; empty where nobody knows the pools."""
        return tuple(dict.fromkeys(target for pool, _ in self.pool_pairs for target in self.facts.pools.get(pool, ())))

    @property
    def pool_pairs(self) -> Sequence[tuple[str, str]]:
        """Each flash pool, and the disks beside it."""
        return ((self.flash_pool, self.hdd_pool),
                *(pair for pair in self.of_scopes if pair[0] != self.flash_pool))

    def recent(self, seconds: float) -> Sequence[Window]:
        """The windows of the last so many seconds."""
        return [window for window in self.windows if window.end > self.now - seconds]


    def profiles(self, seconds: float) -> Mapping[str, Profile]:
        """What each job was like in the last so many seconds."""
        if seconds not in self.memory:
            self.memory[seconds] = profiles(self.recent(seconds))
        return self.memory[seconds]


@dataclass(frozen=True)
class Common:
    """Settings every detector has."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    enabled: bool = True
    begin_looks: Annotated[int, Ge(1)] = 2
    """Half minutes in a row in which it must be seen to begin."""
    end_looks: Annotated[int, Ge(1)] = 4
    """Half minutes in a row in which it must not be seen to end."""


SettingsT = TypeVar("SettingsT", bound=Common)


@dataclass(frozen=True)
class Detector(Generic[SettingsT]):
    """One kind of finding and how it is found."""

    name: str
    """The kind of its findings: ``hot-small-files``; its table is ``[detect.hot_small_files]``."""
    settings: type[SettingsT]
    detect: Callable[[View, SettingsT], Iterable[Finding]]

    @property
    def table(self) -> str:
        """Name of its table in the configuration."""
        return self.name.replace("-", "_")


@dataclass(frozen=True)
class Configured:
    """A detector with its settings."""

    detector: Detector[Any]
    settings: Common

    def __call__(self, view: View) -> Iterable[Finding]:
        """What it finds; nothing where it is not enabled."""
        return self.detector.detect(view, self.settings) if self.settings.enabled else ()
