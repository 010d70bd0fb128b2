"""Files of a directory outgrow the first component of its default layout.

When a file grows past a component, the MDT instantiates the next one and writes a layout record into the changelog. A
file half on flash and half on disk is slower than a file on disk alone (Cray, CUG 2018). The remedy is a larger first
component for new files, sized from existing files, or no flash component.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Lt

from lustre.layout.model import Layout
from lustre.layout.size import size_text
from tierd.detect.advice import has_free_space
from tierd.detect.plugin import Common, Detector, View
from tierd.model import Advice, DirectoryActivity, Finding, OutgrownComponentEvidence
from tierd.text import percent, quoted


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter: Annotated[float, Gt(0), Lt(1)] = 0.05
    """The finding begins at this share of recently created files that outgrew their first component."""
    leave: Annotated[float, Gt(0), Lt(1)] = 0.02
    """The finding ends below this share."""
    min_files: Annotated[int, Ge(1)] = 20
    """Minimum number of files that outgrew their first component."""


def detect(view: View, settings: Settings) -> Iterator[Finding]:
    """One finding per directory, ordered by the number of outgrown files."""
    by_place: defaultdict[str, list[DirectoryActivity]] = defaultdict(list)
    for activity in view.facts.directories:
        by_place[activity.directory].append(activity)
    for place, parts in sorted(by_place.items(), key=lambda item: (-sum(p.outgrown for p in item[1]), item[0])):
        finding = of_directory(place, parts, view, settings)
        if finding is not None:
            yield finding


def of_directory(place: str, parts: Sequence[DirectoryActivity], view: View, settings: Settings) -> Finding | None:
    """The finding about one directory, or None."""
    outgrown, created = sum(p.outgrown for p in parts), sum(p.creates for p in parts)
    job = max(parts, key=lambda p: (p.outgrown, p.job)).job
    edge = settings.leave if (DETECTOR.name, job, place) in view.active else settings.enter
    share = outgrown / max(created, outgrown, 1)
    if outgrown < settings.min_files or share < edge or not place.startswith("/"):
        return None
    end = first_end(view.facts.default_layouts.get(place))
    if place in view.facts.default_layouts and end is None:
        return None  # no composite default layout: these files were created with a layout of their own
    pools = view.pools_of(place)
    boundary = f"; present size: {size_text(end)}" if end else ""
    return Finding(
        DETECTOR.name, view.now, job, "", (),
        f"{outgrown} of {max(created, outgrown)} files created recently in {quoted(place)} outgrew their first "
        f"component ({percent(share)}{boundary}); such a file has two objects and still needs seeks on disks",
        OutgrownComponentEvidence(files_outgrown=outgrown, files_created=created, share=share,
                                  component_bytes=end or 0, seconds=view.facts.directory_seconds),
        (place,), subject=place,
        advice=() if not has_free_space(view, view.flash) else (
                Advice(f"lfs setstripe -E SIZE -c 1 -p {quoted(pools.flash)} -E -1 -c 1 -p {quoted(pools.hdd)} "
                       f"{quoted(place)}", "with a SIZE that holds whole files", "new files are no longer split; "
                       "a default layout without a first component has the same effect"),),
    )


def first_end(layout: Layout | None) -> int | None:
    """End of the first component in bytes; None if there is only one component, or no layout."""
    return layout.components[0].extent_end if layout is not None and len(layout.components) > 1 else None


DETECTOR = Detector("outgrown-component", Settings, detect)
