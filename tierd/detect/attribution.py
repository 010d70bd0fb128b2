"""From the job to its directories: where a finding's aggressor makes its noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tierd.model import DirectoryActivity, Finding

LEAST_SHARE = 0.1
"""A directory with less of the job's files than this is not where the noise is."""


def active_directories(activities: Sequence[DirectoryActivity]) -> tuple[DirectoryActivity, ...]:
    """Directories that hold a fair part of what the job does to files, the busiest first."""
    def weight(activity: DirectoryActivity) -> int:
        return activity.creates + activity.opens

    total = sum(map(weight, activities))
    return tuple(sorted((a for a in activities if total and weight(a) >= LEAST_SHARE * total),
                        key=lambda a: (-weight(a), a.directory)))


def attribute(finding: Finding, activities: Sequence[DirectoryActivity]) -> Finding:
    """The finding with the aggressor's directories; as it was where changelogs say nothing of the job."""
    return replace(finding, directories=tuple(a.directory for a in active_directories(activities)))
