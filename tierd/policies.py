"""Applies the policy of a finding, with the pools and the mode of each directory's scope.

A finding without a policy is reported with its advice, and tierd does nothing about it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tierd.config.act import mode_allows
from tierd.config.scopes import ResolvedScopes
from tierd.config.settings import Settings
from tierd.decide import (
    cold_to_disk,
    data_on_mdt,
    directory_striping,
    hot_files_to_flash,
    larger_component,
    random_io_to_flash,
    rebalance,
    restripe,
    small_files_to_flash,
)
from tierd.decide.plans import FlashSettings, Plan
from tierd.model import (
    DATA_ON_MDT,
    Capacity,
    ColdOnFlashEvidence,
    ContentionEvidence,
    DirectoryActivity,
    FillEvidence,
    Finding,
    HotSmallFilesEvidence,
    MetadataStormEvidence,
    NoisyNeighbourEvidence,
    OutgrownComponentEvidence,
    SmallRandomIoEvidence,
    StoredFile,
    StripingEvidence,
)


def is_judged(finding: Finding) -> bool:
    """Whether the throughput of a victim shows if an act helped. Other findings close when their cause has ended."""
    return isinstance(finding.evidence, NoisyNeighbourEvidence)


def is_judged_by_itself(finding: Finding) -> bool:
    """Whether the job whose files are moved shows by its own rate if an act helped: there is no victim."""
    return isinstance(finding.evidence,
                      (HotSmallFilesEvidence, SmallRandomIoEvidence, ContentionEvidence, StripingEvidence))


def needs_its_job(finding: Finding) -> bool:
    """Whether moves for the finding pay off only while its aggressor is at work: they gather the files that it reads.

    A finding about the layout of files counts their next use, often by another run. Those about space have no job.
    """
    return isinstance(finding.evidence, (NoisyNeighbourEvidence, HotSmallFilesEvidence))


def waits_for_close(finding: Finding) -> bool:
    """Whether the files of the finding are open while it begins, so that it is planned again until they are closed."""
    return isinstance(finding.evidence, (SmallRandomIoEvidence, ContentionEvidence, StripingEvidence))


def is_measured_in_operations(finding: Finding) -> bool:
    """Whether the rate of the job is that of its metadata operations: data on the MDT shows in no object target."""
    return isinstance(finding.evidence, HotSmallFilesEvidence) or (
        isinstance(finding.evidence, StripingEvidence) and finding.evidence.files_created is not None)


def plan_in_scope(
    finding: Finding,
    activities: Sequence[DirectoryActivity],
    capacity: Capacity,
    stored: Sequence[StoredFile],
    victim_slowed: bool,
    pools: FlashSettings,
    settings: Settings,
) -> Plan:
    """Plan for one finding in one scope. ``victim_slowed``: a neighbour is slowed on the finding's targets."""
    if finding.advice_only:
        return Plan((), ())
    rules = data_on_mdt.Rules(DATA_ON_MDT in settings.act.on, settings.data_on_mdt, settings.benefit)
    match finding.evidence:
        case NoisyNeighbourEvidence() as evidence:
            return small_files_to_flash.decide(finding, evidence, activities, capacity, pools, rules)
        case OutgrownComponentEvidence() as evidence:
            return larger_component.decide(finding, evidence, activities, capacity, pools)
        case HotSmallFilesEvidence() as evidence:
            return hot_files_to_flash.decide(finding, evidence, activities, capacity, pools,
                                             settings.hot_files_to_flash, victim_slowed, rules)
        case ColdOnFlashEvidence() as evidence:
            return cold_to_disk.decide(finding, evidence, stored, capacity, pools, settings.cold_to_disk)
        case SmallRandomIoEvidence() as evidence:
            return random_io_to_flash.decide(finding, evidence, activities, capacity, pools,
                                             settings.random_io_to_flash)
        case ContentionEvidence() as evidence:
            return restripe.decide_shared(finding, evidence, activities, capacity, pools, settings.restripe)
        case StripingEvidence() as evidence:
            return restripe.decide_striping(finding, evidence, activities, capacity, pools, settings.restripe)
    return Plan((), ())


def plan_by_scope(finding: Finding, activities: Sequence[DirectoryActivity], capacity: Capacity, settings: Settings,
                  stored: Sequence[StoredFile] = (), victim_slowed: bool = False,
                  left_alone: rebalance.LeftAlone = rebalance.never_moved) -> Plan:
    """Plan for one finding over all scopes. ``victim_slowed``: a neighbour is slowed on the finding's targets.

    ``left_alone``: a file was moved, or tried, lately.
    """
    scopes = settings.resolved_scopes
    if isinstance(finding.evidence, FillEvidence):
        planned = rebalance.decide(finding, finding.evidence, stored, capacity, settings.rebalance, victim_slowed,
                                   left_alone)
    elif isinstance(finding.evidence, MetadataStormEvidence):
        planned = directory_striping.decide(finding, finding.evidence, capacity, settings.directory_striping)
    elif isinstance(finding.evidence, ColdOnFlashEvidence):
        planned = plan_for_stored_files(finding, finding.evidence, capacity, settings, stored)
    elif not activities:
        planned = plan_in_scope(finding, (), capacity, stored, victim_slowed, scopes.whole.small_files_to_flash,
                                settings)
    else:
        planned = joined(plan_in_scope(finding, mine, capacity, stored, victim_slowed, scope.small_files_to_flash,
                                       settings)
                         for scope, mine in scopes.by_scope(activities, lambda activity: activity.directory))
    return split_by_mode(planned, scopes)


def plan_for_stored_files(
    finding: Finding, evidence: ColdOnFlashEvidence, capacity: Capacity, settings: Settings,
    stored: Sequence[StoredFile],
) -> Plan:
    """Plan for files on the finding's pool: each goes to the disk pool of its scope.

    A file in a scope with another flash pool stays: a person put it there.
    """
    by_pools: defaultdict[FlashSettings, list[StoredFile]] = defaultdict(list)
    for file in stored:
        pools = settings.resolved_scopes.of(file.path).small_files_to_flash
        if finding.subject in file.pools and pools.flash_pool == finding.subject:
            by_pools[pools].append(file)
    plans: list[Plan] = []
    left = evidence.bytes_to_free
    for pools, files in by_pools.items():
        share = replace(finding, evidence=replace(evidence, bytes_to_free=left))
        planned = plan_in_scope(share, (), capacity, files, False, pools, settings)
        left -= sum(action.size_bytes for action in planned.actions)
        plans.append(planned)
    return joined(plans)


def joined(plans: Iterable[Plan]) -> Plan:
    """One plan with the actions and refusals of several."""
    every = tuple(plans)
    return Plan(tuple(action for plan in every for action in plan.actions),
                tuple(refusal for plan in every for refusal in plan.refusals))


def split_by_mode(planned: Plan, scopes: ResolvedScopes) -> Plan:
    """The plan, with actions that the mode of their scope does not allow as recommendations."""
    allowed = [mode_allows(scopes.of(a.path or a.directory).mode, a.kind) for a in planned.actions]
    return Plan(tuple(a for a, yes in zip(planned.actions, allowed, strict=True) if yes), planned.refusals,
                tuple(a for a, yes in zip(planned.actions, allowed, strict=True) if not yes))
