"""Remediations over a simulated file system. The test gives the findings and what to do about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from tests.tierd.simulated import World
from tierd.config.settings import Settings
from tierd.daemon.log import FindingLog
from tierd.daemon.node import DaemonParts
from tierd.daemon.planning import Planner
from tierd.daemon.remediation import Remediations, RemediationStore
from tierd.decide.plans import Plan
from tierd.model import Action, DirectoryActivity, Finding
from tierd.simulation.world import VirtualClock


@dataclass
class Planned:
    """A planner that returns given actions, and counts its plans."""

    actions: Callable[[Finding], tuple[Action, ...]]
    plans: int = 0

    def for_finding(self, finding: Finding) -> Plan:
        self.plans += 1
        return Plan(self.actions(finding), ())

    def activities(self, _: Finding) -> Sequence[DirectoryActivity]:
        return ()

    def forget(self) -> None:
        pass


@dataclass
class RemediationWorld:
    """Remediations with their store, log and gate."""

    at: World
    planned: Planned
    settings: Settings = field(default_factory=Settings)
    store: RemediationStore = field(default_factory=RemediationStore)
    parts: DaemonParts = field(init=False)
    finding_log: FindingLog = field(init=False)
    remediations: Remediations = field(init=False)

    def __post_init__(self) -> None:
        at = self.at
        self.parts = replace(at.daemon.parts, settings=self.settings)
        self.finding_log = FindingLog(at.journal, VirtualClock(at.cluster))
        self.remediations = Remediations(self.parts, self.store, cast(Planner, self.planned), self.finding_log)

    def act(self, findings: Sequence[Finding]) -> None:
        """Plan for these findings, and set the default layouts of the plans."""
        self.remediations.act(findings)
        while self.remediations.set_defaults():
            pass
