"""What a detector is: a name, the type of its settings, and a function from a frozen view to findings.

The function is pure: it looks at the view and nothing else, keeps nothing between calls, and yields each trouble once.
It is called every cycle. A finding begins only after it was yielded in several cycles, and ends only after it was not
(``begin_cycles`` and ``end_cycles``, which every detector has); ``view.active`` says which hold, for a second, laxer
threshold. Packages of other people name theirs in the entry point group ``lustre_tierd.detectors``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from annotated_types import Ge

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
    """Oldest first; at least one."""
    facts: Facts = field(default_factory=Facts)
    activities: Activities = nowhere
    active: Collection[tuple[str, str, str]] = ()
    """Keys of findings that hold."""
    flash_pool: str = "flash"
    hdd_pool: str = "hdd"

    @property
    def now(self) -> float:
        """End of the newest window; epoch seconds."""
        return self.windows[-1].end

    @property
    def flash(self) -> Collection[str]:
        """Full names of the flash targets; empty where nobody knows the pools."""
        return self.facts.pools.get(self.flash_pool, ())

    def recent(self, seconds: float) -> Sequence[Window]:
        """The windows of the last so many seconds."""
        return [window for window in self.windows if window.end > self.now - seconds]


@dataclass(frozen=True)
class Common:
    """Settings every detector has."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    enabled: bool = True
    begin_cycles: Annotated[int, Ge(1)] = 3
    """Cycles in a row in which it must be seen to begin."""
    end_cycles: Annotated[int, Ge(1)] = 6
    """Cycles in a row in which it must not be seen to end."""


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
