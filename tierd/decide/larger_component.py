"""Enlarges the flash component for new files where files outgrow it, sized from the existing files.

Only layouts with a flash component before a tail on disks change: tierd creates that form itself. Other composite
layouts were set by a person on purpose. Existing files stay split; ``hot-small-files`` moves those that are read.
"""

from __future__ import annotations

from collections.abc import Sequence

from lustre.layout.model import Layout
from lustre.layout.size import size_text
from tierd.acts import ActKind
from tierd.decide import sizing
from tierd.decide.plans import FlashSettings, Plan, flash_first, reserved
from tierd.model import Action, Capacity, DirectoryActivity, Finding, OutgrownComponentEvidence
from tierd.refusal import Reason, Refusal
from tierd.text import bytes_text, rate_text


def decide(
    finding: Finding, evidence: OutgrownComponentEvidence, activities: Sequence[DirectoryActivity], capacity: Capacity,
    settings: FlashSettings,
) -> Plan:
    """A larger first component for each directory of the finding, or a refusal."""
    actions: list[Action] = []
    refusals: list[Refusal] = []
    for activity in activities:
        if activity.directory not in finding.directories:
            continue
        present = capacity.default_layouts.get(activity.directory)
        size = sizing.component(activity.sizes, 0.0, 0, settings.sizing)
        refusal = refuse(present, size, evidence, capacity, settings)
        if refusal:
            refusals.append(refusal.about(activity.directory))
        elif present is not None and (present.components[0].extent_end or 0) < size.component_bytes:
            actions.append(Action(
                ActKind.SET_DEFAULT_LAYOUT, flash_first(size.component_bytes, present, settings),
                "files outgrow the present first component of "
                f"{size_text(present.components[0].extent_end or 0)}: {size.reason}",
                finding.key, directory=activity.directory))
    return Plan(tuple(actions), tuple(refusals))


def refuse(present: Layout | None, size: sizing.Size, evidence: OutgrownComponentEvidence, capacity: Capacity,
           settings: FlashSettings) -> Refusal | None:
    """Why the directory keeps its default layout; None if it does not."""
    pool = settings.flash_pool
    if present is None:
        return Refusal(Reason.NO_LAYOUT, "its default layout could not be read, or it has no default layout of its own")
    if not capacity.pools.get(pool) or not capacity.pools.get(settings.hdd_pool):
        return Refusal(Reason.NO_POOL, f"pool {pool!r} or {settings.hdd_pool!r} does not exist or has no targets")
    first = present.components[0]
    if len(present.components) != 2 or first.on_mdt or first.pool != pool or present.mirror_count > 1:
        return Refusal(Reason.OTHER_LAYOUT, f"its default layout is not a component on {pool!r} before a tail, as "
                       "tierd sets it; a person set it on purpose, and only a person may change it")
    if not size.component_bytes:
        return Refusal(size.refused or Reason.SIZES_UNKNOWN,
                       f"{size.reason}; without a flash component its files would not be split")
    growth = size.component_bytes * evidence.files_created / max(evidence.seconds, 1.0)
    if capacity.avail_bytes.get(pool, 0) - growth * settings.reaction_seconds < reserved(capacity, settings):
        return Refusal(
            Reason.NO_ROOM,
            f"pool {pool!r} has {bytes_text(capacity.avail_bytes.get(pool, 0))} free, and the "
            f"directory may fill it at {rate_text(growth)}",
        )
    return None
