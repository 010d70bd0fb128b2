"""The policy of this name; its parts are in detect and decide."""

from __future__ import annotations

from dataclasses import replace

from tierd.decide import restripe
from tierd.decide.plans import Plan
from tierd.detect.shared_file_contention import DETECTOR
from tierd.model import ContentionEvidence, Finding
from tierd.policies.protocol import JudgedBy, Situation


def plan(finding: Finding, evidence: ContentionEvidence, situation: Situation) -> Plan:
    """What to do about a finding."""
    return restripe.decide_shared(finding, evidence, situation.activities, situation.capacity, situation.pools,
                                  situation.tables.of(restripe.Settings))


POLICY = replace(DETECTOR, evidence=ContentionEvidence, plan=plan, tables={"restripe": restripe.Settings},
                 judged_by=JudgedBy.ITSELF, waits_for_close=True, restores_layouts=True)
