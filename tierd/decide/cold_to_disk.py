"""Moves cold files from flash to disks, the longest unused first, until the pool has free space.

Files are not moved back when their job is no longer noisy: its next run would need the moves again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Lt

from lustre.layout.model import Component, Layout
from tierd.acts import ActKind
from tierd.decide.plans import FlashSettings as Pools
from tierd.decide.plans import Plan
from tierd.model import Action, Capacity, ColdOnFlashEvidence, Finding, StoredFile
from tierd.refusal import Reason, Refusal
from tierd.text import bytes_text


@dataclass(frozen=True)
class Settings:
    """Limits of demotion."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    directories: tuple[str, ...] = ()
    """Further directories (paths below the root of the file system) whose files may be demoted. tierd knows files that
    it moved to flash itself from its journal."""
    disk_reserve: Annotated[float, Gt(0), Lt(1)] = 0.1
    """Share of the disk pool that stays free: full disks are slow."""
    min_bytes: Annotated[int, Ge(0)] = 4096
    """Smaller files are not moved: they free almost nothing."""
    max_moves: Annotated[int, Ge(0)] = 500
    """Maximum number of files in one plan."""


def decide(
    finding: Finding, evidence: ColdOnFlashEvidence, stored: Sequence[StoredFile], capacity: Capacity, pools: Pools,
    settings: Settings,
) -> Plan:
    """Moves of cold files, the coldest first, until the pool is down to its target share."""
    size, avail = capacity.size_bytes.get(pools.hdd_pool, 0), capacity.avail_bytes.get(pools.hdd_pool, 0)
    if not capacity.pools.get(pools.hdd_pool):
        return Plan((), (Refusal(Reason.NO_POOL, f"pool {pools.hdd_pool!r} does not exist or has no targets"),))
    left = avail - settings.disk_reserve * size
    wanted = evidence.bytes_to_free
    actions: list[Action] = []
    too_large = 0
    for file in sorted(stored, key=lambda f: (f.read_at, f.path)):
        if wanted <= 0 or len(actions) >= settings.max_moves or file.read_at >= evidence.cold_before:
            break
        layout = disk_layout(file.layout, pools)
        if layout is None or file.size_bytes < settings.min_bytes:
            continue
        if file.size_bytes > left:
            too_large += 1
            continue
        wanted -= file.size_bytes
        left -= file.size_bytes
        days = (finding.time - file.read_at) / 86_400
        actions.append(Action(
            ActKind.MIGRATE, layout,
            f"pool {pools.flash_pool!r} is short of space, and the file was not used for {days:.0f} days",
            finding.key, file.path.rpartition("/")[0] or "/", file.path, file.size_bytes, file.fid))
    if too_large and not actions:
        return Plan((), (Refusal(Reason.NO_ROOM, f"pool {pools.hdd_pool!r} has {bytes_text(avail)} free, too little "
                                 f"for the cold files on {pools.flash_pool!r}"),))
    return Plan(tuple(actions), ())


def disk_layout(present: Layout | None, pools: Pools) -> Layout | None:
    """The layout of a file on disks, with the stripes of its last component. None if it must not be flattened."""
    if present is None or present.mirror_count > 1 or any(c.on_mdt or c.released or c.foreign is not None
                                                          for c in present.components):
        return None
    tail = present.components[-1]
    count = tail.stripe_count if tail.stripe_count == -1 else max(tail.stripe_count, 1)
    return Layout((Component(0, None, pools.hdd_pool, count, tail.stripe_size),), composite=False)
