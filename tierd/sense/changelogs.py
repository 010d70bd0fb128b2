"""Changelog records, rolled up by (job, directory): who creates, opens, outgrows and unlinks where.

What records say is in :mod:`tierd.sense.roll_up`, what is kept of it in :mod:`tierd.sense.tallies`, what it tells in
:mod:`tierd.sense.activities`, and how it is put right in :mod:`tierd.sense.reconcile`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lustre.changelog import Record
from lustre.fid import Fid
from lustre.filesystem import FileStatus
from tierd.facts import SharedFile
from tierd.model import DirectoryActivity
from tierd.sense import activities, reconcile
from tierd.sense.echo import Echoes, NoEchoes
from tierd.sense.other_movers import OtherMovers
from tierd.sense.paths import PathCache, Resolve
from tierd.sense.roll_up import RollUp
from tierd.sense.tallies import Tallies

MARK_SECONDS = 120.0
"""What is older than one to two of these is not of late."""


class ActivityTable:
    """A bounded table of files and of (job, directory) tallies, and the records that go into it."""

    def __init__(self, resolve: Resolve, own_jobs: Iterable[str] = (), max_files: int = 150_000,
                 max_tallies: int = 10_000, max_files_per_tally: int = 20_000,
                 is_echo: Echoes | None = None) -> None:
        self._known = Tallies(max_files, max_tallies, max_files_per_tally)
        self._marked_at: float | None = None
        self._path = PathCache(resolve)
        self._movers = OtherMovers(max_tallies)
        self._records = RollUp(self._known, self._path, self._movers, own_jobs, is_echo or NoEchoes())

    @property
    def heard(self) -> int:
        """Records of the last call."""
        return self._records.heard

    @property
    def oldest(self) -> float:
        """Time of the oldest of them; infinite where there were none."""
        return self._records.oldest

    def add(self, records: Iterable[Record]) -> None:
        """Take records in, in the order of one MDT's changelog. Our own (by job id) are not activity."""
        self._records.add(records)

    def mark(self, now: float) -> None:
        """Tell what is of late from what was before; called in each cycle."""
        if self._marked_at is None or not 0 <= now - self._marked_at < MARK_SECONDS:
            self._marked_at = now
            self._known.mark()

    def mover_in(self, directory: str, since: float) -> str:
        """Job that has moved several files of a directory since then, which is not ours; "" for none."""
        return self._movers.at_work(directory, since)

    def forget_paths(self) -> None:
        """Records were missed: directories may have been renamed."""
        self._path.clear()

    def forget_directory(self, directory: str) -> None:
        """Nothing is known of it any more, nor of its files."""
        reconcile.forget_directory(self._known, directory)

    def reconcile(self, directory: str, found: Mapping[Fid, tuple[str, FileStatus]]) -> None:
        """Put right what is known of a directory, from the files that are there now."""
        reconcile.reconcile(self._known, directory, found)

    def places(self) -> list[str]:
        """Directories something is known of, the most recently active first."""
        return activities.places(self._known)

    def of_job(self, job: str, since: float) -> list[DirectoryActivity]:
        """Where the job has been active since then or still has files open, most files first."""
        return activities.of_job(self._known, job, since)

    def counts_of_job(self, job: str, since: float) -> list[DirectoryActivity]:
        """The same without the files: cheap."""
        return activities.counts_of_job(self._known, job, since)

    def summaries(self, since: float) -> list[DirectoryActivity]:
        """All jobs and directories active since then, with their counts and without their files: cheap."""
        return activities.summaries(self._known, since)

    def shared_files(self, least_openers: int) -> list[SharedFile]:
        """Files that so many have open at the same time, those with the most first; none where no close is recorded."""
        return activities.shared_files(self._known, least_openers) if self._records.closes else []
