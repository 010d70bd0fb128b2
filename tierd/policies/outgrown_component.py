"""Files of a directory outgrow the first component of its default layout.

When a file grows past a component, the MDT instantiates the next one and writes a layout record into the changelog. A
file half on flash and half on disk is slower than a file on disk alone (Cray, CUG 2018). The remedy is a larger first
component for new files, sized from existing files, or no flash component.

tierd enlarges the component for new files, sized from the existing files. It changes only layouts with one flash
component before others, the form that it creates itself. Other composite layouts were set by a person on purpose.
Existing files stay split; ``hot-small-files`` moves those that are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lustre.layout.size import size_text
from tierd.decide import sizing
from tierd.decide.plans import Plan, default_refusal, flash_first, flash_is_short, missing_pool, new_default, plan_of
from tierd.detect.groups import grouped
from tierd.detect.view import View
from tierd.model import Action, Advice, DirectoryActivity, Evidence, Finding
from tierd.policies.protocol import Common, Policy, Situation, edge
from tierd.refusal import Reason, Refusal
from tierd.text import percent, quoted
from tierd.validators import AtLeastOne, Share


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter: Share = 0.05
    """The finding begins at this share of recently created files that outgrew their first component. As many as a
    component may split (``sizing.SPLIT_SHARE``)."""
    min_files: AtLeastOne = 20
    """Minimum number of files that outgrew their first component. As many as sizes are needed for another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgrownComponentEvidence(Evidence):
    """Files that outgrew the first component of their directory's default layout."""

    files_outgrown: int
    files_created: int
    """Files created in the directory in ``seconds``."""
    share: float
    """Outgrown files among the created ones."""
    component_bytes: int
    """End of the first component; 0 if it is not known."""
    seconds: float
    """Time over which the files were counted."""


def find(view: View, settings: Settings) -> Iterator[Finding]:
    split = {activity.directory for activity in view.facts.directories if activity.outgrown}
    by_place = grouped((each.directory, each) for each in view.facts.directories if each.directory in split)
    for place, parts in sorted(by_place.items(), key=lambda item: (-sum(p.outgrown for p in item[1]), item[0])):
        outgrown, created = sum(p.outgrown for p in parts), sum(p.creates for p in parts)
        job = max(parts, key=lambda p: (p.outgrown, p.job)).job
        share = outgrown / max(created, outgrown, 1)
        least = edge(settings.enter, view, POLICY.name, job, place)
        if outgrown < settings.min_files or share < least or not place.startswith("/"):
            continue
        layout = view.facts.default_layouts.get(place)
        end = layout.components[0].extent_end if layout is not None and len(layout.components) > 1 else None
        if place in view.facts.default_layouts and end is None:
            continue  # no composite default layout: these files were created with a layout of their own
        pools = view.pools_of(place)
        boundary = f"; present size: {size_text(end)}" if end else ""
        yield POLICY.finding(
            view, f"{outgrown} of {max(created, outgrown)} files created recently in {quoted(place)} outgrew their "
            f"first component ({percent(share)}{boundary}); such a file has two objects and still needs seeks on disks",
            OutgrownComponentEvidence(files_outgrown=outgrown, files_created=created, share=share,
                                      component_bytes=end or 0, seconds=view.facts.directory_seconds),
            job=job, directories=(place,), subject=place, advice_only=False,
            advice=() if not view.has_free_space(view.flash) else (
                    Advice(f"lfs setstripe -E SIZE -c 1 -p {quoted(pools.flash)} -E -1 -c 1 -p {quoted(pools.hdd)} "
                           f"{quoted(place)}", "with a SIZE that holds whole files", "new files are no longer split; "
                           "a default layout without a first component has the same effect"),))


def plan(finding: Finding, evidence: OutgrownComponentEvidence, situation: Situation) -> Plan:
    steps = ((each.directory, enlarged(finding, evidence, each, situation)) for each in situation.activities)
    return plan_of(step.about(where) if isinstance(step, Refusal) else step for where, step in steps if step)


def enlarged(finding: Finding, evidence: OutgrownComponentEvidence, activity: DirectoryActivity,
             situation: Situation) -> Action | Refusal | None:
    """A larger first component for new files, or why it stays as it is; None if it is large enough."""
    capacity, settings, pool = situation.capacity, situation.pools, situation.pools.flash_pool
    present = capacity.default_layouts.get(activity.directory)
    if refusal := default_refusal(activity.directory, capacity) or missing_pool(capacity, pool, settings.hdd_pool):
        return refusal
    if present is None:
        return Refusal(Reason.NO_LAYOUT, "it has no default layout of its own")
    first, *rest = present.components
    if (not rest or first.on_mdt or first.pool != pool or present.mirror_count > 1
            or any(part.pool == pool for part in rest)):
        return Refusal(Reason.OTHER_LAYOUT, "tierd enlarges the first component only of a default layout that has one "
                       f"component on {pool!r}, then others; this one differs")
    size, end = sizing.component(activity.sizes, 0.0, 0, settings.sizing), first.extent_end or 0
    if isinstance(size, Refusal):
        return Refusal(size.reason, f"{size.sentence}; without a flash component its files would not be split")
    growth = size.component_bytes * evidence.files_created / max(evidence.seconds, 1.0)
    if short := flash_is_short(capacity, settings, growth, "the directory may fill"):
        return short
    return None if end >= size.component_bytes else new_default(
        finding, activity.directory, flash_first(size.component_bytes, present, settings),
        f"files outgrow the present first component of {size_text(end)}: {size.reason}")


POLICY = Policy("outgrown-component", Settings, find, evidence=OutgrownComponentEvidence, plan=plan, on_by_default=True)
