"""Very many creates, opens and unlinks in one directory: one MDT, and one lock on the directory, serve them all.

A striped directory spreads names over MDTs. Measured on two of them (Cray, CUG 2018, table 1): with a directory for
each process creates doubled (167,611 to 352,809 a second), in a shared one they gained 17 %, reads 36 %, while stat
lost 22 %. Data on the MDT (DoM) saves the object target where the files are tiny and read more than written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Gt, Lt

from tierd.detect.plugin import Common, Detector, View
from tierd.model import Advice, DirectoryActivity, Finding
from tierd.text import percent, quoted, some


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter: Annotated[float, Gt(0)] = 500.0
    """Creates, opens and unlinks a second in one directory, to begin."""
    leave: Annotated[float, Gt(0)] = 300.0
    """The same, to go on."""
    share: Annotated[float, Gt(0), Lt(1)] = 0.3
    """Its part of all that the changelogs tell, at the least."""
    least_seconds: Annotated[float, Gt(0)] = 60.0
    """How long it must have been watched."""


def detect(view: View, settings: Settings) -> Iterator[Finding]:
    """Directories, the busiest first."""
    seconds = view.facts.directory_seconds
    if seconds < settings.least_seconds:
        return
    by_place: defaultdict[str, list[DirectoryActivity]] = defaultdict(list)
    for activity in view.facts.directories:
        by_place[activity.directory].append(activity)
    everything = sum(map(operations, view.facts.directories))
    for place, parts in sorted(by_place.items(), key=lambda item: (-sum(map(operations, item[1])), item[0])):
        done = sum(map(operations, parts))
        edge = settings.leave if (DETECTOR.name, "", place) in view.active else settings.enter
        if done / seconds < edge or done < settings.share * everything:
            return  # those after it do less
        yield of_directory(place, parts, done / everything, view)


def operations(activity: DirectoryActivity) -> int:
    """What the MDT had to do in a directory, closes aside: they follow opens."""
    return activity.creates + activity.opens + activity.unlinks


def of_directory(place: str, parts: Sequence[DirectoryActivity], share: float, view: View) -> Finding:
    """The finding about one directory."""
    seconds = view.facts.directory_seconds
    creates = sum(p.creates for p in parts) / seconds
    opens = sum(p.opens for p in parts) / seconds
    unlinks = sum(p.unlinks for p in parts) / seconds
    jobs = [p.job for p in sorted(parts, key=lambda p: (-operations(p), p.job))]
    return Finding(
        DETECTOR.name, view.now, "", "", (),
        f"{creates:.0f} creates, {opens:.0f} opens and {unlinks:.0f} unlinks/s in {quoted(place)}, {percent(share)} of "
        f"all, by {some(jobs)}",
        {"creates_per_second": creates, "opens_per_second": opens, "unlinks_per_second": unlinks, "share": share,
         "metadata_targets": float(view.facts.metadata_targets)},
        (place,), advice_only=True, subject=place,
        advice=tuple(mend(place, creates, opens, view.facts.metadata_targets)),
    )


def mend(place: str, creates: float, opens: float, metadata_targets: int) -> Iterator[Advice]:
    """What to change."""
    name = quoted(place)
    if metadata_targets != 1:
        count = f"{metadata_targets}" if metadata_targets else "COUNT"
        yield Advice(f"lfs mkdir -c {count} NEW_DIRECTORY (or lfs setdirstripe -D -c {count} {name} for directories "
                     "made in it)", name, "names are spread over the MDTs: with two, creates in one shared directory "
                     "gained 17 %, with one directory for each process 110 %; stat of a shared one lost 22 %")
    yield Advice("one directory for each process or node, instead of a shared one", "in the application",
                 "processes no longer wait for one directory's lock")
    if opens > 3 * creates:
        yield Advice(f"lfs setstripe -E 64K -L mdt -E -1 -c 1 {name}", "if the files are smaller than 64 KiB and the "
                     "MDTs have room", "reads are answered with the open (DoM): up to twice the speed of disks")


DETECTOR = Detector("metadata-storm", Settings, detect)
