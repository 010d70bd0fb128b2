"""The policy of this name; its parts are in detect and decide."""

from __future__ import annotations

from dataclasses import replace

from tierd.decide import larger_component
from tierd.decide.plans import Plan
from tierd.detect.outgrown_component import DETECTOR
from tierd.model import Finding, OutgrownComponentEvidence
from tierd.policies.protocol import Situation


def plan(finding: Finding, evidence: OutgrownComponentEvidence, situation: Situation) -> Plan:
    """What to do about a finding."""
    return larger_component.decide(finding, evidence, situation.activities, situation.capacity, situation.pools)


POLICY = replace(DETECTOR, evidence=OutgrownComponentEvidence, plan=plan, on_by_default=True)
