"""Very many creates, opens and unlinks in one directory, which one MDT and one directory lock must serve.

A striped directory spreads names over MDTs. Measured with empty files in one shared directory (Cray, CUG 2018, slides
and table 1), four MDTs did 1.95 times the creates of one, 2.36 times the stats, 3.97 times the reads and 2.34 times the
unlinks. Data on the MDT (DoM) in such a directory gave 17% more creates and 36% more reads, and 22% fewer stats. DoM
saves requests to object targets if files are tiny and are read more often than written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Gt, Lt

from tierd.detect.advice import traffic
from tierd.detect.plugin import Common, Detector, View
from tierd.model import Advice, DirectoryActivity, Evidence, Finding
from tierd.text import first_names, percent, quoted

DOM_BYTES = 64 << 10
"""Size of the advised component on the MDT."""
CHANGE_SHARE = 0.25
"""Share of creates and unlinks from which processes wait for the directory lock. Opens share the lock."""
CREATE_SHARE = 0.02
"""Creates per open of an existing file, below which a layout for new files changes nothing."""


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter: Annotated[float, Gt(0)] = 500.0
    """The finding begins at this rate of creates, opens and unlinks in one directory."""
    leave: Annotated[float, Gt(0)] = 300.0
    """The finding ends below this rate."""
    share: Annotated[float, Gt(0), Lt(1)] = 0.3
    """Minimum share of the directory in all operations of the changelogs."""
    min_seconds: Annotated[float, Gt(0)] = 60.0
    """Minimum observed time."""
    recent_seconds: Annotated[float, Gt(0)] = 60.0
    """Period from which the sizes of jobs' files are estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataStormEvidence(Evidence):
    """Metadata operations in one directory."""

    creates_per_second: float
    opens_per_second: float
    unlinks_per_second: float
    share: float
    """Share of the operations in all directories."""
    metadata_targets: int
    """0 if their number is not known."""


def detect(view: View, settings: Settings) -> Iterator[Finding]:
    """Find directories with very many operations, the busiest first."""
    seconds = view.facts.directory_seconds
    if seconds < settings.min_seconds:
        return
    by_place: defaultdict[str, list[DirectoryActivity]] = defaultdict(list)
    for activity in view.facts.directories:
        by_place[activity.directory].append(activity)
    everything = sum(map(operations, view.facts.directories))
    for place, parts in sorted(by_place.items(), key=lambda item: (-sum(map(operations, item[1])), item[0])):
        done = sum(map(operations, parts))
        edge = settings.leave if (DETECTOR.name, "", place) in view.active else settings.enter
        if done / seconds < edge or done < settings.share * everything:
            return  # sorted: the directories after this one have fewer operations
        yield of_directory(place, parts, done / everything, view, settings)


def operations(activity: DirectoryActivity) -> int:
    """Metadata operations in a directory. Closes are left out, because each follows an open."""
    return activity.creates + activity.opens + activity.unlinks


def of_directory(place: str, parts: Sequence[DirectoryActivity], share: float, view: View,
                 settings: Settings) -> Finding:
    """The finding about one directory."""
    seconds = view.facts.directory_seconds
    creates = sum(p.creates for p in parts) / seconds
    opens = sum(p.opens for p in parts) / seconds
    unlinks = sum(p.unlinks for p in parts) / seconds
    jobs = [p.job for p in sorted(parts, key=lambda p: (-operations(p), p.job))]
    return Finding(
        DETECTOR.name, view.now, "", "", (),
        f"{quoted(place)} has {creates:.0f} creates, {opens:.0f} opens and {unlinks:.0f} unlinks/s, "
        f"{percent(share)} of all metadata operations, by {first_names(jobs)}",
        MetadataStormEvidence(creates_per_second=creates, opens_per_second=opens, unlinks_per_second=unlinks,
                              share=share, metadata_targets=view.facts.metadata_targets),
        (place,), advice_only=True, subject=place,
        advice=tuple(advise(place, (creates, opens, unlinks), view.facts.metadata_targets,
                          tiny=files_are_tiny(jobs, view, settings))),
    )


def files_are_tiny(jobs: Sequence[str], view: View, settings: Settings) -> bool:
    """Whether the files that jobs read fit the component on the MDT, on average. Unknown sizes count as fitting."""
    known = view.profiles(settings.recent_seconds)
    every = frozenset(target for window in view.windows for target, _ in window.loads)
    parts = [part for part in traffic(known, every, "read") if part.job.job in jobs]
    return all(part.bytes_per_file <= DOM_BYTES for part in parts)


def advise(place: str, rates: tuple[float, float, float], metadata_targets: int, *, tiny: bool) -> Iterator[Advice]:
    """Advice for a directory. ``rates`` are creates, opens and unlinks per second."""
    creates, opens, unlinks = rates
    name = quoted(place)
    if metadata_targets != 1:
        count = f"{metadata_targets}" if metadata_targets else "COUNT"
        yield Advice(f"lfs mkdir -c {count} NEW_DIRECTORY (or lfs setdirstripe -D -c {count} {name} for new "
                     "subdirectories)", name, "spreads names over the MDTs; in one shared directory, four MDTs did "
                     "1.95 times the creates of one MDT, 2.36 times the stats and 2.34 times the unlinks")
    if creates + unlinks >= CHANGE_SHARE * (creates + opens + unlinks):
        yield Advice("use one directory per process or node instead of a shared directory", "in the application",
                     "processes no longer wait for one directory lock")
    if opens > 3 * creates and tiny:
        made = creates >= CREATE_SHARE * opens
        yield Advice(f"lfs setstripe -E 64K -L mdt -E -1 -c 1 {name}" if made else
                     "lfs migrate --non-block -E 64K -L mdt -E -1 -c 1 FILE",
                     ("new files there" if made else f"the files in {name}, when closed") +
                     ", if they are smaller than 64 KiB and the MDTs have room",
                     "the open also returns the data (DoM), without a request to an object target")


DETECTOR = Detector("metadata-storm", Settings, detect)
