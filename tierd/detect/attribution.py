"""Finds the directories in which the aggressor of a finding works."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tierd.detect.groups import grouped
from tierd.model import MAX_CLIENTS, Activities, DirectoryActivity, Finding

MIN_SHARE = 0.1
"""Minimum share of the job's file operations for a directory to be named."""
STAY_SECONDS = 30.0
"""A job has left a directory if its last record there is older than its newest record by this time."""
MAX_DIRECTORIES = 512
"""Maximum number of directories named for one job. If there are more, their parents are named too."""
ACTIVE_SECONDS = 60.0
"""A job works in a directory for this long after its last record there. A choice: less than the time between two runs
of a job name, which may use different directories, and more than the pauses between the steps of one run."""
COVERED_SHARE = 0.5
"""If the active directories have a smaller share of the operations, their parents are named instead."""
Weighed = list[tuple[int, DirectoryActivity]]


def _weighed(activities: Sequence[DirectoryActivity]) -> Weighed:
    """Directories with the files that a job created or opened there in the last minutes, or else since it began.

    The busiest come first.
    A job may keep its name for months: old work elsewhere must not hide where the job works now. A job that keeps its
    files open has no recent records, but still works there. Paths and FIDs of deleted directories are unknown.
    """
    lately = any(activity.lately for activity in activities)
    return sorted(((each.lately if lately else each.creates + each.opens, each) for each in activities
                   if each.directory), key=lambda each: (-each[0], each[1].directory))


def _active(weighed: Weighed) -> Weighed:
    """Directories with at least ``MIN_SHARE`` of the job's file operations, the busiest first."""
    least = MIN_SHARE * sum(weight for weight, _ in weighed)
    return [(weight, activity) for weight, activity in weighed if weight >= least > 0]


def directories(activities: Sequence[DirectoryActivity]) -> tuple[str, ...]:
    """Directories to name: the active ones, or up to ``MAX_DIRECTORIES`` in which the job stays, or their parents.

    If a job makes a new directory for each step, the parent is named: the next directory will be there too. If a job
    stays in its directories, the parent is wrong: new files do not inherit from it, and other jobs use it. Lustre gives
    a new file the default layout of its own directory or of the root, never of a directory between them
    (``lod_get_default_lov_striping`` in lustre/lod/lod_object.c). If there are too many directories, the busiest are
    named, and the parents for future directories.
    """
    own, above = _named(activities)
    return tuple(dict.fromkeys((*own, *above)))


def _named(activities: Sequence[DirectoryActivity]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    weighed = _weighed(activities)
    total = sum(weight for weight, _ in weighed)
    active = _active(weighed)
    if sum(weight for weight, _ in active) >= COVERED_SHARE * total:
        return tuple(activity.directory for _, activity in active), ()
    latest = max((a.last_time for _, a in weighed), default=0.0)
    staying = [(weight, a) for weight, a in weighed  # where the job is still active, without negligible directories
               if a.last_time >= latest - STAY_SECONDS and weight >= MIN_SHARE * weighed[0][0]]
    stays = sum(weight for weight, _ in staying) >= COVERED_SHARE * total
    named = tuple(activity.directory for _, activity in staying[:MAX_DIRECTORIES]) if stays else ()
    if stays and len(staying) <= MAX_DIRECTORIES:
        return named, ()
    above: Counter[str] = Counter()
    for weight, activity in weighed:
        if activity.directory.startswith("/"):
            above[activity.directory.rpartition("/")[0] or "/"] += weight
    return named, tuple(place for place, count in above.most_common() if count >= MIN_SHARE * total and place != "/")


def activities_of_finding(finding: Finding, activities: Sequence[DirectoryActivity]) -> tuple[DirectoryActivity, ...]:
    """Activity of the aggressor in each directory of the finding. For a parent it is the sum of its subdirectories."""
    by_place = {activity.directory: activity for activity in activities}
    found = []
    for place in finding.directories:
        below = [a for a in activities if a.directory.rpartition("/")[0] == place]
        if place in by_place:
            found.append(by_place[place])
        elif below:
            found.append(merged_activity(below[0].job, place, below))
    return tuple(found)


def merged_activity(job: str, place: str, parts: Sequence[DirectoryActivity]) -> DirectoryActivity:
    return DirectoryActivity(
        job, place, creates=sum(p.creates for p in parts), opens=sum(p.opens for p in parts),
        closes=sum(p.closes for p in parts), unlinks=sum(p.unlinks for p in parts),
        outgrown=sum(p.outgrown for p in parts), existing_files=tuple(f for p in parts for f in p.existing_files),
        candidates=tuple(c for p in parts for c in p.candidates), sizes=tuple(s for p in parts for s in p.sizes),
        lately=sum(p.lately for p in parts), last_time=max(p.last_time for p in parts),
        write_opens=sum(p.write_opens for p in parts), creates_before=sum(p.creates_before for p in parts),
        clients=tuple(dict.fromkeys(client for p in parts for client in p.clients))[:MAX_CLIENTS])


def activities_of_jobs(activities: Activities, jobs: Sequence[str], name: str,
                       since: float) -> Sequence[DirectoryActivity]:
    """Activities of several jobs as those of one, directory by directory, the most files first."""
    if len(jobs) == 1:
        return activities(jobs[0], since)
    parts = grouped((activity.directory, activity) for job in jobs for activity in activities(job, since))
    found = [merged_activity(name, place, each) for place, each in parts.items()]
    return sorted(found, key=lambda a: (-(a.creates + a.opens + a.closes), a.directory))


def main_directory(activities: Activities, since: float, job: str) -> str:
    """Directory in which a job works most; "" if the changelogs do not have the job."""
    active = _active(_weighed(activities(job, since)))
    return active[0][1].directory if active else ""


def directories_of(finding: Finding, activities: Activities, since: float, *, now: bool) -> tuple[str, ...]:
    """The directories of the aggressor of a finding. There are none if the changelogs do not name the job.

    ``now``: those in which it works now. Earlier ones, perhaps of an earlier run with the same job id, then show only
    whether it makes a directory for each of its steps.
    """
    every = activities(finding.aggressor, since)
    if not now:
        return directories(every)
    own, above = _named(every)
    working = at_work_now(finding, activities, finding.time)
    if own or not above:
        return directories(working)
    around = {activity.directory.rpartition("/")[0] for activity in working}
    return tuple(place for place in above if place in around)


def at_work_now(finding: Finding, activities: Activities, time: float) -> Sequence[DirectoryActivity]:
    """Activities of the aggressor in directories where it works now: it has records there, or files open.

    A job of whole small files opens or creates one at least, so files that are only open are of another run.
    """
    since = time - ACTIVE_SECONDS
    now = activities(finding.aggressor, since)
    return [a for a in now if a.last_time >= since] if finding.evidence.shown_by_records else now
