"""The policy of this name; its parts are in detect and decide."""

from __future__ import annotations

from dataclasses import replace

from tierd.decide import directory_striping
from tierd.decide.plans import Plan
from tierd.detect.metadata_storm import DETECTOR, Settings
from tierd.model import Facts, Finding, MetadataStormEvidence
from tierd.policies.protocol import DefaultJudge, DefaultVerdict, Situation, Tables
from tierd.verify.directory_striping import judge, rate_below


def plan(finding: Finding, evidence: MetadataStormEvidence, situation: Situation) -> Plan:
    """What to do about a finding."""
    return directory_striping.decide(finding, evidence, situation.capacity,
                                     situation.tables.of(directory_striping.Settings))


def judge_seconds(tables: Tables) -> float:
    """Time after which the act is judged."""
    return tables.of(directory_striping.Settings).judge_seconds


def verdict(place: str, evidence: MetadataStormEvidence, facts: Facts, tables: Tables) -> DefaultVerdict:
    """The verdict on the default striping of a directory."""
    after = rate_below(place, facts.directories, facts.directory_seconds)
    found = judge(evidence.parent_operations_per_second, after, tables.of(directory_striping.Settings))
    return DefaultVerdict(found.verdict, found.sentence)


def busy_directory(settings: Settings) -> float:
    """Operations per second from which placements are read."""
    return settings.leave


POLICY = replace(DETECTOR, evidence=MetadataStormEvidence, plan=plan, by_scope=False,
                 tables={"directory_striping": directory_striping.Settings},
                 default_judge=DefaultJudge(judge_seconds, verdict), busy_directory=busy_directory)
