"""Moves small files that are read again and again to flash, first those that save most disk time per byte.

A directory in which such files are still created gets a default layout first: new files on flash need no move.

The gain is the disk time of each read over the time that the job is expected to continue. The cost is one more read
from these disks and a rewrite; it weighs more while a neighbour is slowed on them. Only files whose gain is several
times their cost move.

New files that are read much more than written may be stored on the MDT (DoM), so that an open returns the data. This
is off by default. Measured (Cray, CUG 2018, table 1, empty files): a third more reads; random writes of 4 KiB were
slower than on flash targets and 20 to 40% faster than on disks. A full MDT stops the whole file system; a full pool
stops a few files. DoM is for new files only: Lustre cannot move data from a target to the MDT by swapping layouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Lt

from lustre.layout.model import Component, Layout
from tierd.acts import ActKind
from tierd.decide import sizing
from tierd.decide.plans import NO_CHANGELOG_SENTENCE, Plan, covers, flash_first, reserved
from tierd.decide.plans import FlashSettings as Pools
from tierd.model import Action, Candidate, Capacity, DirectoryActivity, Finding, HotSmallFilesEvidence
from tierd.refusal import Reason, Refusal


@dataclass(frozen=True)
class DataOnMdtSettings:
    """When the first component is on the MDT instead of flash."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    enabled: bool = False
    largest_bytes: Annotated[int, Gt(0)] = 64 << 10
    """Maximum end of a component on the MDT. Lustre's own limit is ``lod.*.dom_stripesize`` (default 1 MiB)."""
    reads_per_write: Annotated[float, Ge(1)] = 3.0
    min_free: Annotated[float, Gt(0), Lt(1)] = 0.3
    """Minimum free share of bytes and of inodes on every MDT."""


def with_data_on_mdt(layout: Layout, read_share: float, capacity: Capacity, settings: DataOnMdtSettings) -> Layout:
    """The layout with its first component on the MDT; unchanged if that does not fit or free space is unknown."""
    first = layout.components[0]
    if (not settings.enabled or first.extent_end is None or first.extent_end > settings.largest_bytes
            or read_share < settings.reads_per_write * (1 - read_share)
            or capacity.metadata_free is None or capacity.metadata_free < settings.min_free):
        return layout
    return replace(layout, components=(Component(0, first.extent_end, pattern="mdt"), *layout.components[1:]))


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
    data_on_mdt: DataOnMdtSettings = field(default_factory=DataOnMdtSettings)


def decide(
    finding: Finding,
    evidence: HotSmallFilesEvidence,
    activities: Sequence[DirectoryActivity],
    capacity: Capacity,
    pools: Pools,
    settings: Settings,
    victim_slowed: bool = False,
) -> Plan:
    """Moves of the files that are worth it, the best first, while the pool has space.

    ``victim_slowed``: a neighbour is slowed on the finding's targets, so that a move costs more.
    """
    if not capacity.pools.get(pools.flash_pool) or not capacity.pools.get(pools.hdd_pool):
        return Plan((), (Refusal(Reason.NO_POOL, f"pool {pools.flash_pool!r} or {pools.hdd_pool!r} does not exist or "
                                 "has no targets"),))
    defaults: list[Action] = []
    moves: list[Action] = []
    refusals: list[Refusal] = []
    left = capacity.avail_bytes.get(pools.flash_pool, 0) - reserved(capacity, pools)
    opens = sum(c.opens for a in activities for c in a.candidates) or 1
    for activity in activities:
        if activity.directory not in finding.directories:
            continue
        size = sizing.component(activity.sizes, 0.0, 0, pools.sizing)
        if not size.component_bytes:
            refusals.append(Refusal(size.refused or Reason.SIZES_UNKNOWN, size.reason).about(activity.directory))
            continue
        layout = flash_first(size.component_bytes, capacity.default_layouts.get(activity.directory), pools)
        if activity.creates and not covers(capacity.default_layouts.get(activity.directory), size.component_bytes,
                                           pools.flash_pool) and activity.directory in capacity.default_layouts:
            made = with_data_on_mdt(layout, evidence.read_operations_share, capacity, settings.data_on_mdt)
            defaults.append(Action(
                ActKind.SET_DEFAULT_LAYOUT, made,
                f"{finding.aggressor} reads files created here again and again; on flash, "
                f"new files need no move; {size.reason}", finding.key, directory=activity.directory))
        per_open = evidence.opens_per_second / opens
        worth = [(w, c) for c in activity.candidates
                 if c.size_bytes is not None and 0 < c.size_bytes <= size.component_bytes
                 and c.closed_at <= finding.time - pools.settle_seconds
                 and (w := benefit_ratio(c, per_open, evidence, settings, victim_slowed)) >= settings.benefit_factor]
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
    return Plan((*defaults, *fitting_moves(moves, left, settings.max_moves)), tuple(refusals))


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


def fitting_moves(actions: Sequence[Action], left: float, most: int) -> Iterator[Action]:
    """The actions that fit into ``left`` bytes, in order."""
    count = 0
    for action in actions:
        if action.size_bytes <= left and count < most:
            left -= action.size_bytes
            count += 1
            yield action
