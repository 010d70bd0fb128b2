"""Metadata operations of jobs that no MDT lists in its ``job_stats``, from changelog records.

An MDT of Lustre 2.17.57 was seen to list a job no more after its entry had been cleaned up, while the job made
thousands of files and the changelog named it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from tierd.model import NamespaceLoad, Window
from tierd.sense.changelogs.table import OperationCounts

UNLISTED_FACTOR = 4.0
"""A job counts as not listed if the changelogs have more than so many times its operations in ``job_stats``. A choice:
the two are read at different times, so they differ in the windows in which a job begins or ends."""
LATE_SECONDS = 15.0
"""Records this much older than the window are not those of the window: tierd catches up with missed ones. A choice."""
ByDirectory = Mapping[str, OperationCounts]
NONE: OperationCounts = (0, 0, 0, 0)


class UnlistedJobs:
    """Adds them to windows. Call it for each window in turn."""

    def __init__(self, counted: Callable[[Collection[str]], Mapping[str, ByDirectory]]) -> None:
        """``counted`` returns the counts of jobs since they began in each directory."""
        self._counted = counted
        self._before: Mapping[str, ByDirectory] = {}
        """As of the window before."""

    def completed(self, window: Window, oldest_record: float) -> Window:
        """The window with these operations. ``oldest_record`` is the time of the oldest record that was read last."""
        before, self._before = self._before, self._counted(window.jobs)
        if oldest_record < window.start - LATE_SECONDS:
            return window
        found: dict[str, NamespaceLoad] = {}
        for job, now in self._before.items():
            if job not in before:
                continue
            listed = window.namespace.get(job, NamespaceLoad(job))
            recorded = _load(job, before[job], now)
            if _own(recorded) > UNLISTED_FACTOR * _own(listed):
                found[job] = replace(recorded, other_operations=listed.other_operations)
        return replace(window, namespace={**window.namespace, **found}) if found else window


def _load(job: str, before: ByDirectory, now: ByDirectory) -> NamespaceLoad:
    """Operations since the window before. Counts that were dropped from the table began at zero again."""
    more = [0, 0, 0, 0]
    for directory, counts in now.items():
        earlier = before.get(directory, NONE)
        if any(n < b for b, n in zip(earlier, counts, strict=True)):
            earlier = NONE
        more = [total + n - b for total, b, n in zip(more, earlier, counts, strict=True)]
    creates, opens, closes, unlinks = more
    return NamespaceLoad(job, opens + creates, closes, creates, unlinks)  # a file is opened as it is made


def _own(load: NamespaceLoad) -> float:
    """Operations that changelogs record, if their masks have all of these types."""
    return load.opens + load.closes + load.creates + load.unlinks
