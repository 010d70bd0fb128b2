"""Casework over a simulated file system, told what is found; what is to be done about it, the test says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from tests.tierd.simulated import World
from tierd.config.settings import Settings
from tierd.daemon.log import FindingLog, LoopCounters
from tierd.daemon.planning import Planner
from tierd.daemon.remediation import Remediations, RemediationStore
from tierd.decide.plans import Plan
from tierd.model import Action, DirectoryActivity, Finding
from tierd.sense.own_moves import OwnMoveFilter
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
    store: RemediationStore = field(default_factory=RemediationStore)
    telling: FindingLog = field(init=False)
    casework: Remediations = field(init=False)

    def __post_init__(self) -> None:
        at, clock = self.at, VirtualClock(self.at.cluster)
        self.telling = FindingLog(at.said.append, at.journal, clock, self.settings, LoopCounters())
        echo = OwnMoveFilter((), tuple, clock.now, at.journal.was_moved)
        self.casework = Remediations(self.store, cast(Planner, self.planned), at.gate, at.journal, self.telling, echo,
                                 at.filesystem, clock, self.settings)

    def act(self, findings: Sequence[Finding]) -> None:
        """Plan for these, and set the default layouts that come of it."""
        self.casework.act(findings)
        while self.casework.set_defaults():
            pass
