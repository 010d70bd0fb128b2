"""Casework over a simulated file system, told what is found; what is to be done about it, the test says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from tests.tierd.simulated import World
from tierd.config import Settings
from tierd.cycle.cases import Case
from tierd.cycle.casework import Casework
from tierd.cycle.planning import Planning
from tierd.cycle.tally import Tally
from tierd.cycle.telling import Key, Telling
from tierd.decide.small_files_to_flash import Plan
from tierd.model import Action, DirectoryActivity, Finding
from tierd.sense.echo import Echo
from tierd.simulation.world import VirtualClock


@dataclass
class Planned:
    """Plans what it is told to, and counts how often it was asked."""

    actions: Callable[[Finding], tuple[Action, ...]]
    asked: int = 0

    def for_finding(self, finding: Finding) -> Plan:
        self.asked += 1
        return Plan(self.actions(finding), ())

    def activities(self, _: Finding) -> Sequence[DirectoryActivity]:
        return ()


@dataclass
class Desk:
    """Casework, and what is around it."""

    at: World
    planned: Planned
    settings: Settings = field(default_factory=Settings)
    cases: dict[Key, Case] = field(default_factory=dict)
    telling: Telling = field(init=False)
    casework: Casework = field(init=False)

    def __post_init__(self) -> None:
        at, clock = self.at, VirtualClock(self.at.cluster)
        self.telling = Telling(at.said.append, at.journal, clock, self.settings, Tally())
        echo = Echo((), tuple, clock.now, at.journal.was_moved)
        self.casework = Casework(self.cases, cast(Planning, self.planned), at.gate, at.journal, self.telling, echo,
                                 at.filesystem, clock, self.settings)

    def act(self, findings: Sequence[Finding]) -> None:
        """Plan for these, and set the default layouts that come of it."""
        self.casework.act(findings)
        while self.casework.set_defaults():
            pass
