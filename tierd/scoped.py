"""Plans over scopes: each directory by the settings of its own scope, and what the mode there allows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tierd.config import Settings
from tierd.decide import small_files_to_flash
from tierd.decide.small_files_to_flash import Plan
from tierd.model import DirectoryActivity, Finding, Room
from tierd.scopes import Scope, may


def decide(finding: Finding, activities: Sequence[DirectoryActivity], room: Room, settings: Settings) -> Plan:
    """One plan made of the plans for each scope."""
    by_scope: defaultdict[str, list[DirectoryActivity]] = defaultdict(list)
    scopes: dict[str, Scope] = {}
    for activity in activities:
        scope = settings.scope_of(activity.directory)
        scopes[scope.path] = scope
        by_scope[scope.path].append(activity)
    if not activities:
        return small_files_to_flash.decide(finding, (), room, settings.small_files_to_flash)
    plans = [(scopes[path].mode, small_files_to_flash.decide(finding, mine, room, scopes[path].small_files_to_flash))
             for path, mine in by_scope.items()]
    return Plan(
        tuple(a for mode, plan in plans for a in plan.actions if may(mode, a.kind)),
        tuple(refusal for _, plan in plans for refusal in plan.refusals),
        tuple(a for mode, plan in plans for a in plan.actions if not may(mode, a.kind)),
    )
