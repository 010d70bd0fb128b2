"""From a job to its directories: where the aggressor of a finding causes its load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tierd.model import DirectoryActivity, Finding

MIN_SHARE = 0.1
"""A directory with less of the job's files than this is not where the noise is."""
STAY_SECONDS = 30.0
"""In a directory of which nothing was heard for longer than this, before the last of the job, it does not stay."""
MAX_DIRECTORIES = 512
"""Directories of one job that are named, the busiest; of more, what they lie in is named too."""
COVERED_SHARE = 0.5
"""Directories that together hold less of it do not tell where the noise is; what they lie in does."""


def recent_weights(activities: Sequence[DirectoryActivity]) -> list[int]:
    """Files a job worked on in each directory in the last minutes; where in none, since it began there.

    A job may keep its name for months, and what it did where it was before must not hide where it is. One that holds
    its files open for long works there all the same.
    """
    lately = [activity.lately for activity in activities]
    return lately if any(lately) else [activity.creates + activity.opens for activity in activities]


Weighed = list[tuple[int, DirectoryActivity]]


def _weighed(activities: Sequence[DirectoryActivity]) -> Weighed:
    """Without places that nothing is known of, not even a FID: an open of a file that was gone before one could ask."""
    return [(weight, activity) for weight, activity in zip(recent_weights(activities), activities, strict=True)
            if activity.directory]


def active_directories(activities: Sequence[DirectoryActivity]) -> tuple[DirectoryActivity, ...]:
    """Directories that hold a fair part of what the job does to files, the busiest first."""
    return tuple(activity for _, activity in _active(_weighed(activities)))


def _active(weighed: Weighed) -> Weighed:
    total = sum(weight for weight, _ in weighed)
    return sorted(((weight, a) for weight, a in weighed if total and weight >= MIN_SHARE * total),
                  key=lambda each: (-each[0], each[1].directory))


def directories(activities: Sequence[DirectoryActivity]) -> tuple[str, ...]:
    """Where the noise is: the active directories, or the hundreds in which the job stays; else what they lie in.

    A job that makes a new directory for each step is told by what these lie in, as the next will lie there too. Of one
    that stays where it is that would name a place that nothing of its work inherits from, and that is also others':
    Lustre gives a new file the default layout of its own directory, or else that of the root, never one from between
    (``lod_get_default_lov_striping`` in lustre/lod/lod_object.c). Of more directories than can be named, the busiest
    are, and what they lie in for those still to be made.
    """
    weighed = _weighed(activities)
    total = sum(weight for weight, _ in weighed)
    active = _active(weighed)
    if sum(weight for weight, _ in active) >= COVERED_SHARE * total:
        return tuple(activity.directory for _, activity in active)
    staying = _staying(weighed)
    stays = sum(weight for weight, _ in staying) >= COVERED_SHARE * total
    named = tuple(activity.directory for _, activity in staying[:MAX_DIRECTORIES]) if stays else ()
    if stays and len(staying) <= MAX_DIRECTORIES:
        return named
    above: Counter[str] = Counter()
    for weight, activity in weighed:
        if activity.directory.startswith("/"):
            above[activity.directory.rpartition("/")[0] or "/"] += weight
    around = (place for place, count in above.most_common() if count >= MIN_SHARE * total and place != "/")
    return tuple(dict.fromkeys((*named, *around)))


def _staying(weighed: Weighed) -> Weighed:
    """Those of the directories that the job is still at work in, the busiest first, without what hardly counts."""
    latest = max((a.last_time for _, a in weighed), default=0.0)
    least = MIN_SHARE * max((weight for weight, _ in weighed), default=0)
    return sorted(((weight, a) for weight, a in weighed if a.last_time >= latest - STAY_SECONDS and weight >= least),
                  key=lambda each: (-each[0], each[1].directory))


def activities_of_finding(finding: Finding, activities: Sequence[DirectoryActivity]) -> tuple[DirectoryActivity, ...]:
    """What the aggressor did in each directory of the finding; in one it was rolled up to, all that lies below."""
    by_place = {activity.directory: activity for activity in activities}
    found = []
    for place in finding.directories:
        below = [a for a in activities if a.directory.rpartition("/")[0] == place]
        if place in by_place:
            found.append(by_place[place])
        elif below:
            found.append(merged_activity(place, below))
    return tuple(found)


def merged_activity(place: str, parts: Sequence[DirectoryActivity]) -> DirectoryActivity:
    """Several directories as one."""
    return DirectoryActivity(
        parts[0].job, place, sum(p.creates for p in parts), sum(p.opens for p in parts), sum(p.closes for p in parts),
        sum(p.unlinks for p in parts), sum(p.outgrown for p in parts),
        tuple(f for p in parts for f in p.existing_files), tuple(c for p in parts for c in p.candidates),
        tuple(s for p in parts for s in p.sizes),
    )


def with_directories(finding: Finding, activities: Sequence[DirectoryActivity]) -> Finding:
    """The finding with the aggressor's directories; as it was where changelogs say nothing of the job."""
    return replace(finding, directories=directories(activities))
