"""Where files outgrow their flash component, new ones get a larger one, sized from the files there are.

Only a component on flash before a tail on the disks is touched: that form tierd makes itself. Other layouts with
components were made by a person with a purpose. Files that exist stay as they are: they were split when they were
written, and rewriting them is for those that are read (``hot-small-files``).
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


def decide(
    finding: Finding, evidence: OutgrownComponentEvidence, activities: Sequence[DirectoryActivity], capacity: Capacity,
    settings: FlashSettings,
) -> Plan:
    """A larger default for each directory of the finding, or why not."""
    actions: list[Action] = []
    refusals: list[Refusal] = []
    for activity in activities:
        if activity.directory not in finding.directories:
            continue
        present = capacity.default_layouts.get(activity.directory)
        size = sizing.component(activity.sizes, 0.0, 0, settings.sizing)
        refusal = refuse(present, size, evidence, capacity, settings)
        if refusal:
            refusals.append(refusal.of(activity.directory))
        elif present is not None and (present.components[0].extent_end or 0) < size.component_bytes:
            actions.append(Action(
                ActKind.SET_DEFAULT_LAYOUT, flash_first(size.component_bytes, present, settings),
                f"files outgrow the present {size_text(present.components[0].extent_end or 0)}: {size.reason}",
                finding.key, directory=activity.directory))
    return Plan(tuple(actions), tuple(refusals))


def refuse(present: Layout | None, size: sizing.Size, evidence: OutgrownComponentEvidence, capacity: Capacity,
           settings: FlashSettings) -> Refusal | None:
    """Why the directory keeps what it has; None when it need not."""
    pool = settings.flash_pool
    if present is None:
        return Refusal(Reason.NO_LAYOUT, "its present default layout could not be read, or it has none of its own")
    if not capacity.pools.get(pool) or not capacity.pools.get(settings.hdd_pool):
        return Refusal(Reason.NO_POOL, f"pool {pool!r} or {settings.hdd_pool!r} does not exist or has no targets")
    first = present.components[0]
    if len(present.components) != 2 or first.on_mdt or first.pool != pool or present.mirror_count > 1:
        return Refusal(Reason.OTHER_LAYOUT, f"its default layout is no component on {pool!r} before a tail: a person "
                       "made it with a purpose, and a person may change it")
    if not size.component_bytes:
        return Refusal(size.refused or Reason.SIZES_UNKNOWN,
                       f"{size.reason}; without a flash component its files would at least not be split")
    growth = size.component_bytes * evidence.files_created / max(evidence.seconds, 1.0)
    if capacity.avail_bytes.get(pool, 0) - growth * settings.reaction_seconds < reserved(capacity, settings):
        return Refusal(
            Reason.NO_ROOM,
            f"pool {pool!r} has {capacity.avail_bytes.get(pool, 0) / 1e9:.1f} GB free, and the "
            f"directory may fill {growth / 1e6:.1f} MB/s of it",
        )
    return None
