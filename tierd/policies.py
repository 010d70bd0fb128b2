"""Which policy answers which finding, and the plan over scopes: each directory by the settings and the mode of its
scope.

A finding without a policy is reported with its advice, and nothing is done about it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from tierd.config.act import mode_allows
from tierd.config.scopes import Scope
from tierd.config.settings import Settings
from tierd.decide import cold_to_disk, hot_files_to_flash, larger_component, plans, small_files_to_flash
from tierd.decide.plans import FlashSettings as Pools
from tierd.decide.plans import Plan
from tierd.model import (
    Capacity,
    ColdOnFlashEvidence,
    DirectoryActivity,
    Finding,
    HotSmallFilesEvidence,
    NoisyNeighbourEvidence,
    OutgrownComponentEvidence,
    StoredFile,
)


def is_judged(finding: Finding) -> bool:
    """Whether the throughput of a victim shows if an act helped. Other findings close when their cause has ended."""
    return isinstance(finding.evidence, NoisyNeighbourEvidence)


def plan_in_scope(
    finding: Finding,
    activities: Sequence[DirectoryActivity],
    capacity: Capacity,
    stored: Sequence[StoredFile],
    suffers: bool,
    pools: plans.FlashSettings,
    settings: Settings,
) -> Plan:
    """What to do about one finding, by the pools of its scope. ``suffers``: a neighbour is slowed on its targets."""
    if finding.advice_only:
        return Plan((), ())
    match finding.evidence:
        case NoisyNeighbourEvidence() as evidence:
            return small_files_to_flash.decide(finding, evidence, activities, capacity, pools)
        case OutgrownComponentEvidence() as evidence:
            return larger_component.decide(finding, evidence, activities, capacity, pools)
        case HotSmallFilesEvidence() as evidence:
            return hot_files_to_flash.decide(finding, evidence, activities, capacity, pools,
                                             settings.hot_files_to_flash, suffers)
        case ColdOnFlashEvidence() as evidence:
            return cold_to_disk.decide(finding, evidence, stored, capacity, pools, settings.cold_to_disk)
    return Plan((), ())


def plan_by_scope(finding: Finding, activities: Sequence[DirectoryActivity], capacity: Capacity, settings: Settings,
           stored: Sequence[StoredFile] = (), suffers: bool = False) -> Plan:
    """One plan made of the plans for each scope. ``suffers``: a neighbour is being slowed on the finding's targets."""
    by_scope: defaultdict[str, list[DirectoryActivity]] = defaultdict(list)
    scopes: dict[str, Scope] = {}
    for activity in activities:
        scope = settings.scope_of(activity.directory)
        scopes[scope.path] = scope
        by_scope[scope.path].append(activity)
    if isinstance(finding.evidence, ColdOnFlashEvidence):
        return plan_for_stored_files(finding, finding.evidence, capacity, settings, stored)
    if not activities:
        whole = plan_in_scope(finding, activities, capacity, stored, suffers, settings.small_files_to_flash, settings)
        return split_by_mode(whole, settings)
    plans = [(scopes[path].mode,
              plan_in_scope(finding, mine, capacity, stored, suffers, scopes[path].small_files_to_flash, settings))
             for path, mine in by_scope.items()]
    return Plan(
        tuple(a for mode, planned in plans for a in planned.actions if mode_allows(mode, a.kind)),
        tuple(refusal for _, planned in plans for refusal in planned.refusals),
        tuple(a for mode, planned in plans for a in planned.actions if not mode_allows(mode, a.kind)),
    )


def plan_for_stored_files(
    finding: Finding, evidence: ColdOnFlashEvidence, capacity: Capacity, settings: Settings,
    stored: Sequence[StoredFile],
) -> Plan:
    """A plan for files that lie on the pool of the finding: each goes to the disks of its scope.

    A file in a scope with another flash pool was put there by a person: it stays.
    """
    by_disks: defaultdict[Pools, list[StoredFile]] = defaultdict(list)
    for file in stored:
        pools = settings.scope_of(file.path).small_files_to_flash
        if finding.subject in file.pools and pools.flash_pool == finding.subject:
            by_disks[pools].append(file)
    plans: list[Plan] = []
    left = evidence.bytes_to_free
    for pools, files in by_disks.items():
        share = replace(finding, evidence=replace(evidence, bytes_to_free=left))
        planned = plan_in_scope(share, (), capacity, files, False, pools, settings)
        left -= sum(action.size_bytes for action in planned.actions)
        plans.append(planned)
    return split_by_mode(Plan(tuple(action for each in plans for action in each.actions),
                        tuple(refusal for each in plans for refusal in each.refusals)), settings)


def split_by_mode(planned: Plan, settings: Settings) -> Plan:
    """A plan for the whole file system, each step by the mode of the scope its directory is in."""
    by_itself = [mode_allows(settings.scope_of(a.directory).mode, a.kind) for a in planned.actions]
    return Plan(tuple(a for a, yes in zip(planned.actions, by_itself, strict=True) if yes), planned.refusals,
                tuple(a for a, yes in zip(planned.actions, by_itself, strict=True) if not yes))
