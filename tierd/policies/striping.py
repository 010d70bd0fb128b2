"""The policy of this name; its parts are in detect and decide."""

from __future__ import annotations

from dataclasses import replace

from tierd.decide import restripe
from tierd.decide.plans import Plan
from tierd.detect.striping import DETECTOR
from tierd.model import Finding, StripingEvidence
from tierd.policies.protocol import JudgedBy, Situation


def plan(finding: Finding, evidence: StripingEvidence, situation: Situation) -> Plan:
    """What to do about a finding."""
    return restripe.decide_striping(finding, evidence, situation.activities, situation.capacity, situation.pools,
                                    situation.tables.of(restripe.Settings))


POLICY = replace(DETECTOR, evidence=StripingEvidence, plan=plan, tables={"restripe": restripe.Settings},
                 judged_by=JudgedBy.ITSELF, waits_for_close=True, restores_layouts=True)
