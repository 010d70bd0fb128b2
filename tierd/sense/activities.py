"""What tallies of changelog records tell the rest of tierd: a job's activity by directory, and files many have open."""

from __future__ import annotations

from tierd.facts import SharedFile
from tierd.model import Candidate, DirectoryActivity, OpenFile
from tierd.sense.tallies import Tallies, Tally


def of_job(known: Tallies, job: str, since: float) -> list[DirectoryActivity]:
    """Where the job has been active since then or still has files open, most files first."""
    return sorted([_activity(known, tally) for tally in _lately(known, job, since)], key=_most_files_first)


def counts_of_job(known: Tallies, job: str, since: float) -> list[DirectoryActivity]:
    """The same without the files, of which there may be a hundred thousand: cheap."""
    return sorted(map(_counts, _lately(known, job, since)), key=_most_files_first)


def summaries(known: Tallies, since: float) -> list[DirectoryActivity]:
    """All jobs and directories active since then, with their counts and without their files: cheap."""
    return [_counts(tally) for tally in known.by_place.values() if tally.last_time >= since]


def shared_files(known: Tallies, least_openers: int) -> list[SharedFile]:
    """Files that so many have open at the same time, those with the most first."""
    found = [SharedFile(file.tally.job, file.path, file.open_count) for file in known.files.values()
             if file.open_count >= least_openers and file.path]
    return sorted(found, key=lambda f: (-f.openers, f.path))


def places(known: Tallies) -> list[str]:
    """Directories something is known of, the most recently active first."""
    latest: dict[str, float] = {}
    for (_, directory), tally in known.by_place.items():
        latest[directory] = max(latest.get(directory, 0.0), tally.last_time)
    return sorted(latest, key=lambda directory: (-latest[directory], directory))


def _most_files_first(activity: DirectoryActivity) -> tuple[int, str]:
    return -(activity.creates + activity.opens + activity.closes), activity.directory


def _lately(known: Tallies, job: str, since: float) -> list[Tally]:
    mine = [known.by_place[job, directory] for directory in known.directories.get(job, ())]
    return [tally for tally in mine if tally.last_time >= since or _has_open(known, tally)]


def _counts(tally: Tally) -> DirectoryActivity:
    return DirectoryActivity(tally.job, tally.directory, tally.creates, tally.opens, tally.closes, tally.unlinks,
                             tally.outgrown, lately=tally.lately, last_time=tally.last_time)


def _has_open(known: Tallies, tally: Tally) -> bool:
    files = known.files
    return any(fid in files and files[fid].open_count for fid in tally.files)


def _activity(known: Tallies, tally: Tally) -> DirectoryActivity:
    mine = [(fid, known.files[fid]) for fid in known.of(tally)]
    return DirectoryActivity(
        tally.job, tally.directory, tally.creates, tally.opens, tally.closes, tally.unlinks, tally.outgrown,
        existing_files=tuple(OpenFile(fid, file.path) for fid, file in mine if not file.created),
        candidates=tuple(Candidate(fid, file.path, file.closed_at, file.created_at, opens=file.reopened)
                         for fid, file in mine if not file.open_count and file.path),
        lately=tally.lately,
        last_time=tally.last_time,
    )
