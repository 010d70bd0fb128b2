"""Which policy answers which finding. A finding without one is told, with its advice, and nothing is done about it."""

from __future__ import annotations

from collections.abc import Sequence

from tierd.config import Settings
from tierd.decide import cold_to_disk, hot_files_to_flash, larger_component, small_files_to_flash
from tierd.decide.small_files_to_flash import Plan
from tierd.facts import StoredFile
from tierd.model import DirectoryActivity, Finding, Room

JUDGED = frozenset({"noisy-neighbour"})
"""Kinds with a victim whose throughput says whether an act helped. The others end when what they tell has ended."""


def plan(finding: Finding, activities: Sequence[DirectoryActivity], room: Room, stored: Sequence[StoredFile],
         suffers: bool, pools: small_files_to_flash.Settings, settings: Settings) -> Plan:
    """What to do about one finding, by the pools of its scope. ``suffers``: a neighbour is slowed on its targets."""
    if finding.advice_only:
        return Plan((), ())
    match finding.kind:
        case "noisy-neighbour":
            return small_files_to_flash.decide(finding, activities, room, pools)
        case "outgrown-component":
            return larger_component.decide(finding, activities, room, pools)
        case "hot-small-files":
            return hot_files_to_flash.decide(finding, activities, room, pools, settings.hot_files_to_flash, suffers)
        case "cold-on-flash":
            return cold_to_disk.decide(finding, stored, room, pools, settings.cold_to_disk)
    return Plan((), ())
