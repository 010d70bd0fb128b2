"""The activity table: which job creates, opens, outgrows and unlinks files in which directory, from changelog records.

Any thread may read the table. It is not locked while paths are looked up or records are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from threading import RLock

from lustre.changelog.record import Record
from lustre.fid import Fid
from lustre.filesystem import FileStatus
from tierd.model import Candidate, DirectoryActivity, OpenFile, SharedFile
from tierd.sense.changelogs.counts import COUNTED, CountTables, DirectoryCounts, File, SharedRun
from tierd.sense.changelogs.packed import oldest_time
from tierd.sense.changelogs.roll_up import RollUp
from tierd.sense.changelogs.tallies import MoveCollector, Tally, TallyContent, TallyLimits, TallyMaker, add_tally
from tierd.sense.own_moves import OtherMovers, OwnMoves
from tierd.sense.paths import PathCache, ResolvePath

OperationCounts = tuple[int, int, int, int]
"""Creates, opens of existing files, closes and unlinks."""
Batch = Sequence[Record] | Tally
"""Records of one MDT, or the tally of a reader on another node."""
RECENT_SECONDS = 120.0
"""Activity counts as recent for one to two times this period."""


class ActivityTable:
    """A bounded table of files and of counts by job and directory, filled from changelog records.

    Any thread may use it; only one may add records at a time.
    """

    def __init__(self, resolve: ResolvePath, max_files: int = 150_000, max_counts: int = 10_000,
                 max_listed_files: int = 20_000, is_echo: OwnMoves | None = None, executor: Executor | None = None,
                 tallies: TallyLimits | None = None) -> None:
        """``executor`` looks up several paths at once. Without it, each path is looked up when it is needed.

        With ``tallies``, the table belongs to a reader, which calls ``tally`` at the end of each window.
        """
        self._known = CountTables(max_files, max_counts, max_listed_files)
        self._marked_at: float | None = None
        self._path = PathCache(resolve)
        self._collector = MoveCollector(tallies.max_moves) if tallies is not None else None
        self._making = TallyMaker(self._known, tallies) if tallies is not None else None
        self._movers = self._collector or OtherMovers(max_counts)
        self._is_echo = is_echo or OwnMoves()
        self._records = RollUp(self._known, self._path, self._movers, self._is_echo)
        self._executor = executor
        self._of_mdt: dict[str, set[Fid]] = {}
        """Files that are known from tallies, by MDT."""
        self._lock = RLock()
        self.unchecked: set[str] = set()
        """Directories of which records may be missing, and which have not been checked again. No act begins there."""
        self.records_read = 0
        """Number of records in the last call of ``add``."""
        self.oldest_time = float("inf")
        """Time of the oldest record in the last call of ``add``; infinite without records."""

    def add(self, batches: Iterable[Batch]) -> None:
        """Add records or tallies in the order of each MDT's changelog. Records of tierd's own moves are ignored.

        An error of the iterator is raised after the batches before it were added. Other threads can read the table
        between two batches.
        """
        self.records_read, self.oldest_time = 0, float("inf")
        for batch in batches:
            if isinstance(batch, Tally):
                count, oldest = batch.records, batch.oldest_time if batch.records else float("inf")
                with self._lock:
                    self._add_tally(batch)
            else:
                count, oldest = len(batch), oldest_time(batch)
                if self._executor is not None:
                    self._path.look_up(self._records.fids_without_path(batch), self._executor)
                with self._lock:
                    self._records.add(batch)
                    if self._making is not None:
                        self._making.note(batch)
            self.records_read += count
            self.oldest_time = min(self.oldest_time, oldest)
            del batch  # its memory is used for the next one

    def tally(self) -> TallyContent:
        """What changed since the last call. The table must have been made with ``tallies``."""
        assert self._making is not None
        assert self._collector is not None
        with self._lock:
            closes, self._records.closes = self._records.closes, 0
            return self._making.content(self._collector.take(), closes)

    def _add_tally(self, tally: Tally) -> None:
        known = self._of_mdt.setdefault(tally.mdt, set())
        if tally.begun:  # whether its files are open is unknown to the new reader
            for fid in known:
                self._known.forget(fid)
            known.clear()
        add_tally(self._known, tally.content, self._movers, self._is_echo)
        known.difference_update(tally.content.removed)
        known.update([file.fid for file in tally.content.files])
        self._records.closes += tally.content.closes

    def mark(self, now: float) -> None:
        """Begin a new period of recent activity every ``RECENT_SECONDS``. Call it in each cycle."""
        with self._lock:
            if self._marked_at is None or not 0 <= now - self._marked_at < RECENT_SECONDS:
                self._marked_at = now
                self._known.mark()

    def other_mover_in(self, directory: str, since: float) -> str:
        """Job id of another mover that has moved several files of a directory since a time; "" for none."""
        with self._lock:
            return self._movers.at_work(directory, since)

    def forget_paths(self) -> None:
        """Drop all cached paths. After missed records, directories may have been renamed."""
        with self._lock:
            self._path.clear()

    def renamed(self, fids: Iterable[Fid]) -> None:
        """Drop the paths that contain these directories, which another reader saw renamed."""
        with self._lock:
            for fid in fids:
                self._path.renamed(fid)

    def shared_runs(self) -> list[SharedRun]:
        """Runs on shared files that have ended since the last call. A table that is filled by tallies knows none."""
        with self._lock:
            found, self._known.shared_runs = self._known.shared_runs, []
            return found

    def begin_layouts(self, since: Mapping[str, float]) -> None:
        """Count files that outgrow a component only if they were made since their directory got its default layout.

        A reader counts all files of its MDT, because it reads no layouts.
        """
        with self._lock:
            self._known.layouts_since = dict(since)

    def forget_directory(self, directory: str) -> None:
        """Remove a directory's counts and their files."""
        with self._lock:
            for counts in self._known.of_directory(directory):
                for fid in self._known.forgotten((counts.job, directory)).files:
                    self._known.forget(fid)

    def reconcile(self, directory: str, found: Mapping[Fid, tuple[str, FileStatus]]) -> None:
        """Correct the table by a scan of a directory. ``found`` has the name and status of its present files.

        Missing files are removed, renamed files get their new names, and new files count for the job that was active
        there last. Whether a file is open is unknown then; a move detects it. If none of the known files is left, the
        directory may be another one with that name, and is removed from the table.
        """
        known = self._known
        with self._lock:
            every = known.of_directory(directory)
            before = {fid for counts in every for fid in known.of(counts)}
            if not every or (before and not before & found.keys()):
                self.forget_directory(directory)
                return
            for fid in before:
                if fid in found:
                    known.files[fid].name = found[fid][0].encode("utf-8", "surrogateescape")
                    known.files[fid].open_count = 0
                    known.shared.pop(fid, None)
                else:
                    known.forget(fid)
            latest = max(every, key=lambda counts: (counts.last_time, counts.job))
            for fid, (name, status) in found.items():
                if fid not in before:
                    known.remember(fid, File(latest, directory, name.encode("utf-8", "surrogateescape"), created=True,
                                             created_at=status.mtime, closed_at=status.mtime))
                    known.keep(latest, fid)

    def places(self) -> list[str]:
        """All directories in the table, the most recently active first."""
        latest: dict[str, float] = {}
        with self._lock:
            for (_, directory), counts in self._known.by_job_and_directory.items():
                latest[directory] = max(latest.get(directory, 0.0), counts.last_time)
        return sorted(latest, key=lambda directory: (-latest[directory], directory))

    def files_by_sequence(self) -> dict[str, dict[int, tuple[Fid, str]]]:
        """FID and name of one known file of each directory, for each sequence of FIDs in it."""
        with self._lock:
            files = list(self._known.files.items())
        latest: dict[str, dict[int, tuple[Fid, File]]] = {}
        for fid, file in files:
            if file.name:
                latest.setdefault(file.directory, {})[fid.sequence] = fid, file
        return {place: {sequence: (fid, file.name.decode("utf-8", "surrogateescape"))
                        for sequence, (fid, file) in by_sequence.items()} for place, by_sequence in latest.items()}

    def of_job(self, job: str, since: float) -> list[DirectoryActivity]:
        """Activities of a job in directories where it was active since a time or has files open, most files first."""
        with self._lock:
            return sorted([self._with_files(counts) for counts in self._recent(job, since)], key=_most_files_first)

    def counts_of_job(self, job: str, since: float) -> list[DirectoryActivity]:
        """Like ``of_job``, without the files. It is cheap: there may be a hundred thousand files."""
        with self._lock:
            return sorted(map(_activity, self._recent(job, since)), key=_most_files_first)

    def summaries(self, since: float) -> list[DirectoryActivity]:
        """Counts of all jobs and directories active since a time, without their files. It is cheap."""
        with self._lock:
            return [_activity(counts) for counts in self._known.by_job_and_directory.values()
                    if counts.last_time >= since]

    def _recent(self, job: str, since: float) -> list[DirectoryCounts]:
        return [counts for counts in self._known.of_job(job)
                if counts.last_time >= since or self._is_in_use(counts, since)]

    def _is_in_use(self, counts: DirectoryCounts, since: float) -> bool:
        """Whether a file is open, or was closed since a time, by whichever thread."""
        files = self._known.files
        return any((file := files.get(fid)) is not None and (file.open_count or file.closed_at >= since)
                   for fid in counts.files)

    def _with_files(self, counts: DirectoryCounts) -> DirectoryActivity:
        files = [(fid, self._known.files[fid]) for fid in self._known.of(counts)]
        return _activity(
            counts, tuple(OpenFile(fid, file.path) for fid, file in files if not file.created),
            tuple(Candidate(fid, file.path, file.closed_at, file.created_at, opens=file.reopened)
                  for fid, file in files if not file.open_count and file.path))

    def operations_of(self, jobs: Collection[str]) -> dict[str, dict[str, OperationCounts]]:
        """Operations of these jobs by directory, since they began there. It is cheap."""
        with self._lock:
            return {job: {each.directory: (each.creates, each.opens, each.closes, each.unlinks) for each in every}
                    for job in jobs if (every := self._known.of_job(job))}

    def last_record(self, jobs: Iterable[str]) -> float:
        """Time of the newest record of any of these jobs; 0 without one."""
        with self._lock:
            return max((counts.last_time for job in jobs for counts in self._known.of_job(job)), default=0.0)

    def works_in(self, jobs: Iterable[str], directory: str, since: float, *, counting_open: bool) -> bool:
        """Whether one of these jobs has records since a time in a directory or just below it.

        ``counting_open``: a file that it has open counts too.
        """
        with self._lock:
            return any(counts.last_time >= since or (counting_open and self._is_in_use(counts, since))
                       for job in jobs for counts in self._known.of_job(job)
                       if directory in {counts.directory, counts.directory.rpartition("/")[0]})

    def shared_files(self, min_openers: int) -> list[SharedFile]:
        """Files that at least ``min_openers`` have open now, the most open first. None without CLOSE records."""
        if not self._records.closes:
            return []
        with self._lock:
            found = [SharedFile(file.counts.job, file.path, file.open_count) for file in self._known.files.values()
                     if file.open_count >= min_openers and file.path]
        return sorted(found, key=lambda f: (-f.openers, f.path))


def _most_files_first(activity: DirectoryActivity) -> tuple[int, str]:
    return -(activity.creates + activity.opens + activity.closes), activity.directory


def _activity(counts: DirectoryCounts, existing: tuple[OpenFile, ...] = (),
              candidates: tuple[Candidate, ...] = ()) -> DirectoryActivity:
    return DirectoryActivity(
        counts.job, counts.directory, existing_files=existing, candidates=candidates, lately=counts.lately,
        last_time=counts.last_time, clients=counts.clients, **{name: getattr(counts, name) for name in COUNTED})
