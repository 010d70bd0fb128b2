"""Plans over scopes: each directory by the settings of its own scope, and what the mode there allows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from tierd.config import Settings
from tierd.config.scopes import Scope, may
from tierd.decide.small_files_to_flash import Plan
from tierd.decide.small_files_to_flash import Settings as Pools
from tierd.facts import StoredFile
from tierd.model import DirectoryActivity, Finding, Room
from tierd.policies import plan


def decide(finding: Finding, activities: Sequence[DirectoryActivity], room: Room, settings: Settings,
           stored: Sequence[StoredFile] = (), suffers: bool = False) -> Plan:
    """One plan made of the plans for each scope. ``suffers``: a neighbour is being slowed on the finding's targets."""
    by_scope: defaultdict[str, list[DirectoryActivity]] = defaultdict(list)
    scopes: dict[str, Scope] = {}
    for activity in activities:
        scope = settings.scope_of(activity.directory)
        scopes[scope.path] = scope
        by_scope[scope.path].append(activity)
    if stored_only(finding):
        return of_stored(finding, room, settings, stored)
    if not activities:
        whole = plan(finding, activities, room, stored, suffers, settings.small_files_to_flash, settings)
        return allowed(whole, settings)
    plans = [(scopes[path].mode,
              plan(finding, mine, room, stored, suffers, scopes[path].small_files_to_flash, settings))
             for path, mine in by_scope.items()]
    return Plan(
        tuple(a for mode, planned in plans for a in planned.actions if may(mode, a.kind)),
        tuple(refusal for _, planned in plans for refusal in planned.refusals),
        tuple(a for mode, planned in plans for a in planned.actions if not may(mode, a.kind)),
    )


def of_stored(finding: Finding, room: Room, settings: Settings, stored: Sequence[StoredFile]) -> Plan:
    """A plan for files that lie on the pool of the finding: each goes to the disks of its scope.

    A file in a scope with another flash pool was put there by a person: it stays.
    """
    by_disks: defaultdict[Pools, list[StoredFile]] = defaultdict(list)
    for file in stored:
        pools = settings.scope_of(file.path).small_files_to_flash
        if finding.subject in file.pools and pools.flash_pool == finding.subject:
            by_disks[pools].append(file)
    plans: list[Plan] = []
    left = finding.evidence["bytes_to_free"]
    for pools, files in by_disks.items():
        share = replace(finding, evidence={**finding.evidence, "bytes_to_free": left})
        planned = plan(share, (), room, files, False, pools, settings)
        left -= sum(action.size_bytes for action in planned.actions)
        plans.append(planned)
    return allowed(Plan(tuple(action for each in plans for action in each.actions),
                        tuple(refusal for each in plans for refusal in each.refusals)), settings)


def stored_only(finding: Finding) -> bool:
    """Whether the finding is about files that lie somewhere, not about what a job does."""
    return finding.kind == "cold-on-flash"


def allowed(planned: Plan, settings: Settings) -> Plan:
    """A plan for the whole file system, each step by the mode of the scope its directory is in."""
    by_itself = [may(settings.scope_of(a.directory).mode, a.kind) for a in planned.actions]
    return Plan(tuple(a for a, yes in zip(planned.actions, by_itself, strict=True) if yes), planned.refusals,
                tuple(a for a, yes in zip(planned.actions, by_itself, strict=True) if not yes))
