"""The plan of a finding's policy, with the pools and the mode of each directory's scope.

A finding whose policy has no plan is reported with its advice, and tierd does nothing about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tierd.config.act import mode_allows
from tierd.config.scopes import ResolvedScopes
from tierd.config.settings import Settings
from tierd.decide.plans import Plan, joined
from tierd.model import Action, Capacity, DirectoryActivity, Finding
from tierd.policies.protocol import Situation
from tierd.policies.registry import policy_for, policy_of
from tierd.refusal import Reason, Refusal

NO_CHANGELOG = Refusal(Reason.NO_CHANGELOG, "no changelog shows where it works (does each metadata target have a "
                       "changelog user? lctl changelog_register)")


def situation_of(settings: Settings, capacity: Capacity) -> Situation:
    """What the settings and the capacity say to any plan, with the pools of the whole file system."""
    scopes = settings.resolved_scopes
    return Situation(capacity, scopes.whole.small_files_to_flash, tables=settings.tables, benefit=settings.benefit,
                     places=[place for name in settings.act.on if (place := policy_of(name).place) is not None],
                     mirroring=next((known for name in settings.act.on if (known := policy_of(name).mirroring)), None),
                     pools_of=lambda path: scopes.of(path).small_files_to_flash)


def plan_by_scope(finding: Finding, activities: Sequence[DirectoryActivity], situation: Situation,
                  scopes: ResolvedScopes) -> Plan:
    """Plan for one finding over all scopes."""
    policy = policy_for(finding)
    if finding.advice_only or policy.plan is None:
        return Plan((), ())
    if policy.by_scope and finding.aggressor and not activities:
        return Plan((), (NO_CHANGELOG.about(finding.aggressor),))
    if not policy.by_scope or not activities:
        planned = policy.plan(finding, finding.evidence, situation)
    else:
        planned = joined(policy.plan(finding, finding.evidence,
                                     replace(situation, activities=own, pools=scope.small_files_to_flash))
                         for scope, own in scopes.by_scope(activities, lambda activity: activity.directory))
    return split_by_mode(planned, scopes)


def split_by_mode(planned: Plan, scopes: ResolvedScopes) -> Plan:
    """The plan, with actions that the mode of their scope does not allow as recommendations."""
    allowed, recommended = list[Action](), list[Action]()
    for action in planned.actions:
        mode = scopes.of(action.path or action.directory).mode
        (allowed if mode_allows(mode, action.kind) else recommended).append(action)
    return Plan(tuple(allowed), planned.refusals, tuple(recommended))
