"""From the job to its directories: where a finding's aggressor makes its noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tierd.model import DirectoryActivity, Finding

LEAST_SHARE = 0.1
"""A directory with less of the job's files than this is not where the noise is."""
COVERED = 0.5
"""Directories that together hold less of it do not tell where the noise is; what they lie in does."""


def weight(activity: DirectoryActivity) -> int:
    """Files a job worked on in a directory."""
    return activity.creates + activity.opens


def active_directories(activities: Sequence[DirectoryActivity]) -> tuple[DirectoryActivity, ...]:
    """Directories that hold a fair part of what the job does to files, the busiest first."""
    total = sum(map(weight, activities))
    return tuple(sorted((a for a in activities if total and weight(a) >= LEAST_SHARE * total),
                        key=lambda a: (-weight(a), a.directory)))


def directories(activities: Sequence[DirectoryActivity]) -> tuple[str, ...]:
    """Where the noise is: the active directories, or, for a job with very many, the ones that they lie in."""
    total = sum(map(weight, activities))
    active = active_directories(activities)
    if sum(map(weight, active)) >= COVERED * total:
        return tuple(a.directory for a in active)
    above: Counter[str] = Counter()
    for activity in activities:
        if activity.directory.startswith("/"):
            above[activity.directory.rpartition("/")[0] or "/"] += weight(activity)
    return tuple(place for place, count in above.most_common() if count >= LEAST_SHARE * total and place != "/")


def located(finding: Finding, activities: Sequence[DirectoryActivity]) -> tuple[DirectoryActivity, ...]:
    """What the aggressor did in each directory of the finding; in one it was rolled up to, all that lies below."""
    by_place = {activity.directory: activity for activity in activities}
    found = []
    for place in finding.directories:
        below = [a for a in activities if a.directory.rpartition("/")[0] == place]
        if place in by_place:
            found.append(by_place[place])
        elif below:
            found.append(together(place, below))
    return tuple(found)


def together(place: str, parts: Sequence[DirectoryActivity]) -> DirectoryActivity:
    """Several directories as one."""
    return DirectoryActivity(
        parts[0].job, place, sum(p.creates for p in parts), sum(p.opens for p in parts), sum(p.closes for p in parts),
        sum(p.unlinks for p in parts), sum(p.outgrown for p in parts),
        tuple(f for p in parts for f in p.existing_files), tuple(c for p in parts for c in p.candidates),
        tuple(s for p in parts for s in p.sizes),
    )


def attribute(finding: Finding, activities: Sequence[DirectoryActivity]) -> Finding:
    """The finding with the aggressor's directories; as it was where changelogs say nothing of the job."""
    return replace(finding, directories=directories(activities))
