"""The policy of this name; its parts are in detect and decide."""

from __future__ import annotations

from dataclasses import replace

from tierd.decide import random_io_to_flash
from tierd.decide.plans import Plan
from tierd.detect.small_random_io import DETECTOR
from tierd.model import Finding, SmallRandomIoEvidence
from tierd.policies.protocol import JudgedBy, Situation


def plan(finding: Finding, evidence: SmallRandomIoEvidence, situation: Situation) -> Plan:
    """What to do about a finding."""
    return random_io_to_flash.decide(finding, evidence, situation.activities, situation.capacity, situation.pools,
                                     situation.tables.of(random_io_to_flash.Settings))


POLICY = replace(DETECTOR, evidence=SmallRandomIoEvidence, plan=plan,
                 tables={"random_io_to_flash": random_io_to_flash.Settings}, judged_by=JudgedBy.ITSELF,
                 waits_for_close=True)
