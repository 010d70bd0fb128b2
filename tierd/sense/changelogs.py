"""Changelog records, rolled up by (job, directory): who creates, opens, outgrows and unlinks where.

What records say is in :mod:`tierd.sense.roll_up`, what is kept of it in :mod:`tierd.sense.tallies`, what it tells in
:mod:`tierd.sense.activities`, and how it is put right in :mod:`tierd.sense.reconcile`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from threading import RLock

from lustre.changelog.record import Record
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

PIECE = 512
"""Records taken in at a time: between two pieces others may look at the table."""
MARK_SECONDS = 120.0
"""What is older than one to two of these is not of late."""


class ActivityTable:
    """A bounded table of files and of (job, directory) tallies, and the records that go into it.

    For any thread; one at a time adds records. It is not locked while paths are asked for, nor while records are read.
    """

    def __init__(self, resolve: Resolve, own_jobs: Iterable[str] = (), max_files: int = 150_000,
                 max_tallies: int = 10_000, max_files_per_tally: int = 20_000,
                 is_echo: Echoes | None = None, executor: Executor | None = None) -> None:
        """``executor`` asks for several paths at the same time; without one each is asked for when it is needed."""
        self._known = Tallies(max_files, max_tallies, max_files_per_tally)
        self._marked_at: float | None = None
        self._path = PathCache(resolve)
        self._movers = OtherMovers(max_tallies)
        self._records = RollUp(self._known, self._path, self._movers, own_jobs, is_echo or NoEchoes())
        self._executor = executor
        self._lock = RLock()
        self.heard = 0
        """Records of the last call."""
        self.oldest = float("inf")
        """Time of the oldest of them; infinite where there were none."""

    def add(self, records: Iterable[Record]) -> None:
        """Take records in, in the order of one MDT's changelog. Our own (by job id) are not activity.

        What was read before an error that reading raises is taken in.
        """
        self.heard, self.oldest = 0, float("inf")
        piece: list[Record] = []
        try:
            for record in records:
                piece.append(record)
                if len(piece) == PIECE:
                    self._add(piece)
                    piece = []
        finally:
            if piece:
                self._add(piece)

    def _add(self, piece: Sequence[Record]) -> None:
        if self._executor is not None:
            self._path.look_up(self._records.fids_without_path(piece), self._executor)
        with self._lock:
            self._records.add(piece)
        self.heard += self._records.heard
        self.oldest = min(self.oldest, self._records.oldest)

    def mark(self, now: float) -> None:
        """Tell what is of late from what was before; called in each cycle."""
        with self._lock:
            if self._marked_at is None or not 0 <= now - self._marked_at < MARK_SECONDS:
                self._marked_at = now
                self._known.mark()

    def mover_in(self, directory: str, since: float) -> str:
        """Job that has moved several files of a directory since then, which is not ours; "" for none."""
        with self._lock:
            return self._movers.at_work(directory, since)

    def forget_paths(self) -> None:
        """Records were missed: directories may have been renamed."""
        with self._lock:
            self._path.clear()

    def forget_directory(self, directory: str) -> None:
        """Nothing is known of it any more, nor of its files."""
        with self._lock:
            reconcile.forget_directory(self._known, directory)

    def reconcile(self, directory: str, found: Mapping[Fid, tuple[str, FileStatus]]) -> None:
        """Put right what is known of a directory, from the files that are there now."""
        with self._lock:
            reconcile.reconcile(self._known, directory, found)

    def places(self) -> list[str]:
        """Directories something is known of, the most recently active first."""
        with self._lock:
            return activities.places(self._known)

    def of_job(self, job: str, since: float) -> list[DirectoryActivity]:
        """Where the job has been active since then or still has files open, most files first."""
        with self._lock:
            return activities.of_job(self._known, job, since)

    def counts_of_job(self, job: str, since: float) -> list[DirectoryActivity]:
        """The same without the files: cheap."""
        with self._lock:
            return activities.counts_of_job(self._known, job, since)

    def summaries(self, since: float) -> list[DirectoryActivity]:
        """All jobs and directories active since then, with their counts and without their files: cheap."""
        with self._lock:
            return activities.summaries(self._known, since)

    def shared_files(self, least_openers: int) -> list[SharedFile]:
        """Files that so many have open at the same time, those with the most first; none where no close is recorded."""
        with self._lock:
            return activities.shared_files(self._known, least_openers) if self._records.closes else []
