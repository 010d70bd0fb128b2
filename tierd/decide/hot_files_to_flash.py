"""Moves small files that are read again and again to flash, first those that save most disk time per byte.

A directory in which such files are still created gets a default layout first: new files on flash need no move.

The gain is the disk time of each read over the time that the job is expected to continue. The cost is one more read
from these disks and a rewrite; it weighs more while a neighbour is slowed on them. Only files whose gain is several
times their cost move.

Where the MDT is expected to be better than flash, files go there: :mod:`tierd.decide.data_on_mdt`. To move an existing
file there, Lustre copies it twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt

from tierd.acts import ActKind
from tierd.decide import data_on_mdt, sizing
from tierd.decide.plans import NO_CHANGELOG_SENTENCE, Plan, covers, flash_first, reserved
from tierd.decide.plans import FlashSettings as Pools
from tierd.model import Action, Candidate, Capacity, DirectoryActivity, Finding, HotSmallFilesEvidence
from tierd.refusal import Reason, Refusal


@dataclass(frozen=True)
class Settings:
    """Limits of benefit and cost of moves."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    benefit_factor: Annotated[float, Ge(1)] = 3.0
    """Minimum disk time saved, as a multiple of the disk time that the move costs."""
    horizon_seconds: Annotated[float, Gt(0)] = 3600.0
    """Expected time for which the job continues to read at its present rate."""
    disk_read_usec: Annotated[float, Gt(0)] = 8000.0
    """Time of a small read from disk if job statistics show less: a seek."""
    flash_read_usec: Annotated[float, Gt(0)] = 500.0
    """Time of a small read from flash."""
    disk_bytes_per_second: Annotated[float, Gt(0)] = 100e6
    """Sequential throughput of a disk target while a file is copied."""
    suffering_weight: Annotated[float, Ge(1)] = 3.0
    """Weight of the cost while a neighbour is slowed on the same targets."""
    max_moves: Annotated[int, Ge(0)] = 500
    """Maximum number of files in one plan."""


NOT_ON_MDT = data_on_mdt.Rules()


def decide(
    finding: Finding,
    evidence: HotSmallFilesEvidence,
    activities: Sequence[DirectoryActivity],
    capacity: Capacity,
    pools: Pools,
    settings: Settings,
    victim_slowed: bool = False,
    rules: data_on_mdt.Rules = NOT_ON_MDT,
) -> Plan:
    """Moves of the files that are worth it, the best first, while the pool or the MDTs have space.

    ``victim_slowed``: a neighbour is slowed on the finding's targets, so that a move costs more. ``rules`` decide
    whether files go to the MDT instead of flash.
    """
    if not capacity.pools.get(pools.flash_pool) or not capacity.pools.get(pools.hdd_pool):
        return Plan((), (Refusal(Reason.NO_POOL, f"pool {pools.flash_pool!r} or {pools.hdd_pool!r} does not exist or "
                                 "has no targets"),))
    defaults: list[Action] = []
    moves: list[Action] = []
    refusals: list[Refusal] = []
    room = {False: capacity.avail_bytes.get(pools.flash_pool, 0) - reserved(capacity, pools),
            True: data_on_mdt.room_bytes(capacity, rules.settings)}
    opens = sum(c.opens for a in activities for c in a.candidates) or 1
    for activity in activities:
        if activity.directory not in finding.directories:
            continue
        size = sizing.component(activity.sizes, 0.0, 0, pools.sizing)
        if not size.component_bytes:
            refusals.append(Refusal(size.refused or Reason.SIZES_UNKNOWN, size.reason).about(activity.directory))
            continue
        on_flash = flash_first(size.component_bytes, capacity.default_layouts.get(activity.directory), pools)
        use = data_on_mdt.Use(evidence.read_operations_share)
        choice = data_on_mdt.choose(on_flash, use, capacity, pools.flash_pool, rules)
        layout = choice.layout
        if activity.creates and not covers(capacity.default_layouts.get(activity.directory), size.component_bytes,
                                           pools.flash_pool) and activity.directory in capacity.default_layouts:
            defaults.append(Action(
                ActKind.SET_DEFAULT_LAYOUT, layout,
                f"{finding.aggressor} reads files created here again and again; new files need no move; "
                + "; ".join(filter(None, (size.reason, choice.reason))), finding.key, directory=activity.directory))
        per_open = evidence.opens_per_second / opens
        worth = [(w, c) for c in activity.candidates
                 if c.size_bytes is not None and 0 < c.size_bytes <= size.component_bytes
                 and c.closed_at <= finding.time - pools.settle_seconds
                 and (w := benefit_ratio(c, per_open, evidence, settings, victim_slowed) / (2 if choice.on_mdt else 1))
                 >= settings.benefit_factor]
        if not worth and activity.candidates:
            refusals.append(Refusal(Reason.NOT_WORTH, f"no file saves {settings.benefit_factor:g} times the disk time "
                                    "that its move costs").about(activity.directory))
        moves += [Action(ActKind.MIGRATE, layout, f"{finding.aggressor} reads the file again and again; within "
                           f"{settings.horizon_seconds / 60:.0f} minutes the move saves {w:.0f} times the disk time it "
                           "costs",
                           finding.key, activity.directory, c.path, c.size_bytes or 0, c.fid)
                    for w, c in sorted(worth, key=lambda pair: (-pair[0] / (pair[1].size_bytes or 1), pair[1].path))]
    if not activities:
        refusals.append(Refusal(Reason.NO_CHANGELOG, NO_CHANGELOG_SENTENCE).about(finding.aggressor))
    return Plan((*defaults, *fitting_moves(moves, room, settings.max_moves)), tuple(refusals))


def benefit_ratio(
    candidate: Candidate, opens_per_second: float, evidence: HotSmallFilesEvidence, settings: Settings,
    victim_slowed: bool,
) -> float:
    """Disk time saved over the horizon, per disk time that the move costs.

    Future opens are spread over the files as past opens were. Only opens that cause disk reads save time.
    """
    read_usec = max(evidence.usec_per_rpc, settings.disk_read_usec)
    heat = opens_per_second * candidate.opens * min(
        1.0, evidence.disk_reads_per_second / max(evidence.opens_per_second, 1e-9))
    saved_usec = heat * settings.horizon_seconds * max(0.0, read_usec - settings.flash_read_usec)
    cost_usec = read_usec + (candidate.size_bytes or 0) / settings.disk_bytes_per_second * 1e6
    return saved_usec / (cost_usec * (settings.suffering_weight if victim_slowed else 1.0))


def fitting_moves(actions: Sequence[Action], room: Mapping[bool, float], most: int) -> Iterator[Action]:
    """The actions that fit, in order. ``room`` has the bytes on the MDTs (True) and on flash (False)."""
    left = dict(room)
    count = 0
    for action in actions:
        place = action.layout.components[0].on_mdt
        if action.size_bytes <= left[place] and count < most:
            left[place] -= action.size_bytes
            count += 1
            yield action
