"""Small files that are read again and again move to flash, those first that save most disk time for each byte.

A directory that still gets such files gets a default layout first: files made on flash need not move.

The gain: each read that would have gone to the disks, over the time the job is expected to go on. The cost: the file
is read from these disks once more and rewritten, which weighs more while a neighbour is slowed on them. Only files
that save several times their cost move.

New files that are read much more than written may lie on the MDT itself (DoM), so that an open brings the bytes
along. This is off by default. Measured (Cray, CUG 2018, table 1, empty files): a third more reads; random writes of 4
KiB were slower than on flash targets and 20 to 40% faster than on disks. An MDT that runs full stops a whole file
system, where a full pool stops a few files. It is for new files only: Lustre cannot move the bytes of a file from a
target to the MDT by a swap of layouts.
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
    """When a first component lies on the MDT in place of flash."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    enabled: bool = False
    largest_bytes: Annotated[int, Gt(0)] = 64 << 10
    """End of such a component, at the most; ``lod.*.dom_stripesize`` is Lustre's own limit (1 MiB as a rule)."""
    reads_per_write: Annotated[float, Ge(1)] = 3.0
    min_free: Annotated[float, Gt(0), Lt(1)] = 0.3
    """Share of bytes and of inodes free on every MDT."""


def with_data_on_mdt(layout: Layout, read_share: float, capacity: Capacity, settings: DataOnMdtSettings) -> Layout:
    """The layout with its first component on the MDT where that fits; as it is where it does not, or nobody knows."""
    first = layout.components[0]
    if (not settings.enabled or first.extent_end is None or first.extent_end > settings.largest_bytes
            or read_share < settings.reads_per_write * (1 - read_share)
            or capacity.metadata_free is None or capacity.metadata_free < settings.min_free):
        return layout
    return replace(layout, components=(Component(0, first.extent_end, pattern="mdt"), *layout.components[1:]))


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
    max_moves: Annotated[int, Ge(0)] = 500
    """Files in one plan; the next may plan more."""
    data_on_mdt: DataOnMdtSettings = field(default_factory=DataOnMdtSettings)


def decide(
    finding: Finding,
    evidence: HotSmallFilesEvidence,
    activities: Sequence[DirectoryActivity],
    capacity: Capacity,
    pools: Pools,
    settings: Settings,
    suffers: bool = False,
) -> Plan:
    """Moves of the files that are worth it, the best first, while the pool has room."""
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
            refusals.append(Refusal(size.refused or Reason.SIZES_UNKNOWN, size.reason).of(activity.directory))
            continue
        layout = flash_first(size.component_bytes, capacity.default_layouts.get(activity.directory), pools)
        if activity.creates and not covers(capacity.default_layouts.get(activity.directory), size.component_bytes,
                                           pools.flash_pool) and activity.directory in capacity.default_layouts:
            made = with_data_on_mdt(layout, evidence.read_operations_share, capacity, settings.data_on_mdt)
            defaults.append(Action(
                ActKind.SET_DEFAULT_LAYOUT, made,
                f"{finding.aggressor} reads again and again what is made here: new files "
                f"then need not be moved; {size.reason}", finding.key, directory=activity.directory))
        per_open = evidence.opens_per_second / opens
        worth = [(w, c) for c in activity.candidates
                 if c.size_bytes is not None and 0 < c.size_bytes <= size.component_bytes
                 and c.closed_at <= finding.time - pools.settle_seconds
                 and (w := benefit_ratio(c, per_open, evidence, settings, suffers)) >= settings.benefit_factor]
        if not worth and activity.candidates:
            refusals.append(Refusal(Reason.NOT_WORTH, f"no file saves {settings.benefit_factor:g} times what its move "
                                    "costs the disks").of(activity.directory))
        moves += [Action(ActKind.MIGRATE, layout,
                         f"{finding.aggressor} reads it again and again: its move saves {w:.0f} "
                         f"times the disk time it costs within {settings.horizon_seconds / 60:.0f} minutes",
                         finding.key, activity.directory, c.path, c.size_bytes or 0, c.fid)
                    for w, c in sorted(worth, key=lambda pair: (-pair[0] / (pair[1].size_bytes or 1), pair[1].path))]
    if not activities:
        refusals.append(Refusal(Reason.NO_CHANGELOG, NO_CHANGELOG_SENTENCE).of(finding.aggressor))
    return Plan((*defaults, *fitting_moves(moves, left, settings.max_moves)), tuple(refusals))


def benefit_ratio(
    candidate: Candidate, opens_per_second: float, evidence: HotSmallFilesEvidence, settings: Settings, suffers: bool
) -> float:
    """Disk time saved over the horizon, for each second that the move costs the disks.

    Opens are spread over the files as they were so far; only the part of them that reaches the disks saves anything.
    """
    read_usec = max(evidence.usec_per_rpc, settings.disk_read_usec)
    heat = opens_per_second * candidate.opens * min(
        1.0, evidence.disk_reads_per_second / max(evidence.opens_per_second, 1e-9))
    saved_usec = heat * settings.horizon_seconds * max(0.0, read_usec - settings.flash_read_usec)
    cost_usec = read_usec + (candidate.size_bytes or 0) / settings.disk_bytes_per_second * 1e6
    return saved_usec / (cost_usec * (settings.suffering_weight if suffers else 1.0))


def fitting_moves(actions: Sequence[Action], left: float, most: int) -> Iterator[Action]:
    """Those that fit into the room, in order."""
    count = 0
    for action in actions:
        if action.size_bytes <= left and count < most:
            left -= action.size_bytes
            count += 1
            yield action
