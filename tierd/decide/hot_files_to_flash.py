"""Small files that are read again and again move to flash, those first that save most disk time for each byte of it.

A directory that still gets new ones gets a default layout first: what is made on flash need not be moved.

What is saved: each read that would have gone to the disks, over the time the job may be expected to go on. What it
costs: the file is read from these disks once more and rewritten; where a neighbour suffers on them already that weighs
more. Only what saves several times its cost is moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt

from tierd.decide import data_on_mdt, sizing
from tierd.decide.small_files_to_flash import UNHEARD_OF, Plan, covers, flash_first, reserved
from tierd.decide.small_files_to_flash import Settings as Pools
from tierd.model import Action, Candidate, DirectoryActivity, Finding, Room
from tierd.reasons import Reason, Refusal


@dataclass(frozen=True)
class Settings:
    """What a move must be worth."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    benefit_factor: Annotated[float, Ge(1)] = 3.0
    """Disk time saved, for each second of disk time the move costs."""
    horizon_seconds: Annotated[float, Gt(0)] = 3600.0
    """How long the job is expected to go on reading as it does."""
    disk_read_usec: Annotated[float, Gt(0)] = 8000.0
    """A small read from a disk, where job statistics do not tell: a seek."""
    flash_read_usec: Annotated[float, Gt(0)] = 500.0
    """The same from flash."""
    disk_bytes_per_second: Annotated[float, Gt(0)] = 100e6
    """What a disk target gives in one piece, while a file is copied."""
    suffering_weight: Annotated[float, Ge(1)] = 3.0
    """Weight of the cost where a neighbour is being slowed on the same targets."""
    most_moves: Annotated[int, Ge(0)] = 500
    """Files in one plan; the next may plan more."""
    data_on_mdt: data_on_mdt.Settings = field(default_factory=data_on_mdt.Settings)


def decide(finding: Finding, activities: Sequence[DirectoryActivity], room: Room, pools: Pools, settings: Settings,
           suffers: bool = False) -> Plan:
    """Moves of the files that are worth it, the best first, while the pool has room."""
    if not room.pools.get(pools.flash_pool) or not room.pools.get(pools.hdd_pool):
        return Plan((), (Refusal(Reason.NO_POOL, f"pool {pools.flash_pool!r} or {pools.hdd_pool!r} does not exist or "
                                 "has no targets"),))
    defaults: list[Action] = []
    moves: list[Action] = []
    refusals: list[Refusal] = []
    left = room.avail_bytes.get(pools.flash_pool, 0) - reserved(room, pools)
    opens = sum(c.opens for a in activities for c in a.candidates) or 1
    for activity in activities:
        if activity.directory not in finding.directories:
            continue
        size = sizing.component(activity.sizes, 0.0, 0, pools.sizing)
        if not size.component_bytes:
            refusals.append(Refusal(size.refused or Reason.SIZES_UNKNOWN, size.reason).of(activity.directory))
            continue
        layout = flash_first(size.component_bytes, room.default_layouts.get(activity.directory), pools)
        if activity.creates and not covers(room.default_layouts.get(activity.directory), size.component_bytes,
                                           pools.flash_pool) and activity.directory in room.default_layouts:
            made = data_on_mdt.instead(layout, finding.evidence["read_operations_share"], room, settings.data_on_mdt)
            defaults.append(Action(
                "set-default-layout", made, f"{finding.aggressor} reads again and again what is made here: new files "
                f"then need not be moved; {size.reason}", finding.key, directory=activity.directory))
        per_open = finding.evidence["opens_per_second"] / opens
        worth = [(w, c) for c in activity.candidates
                 if c.size_bytes is not None and 0 < c.size_bytes <= size.component_bytes
                 and c.closed_at <= finding.time - pools.settle_seconds
                 and (w := ratio(c, per_open, finding, settings, suffers)) >= settings.benefit_factor]
        if not worth and activity.candidates:
            refusals.append(Refusal(Reason.NOT_WORTH, f"no file saves {settings.benefit_factor:g} times what its move "
                                    "costs the disks").of(activity.directory))
        moves += [Action("migrate", layout, f"{finding.aggressor} reads it again and again: its move saves {w:.0f} "
                           f"times the disk time it costs within {settings.horizon_seconds / 60:.0f} minutes",
                           finding.key, activity.directory, c.path, c.size_bytes or 0, c.fid)
                    for w, c in sorted(worth, key=lambda pair: (-pair[0] / (pair[1].size_bytes or 1), pair[1].path))]
    if not activities:
        refusals.append(Refusal(Reason.NO_CHANGELOG, UNHEARD_OF).of(finding.aggressor))
    return Plan((*defaults, *fitting(moves, left, settings.most_moves)), tuple(refusals))


def ratio(candidate: Candidate, opens_per_second: float, finding: Finding, settings: Settings, suffers: bool) -> float:
    """Disk time saved over the horizon, for each second that the move costs the disks.

    Opens are spread over the files as they were so far; only the part of them that reaches the disks saves anything.
    """
    evidence = finding.evidence
    read_usec = max(evidence.get("usec_per_rpc", 0.0), settings.disk_read_usec)
    heat = opens_per_second * candidate.opens * min(
        1.0, evidence["disk_reads_per_second"] / max(evidence["opens_per_second"], 1e-9))
    saved_usec = heat * settings.horizon_seconds * max(0.0, read_usec - settings.flash_read_usec)
    cost_usec = read_usec + (candidate.size_bytes or 0) / settings.disk_bytes_per_second * 1e6
    return saved_usec / (cost_usec * (settings.suffering_weight if suffers else 1.0))


def fitting(actions: Sequence[Action], left: float, most: int) -> Iterator[Action]:
    """Those that fit into the room, in order."""
    count = 0
    for action in actions:
        if action.size_bytes <= left and count < most:
            left -= action.size_bytes
            count += 1
            yield action
