"""Plans over scopes: each directory by the settings of its own scope, and what the mode there allows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tierd.config import Settings
from tierd.config.scopes import Scope, may
from tierd.decide.small_files_to_flash import Plan
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
    if stored_only(finding) or not activities:
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


def stored_only(finding: Finding) -> bool:
    """Whether the finding is about files that lie somewhere, not about what a job does."""
    return finding.kind == "cold-on-flash"


def allowed(planned: Plan, settings: Settings) -> Plan:
    """A plan for the whole file system, each step by the mode of the scope its directory is in."""
    by_itself = [may(settings.scope_of(a.directory).mode, a.kind) for a in planned.actions]
    return Plan(tuple(a for a, yes in zip(planned.actions, by_itself, strict=True) if yes), planned.refusals,
                tuple(a for a, yes in zip(planned.actions, by_itself, strict=True) if not yes))
