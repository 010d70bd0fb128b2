"""The activity table: which job creates, opens, outgrows and unlinks files in which directory, from changelog records.

Any thread may read the table. It is not locked while paths are looked up or records are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from itertools import chain, islice
from threading import RLock

from lustre.changelog.record import Record
from lustre.fid import Fid
from lustre.filesystem import FileStatus
from tierd.model import Candidate, DirectoryActivity, OpenFile, SharedFile
from tierd.sense.changelogs.counts import CountTables, DirectoryCounts, File, SharedRun
from tierd.sense.changelogs.packed import oldest_time
from tierd.sense.changelogs.roll_up import RollUp
from tierd.sense.changelogs.tallies import MoveCollector, Tally, TallyContent, TallyLimits, TallyMaker, add_tally
from tierd.sense.own_moves import NoOwnMoves, OtherMovers, OwnMoves
from tierd.sense.paths import PathCache, ResolvePath

OperationCounts = tuple[int, int, int, int]
"""Creates, opens of existing files, closes and unlinks."""


def activities_of_job(known: CountTables, job: str, since: float) -> list[DirectoryActivity]:
    """Activities of a job in directories where it was active since a time or has files open, most files first."""
    return sorted([_activity(known, counts) for counts in _recent_counts(known, job, since)], key=_most_files_first)


def counts_of_job(known: CountTables, job: str, since: float) -> list[DirectoryActivity]:
    """Like ``activities_of_job``, without the files. It is cheap: there may be a hundred thousand files."""
    return sorted(map(_summary, _recent_counts(known, job, since)), key=_most_files_first)


def summaries(known: CountTables, since: float) -> list[DirectoryActivity]:
    """Counts of all jobs and directories active since a time, without their files. It is cheap."""
    return [_summary(counts) for counts in known.by_job_and_directory.values() if counts.last_time >= since]


def shared_files(known: CountTables, min_openers: int) -> list[SharedFile]:
    """Files that at least ``min_openers`` have open now, the most open first."""
    found = [SharedFile(file.counts.job, file.path, file.open_count) for file in known.files.values()
             if file.open_count >= min_openers and file.path]
    return sorted(found, key=lambda f: (-f.openers, f.path))


def known_directories(known: CountTables) -> list[str]:
    """All directories in the table, the most recently active first."""
    latest: dict[str, float] = {}
    for (_, directory), counts in known.by_job_and_directory.items():
        latest[directory] = max(latest.get(directory, 0.0), counts.last_time)
    return sorted(latest, key=lambda directory: (-latest[directory], directory))


def _most_files_first(activity: DirectoryActivity) -> tuple[int, str]:
    return -(activity.creates + activity.opens + activity.closes), activity.directory


def _recent_counts(known: CountTables, job: str, since: float) -> list[DirectoryCounts]:
    mine = [known.by_job_and_directory[job, directory] for directory in known.directories.get(job, ())]
    return [counts for counts in mine if counts.last_time >= since or _is_in_use(known, counts, since)]


def _summary(counts: DirectoryCounts) -> DirectoryActivity:
    return DirectoryActivity(counts.job, counts.directory, counts.creates, counts.opens, counts.closes,
                             unlinks=counts.unlinks,
                             outgrown=counts.outgrown, lately=counts.lately, last_time=counts.last_time,
                             write_opens=counts.write_opens, clients=counts.clients)


def _is_in_use(known: CountTables, counts: DirectoryCounts, since: float) -> bool:
    """Whether a file is open, or was closed since a time, by whichever thread."""
    files = known.files
    return any((file := files.get(fid)) is not None and (file.open_count or file.closed_at >= since)
               for fid in counts.files)


def operations_of(known: CountTables, jobs: Collection[str]) -> dict[str, dict[str, OperationCounts]]:
    """Operations of these jobs by directory, since they began there. It is cheap."""
    found: dict[str, dict[str, OperationCounts]] = {}
    for (job, directory), each in known.by_job_and_directory.items():
        if job in jobs:
            found.setdefault(job, {})[directory] = each.creates, each.opens, each.closes, each.unlinks
    return found


def last_record(known: CountTables, jobs: Iterable[str]) -> float:
    """Time of the newest record of any of these jobs; 0 without one."""
    return max((known.by_job_and_directory[job, directory].last_time
                for job in jobs for directory in known.directories.get(job, ())), default=0.0)


def works_in(known: CountTables, jobs: Iterable[str], directory: str, since: float, *, counting_open: bool) -> bool:
    """Whether one of these jobs has records since a time in a directory or just below it.

    ``counting_open``: a file that it has open counts too.
    """
    for job in jobs:
        for place in known.directories.get(job, ()):
            if directory in {place, place.rpartition("/")[0]}:
                counts = known.by_job_and_directory[job, place]
                if counts.last_time >= since or (counting_open and _is_in_use(known, counts, since)):
                    return True
    return False


def _activity(known: CountTables, counts: DirectoryCounts) -> DirectoryActivity:
    mine = [(fid, known.files[fid]) for fid in known.of(counts)]
    return DirectoryActivity(
        counts.job, counts.directory, counts.creates, counts.opens, counts.closes, unlinks=counts.unlinks,
        outgrown=counts.outgrown,
        existing_files=tuple(OpenFile(fid, file.path) for fid, file in mine if not file.created),
        candidates=tuple(Candidate(fid, file.path, file.closed_at, file.created_at, opens=file.reopened)
                         for fid, file in mine if not file.open_count and file.path),
        lately=counts.lately,
        last_time=counts.last_time,
        write_opens=counts.write_opens,
        clients=counts.clients,
    )


def forget_directory(known: CountTables, directory: str) -> None:
    """Remove a directory's counts and their files from the tables."""
    for key in [key for key in known.by_job_and_directory if key[1] == directory]:
        for fid in known.forgotten(key).files:
            known.forget(fid)


def reconcile(known: CountTables, directory: str, found: Mapping[Fid, tuple[str, FileStatus]]) -> None:
    """Correct the table by a scan of a directory. ``found`` has the name and status of its present files.

    Missing files are removed, renamed files get their new names, and new files count for the job that was active there
    last. Whether a file is open is unknown then; a move detects it. If none of the known files is left, the directory
    may be another one with that name, and is removed from the table.
    """
    parts = [
        (counts.last_time, job, counts)
        for (job, place), counts in known.by_job_and_directory.items()
        if place == directory
    ]
    before = {fid for _, _, counts in parts for fid in known.of(counts)}
    if not parts or (before and not before & found.keys()):
        forget_directory(known, directory)
        return
    for fid in before:
        if fid in found:
            known.files[fid].name = found[fid][0].encode("utf-8", "surrogateescape")
            known.files[fid].open_count = 0
            known.shared.pop(fid, None)
        else:
            known.forget(fid)
    _, _, latest = max(parts, key=lambda each: each[:2])
    for fid, (name, status) in found.items():
        if fid not in before:
            known.remember(fid, File(latest, directory, name.encode("utf-8", "surrogateescape"), created=True,
                                     created_at=status.mtime, closed_at=status.mtime))
            known.keep(latest, fid)


BATCH_RECORDS = 512
"""Records added while the table is locked. Other threads can read it between two batches."""
RECENT_SECONDS = 120.0
"""Activity counts as recent for one to two times this period."""


class Batches(Iterable[Record]):
    """Records in the batches of their source, which the table takes as they are."""

    def __init__(self, batches: Iterable[Sequence[Record]]) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Record]:
        return chain.from_iterable(self.batches)


def _batches(records: Iterable[Record]) -> Iterator[Sequence[Record]]:
    """Records in batches. An error of the iterator is raised after the records before it."""
    left, more = iter(records), True
    while more:
        piece: list[Record] = []
        try:
            piece.extend(islice(left, BATCH_RECORDS))
        except BaseException:
            if piece:
                yield piece
            raise
        more = len(piece) == BATCH_RECORDS
        if piece:
            yield piece


class ActivityTable:
    """A bounded table of files and of counts by job and directory, filled from changelog records.

    Any thread may use it; only one may add records at a time.
    """

    def __init__(self, resolve: ResolvePath, own_jobs: Iterable[str] = (), max_files: int = 150_000,
                 max_counts: int = 10_000, max_listed_files: int = 20_000,
                 is_echo: OwnMoves | None = None, executor: Executor | None = None,
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
        self._is_echo = is_echo or NoOwnMoves()
        self._records = RollUp(self._known, self._path, self._movers, own_jobs, self._is_echo)
        self._executor = executor
        self._of_mdt: dict[str, set[Fid]] = {}
        """Files that are known from tallies, by MDT."""
        self._lock = RLock()
        self.unchecked: set[str] = set()
        """Directories of which records may be missing, and which have not been checked again. No act begins there."""
        self.records_read = 0
        """Number of records in the last call."""
        self.oldest_time = float("inf")
        """Time of the oldest record in the last call; infinite without records."""

    def add(self, records: Iterable[Record]) -> None:
        """Add records in the order of one MDT's changelog. Records of tierd's own moves are ignored.

        An error of the iterator is raised after the records before it were added.
        """
        self.records_read, self.oldest_time = 0, float("inf")
        for batch in records.batches if isinstance(records, Batches) else _batches(records):
            self._look_up(batch)
            with self._lock:
                self._records.add(batch)
                if self._making is not None:
                    self._making.note(batch)
            self.records_read += len(batch)
            self.oldest_time = min(self.oldest_time, oldest_time(batch))
            del batch  # its memory is used for the next one

    def _look_up(self, records: Sequence[Record]) -> None:
        """Look up the paths that these records need, several at once if there is an executor."""
        if self._executor is not None:
            self._path.look_up(self._records.fids_without_path(records), self._executor)

    def tally(self) -> TallyContent:
        """What changed since the last call. The table must have been made with ``tallies``."""
        assert self._making is not None
        assert self._collector is not None
        with self._lock:
            closes, self._records.closes = self._records.closes, 0
            return self._making.content(self._collector.take(), closes)

    def add_tallies(self, tallies: Iterable[Tally]) -> None:
        """Add tallies of readers, in the order of each MDT's changelog.

        An error of the iterator is raised after the tallies before it were added.
        """
        self.records_read, self.oldest_time = 0, float("inf")
        for tally in tallies:
            with self._lock:
                self._add_tally(tally)
            self.records_read += tally.records
            if tally.records:
                self.oldest_time = min(self.oldest_time, tally.oldest_time)

    def _add_tally(self, tally: Tally) -> None:
        mine = self._of_mdt.setdefault(tally.mdt, set())
        if tally.begun:  # whether its files are open is unknown to the new reader
            for fid in mine:
                self._known.forget(fid)
            mine.clear()
        add_tally(self._known, tally.content, self._movers, self._is_echo)
        mine.difference_update(tally.content.removed)
        mine.update([file.fid for file in tally.content.files])
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
            forget_directory(self._known, directory)

    def reconcile(self, directory: str, found: Mapping[Fid, tuple[str, FileStatus]]) -> None:
        """Correct the table by the present files of a directory."""
        with self._lock:
            reconcile(self._known, directory, found)

    def places(self) -> list[str]:
        """All directories in the table, the most recently active first."""
        with self._lock:
            return known_directories(self._known)

    def files_by_sequence(self) -> dict[str, dict[int, tuple[Fid, str]]]:
        """FID and name of one known file of each directory, for each sequence of FIDs in it."""
        with self._lock:
            files = list(self._known.files.items())
        latest: dict[str, dict[int, tuple[Fid, File]]] = {}
        for fid, file in files:
            if file.name:
                latest.setdefault(file.directory, {})[fid.sequence] = fid, file
        return {place: {sequence: (fid, file.name.decode("utf-8", "surrogateescape"))
                        for sequence, (fid, file) in mine.items()} for place, mine in latest.items()}

    def of_job(self, job: str, since: float) -> list[DirectoryActivity]:
        """Activities of a job in directories where it was active since a time or has files open, most files first."""
        with self._lock:
            return activities_of_job(self._known, job, since)

    def counts_of_job(self, job: str, since: float) -> list[DirectoryActivity]:
        """Counts of a job by directory since a time, without its files. It is cheap."""
        with self._lock:
            return counts_of_job(self._known, job, since)

    def operations_of(self, jobs: Collection[str]) -> dict[str, dict[str, OperationCounts]]:
        """Operations of these jobs by directory, since they began there. It is cheap."""
        with self._lock:
            return operations_of(self._known, jobs)

    def last_record(self, jobs: Iterable[str]) -> float:
        """Time of the newest record of any of these jobs; 0 without one."""
        with self._lock:
            return last_record(self._known, jobs)

    def works_in(self, jobs: Iterable[str], directory: str, since: float, *, counting_open: bool) -> bool:
        """Whether one of these jobs has records since a time in a directory or just below it.

        ``counting_open``: a file that it has open counts too.
        """
        with self._lock:
            return works_in(self._known, jobs, directory, since, counting_open=counting_open)

    def summaries(self, since: float) -> list[DirectoryActivity]:
        """Counts of all jobs and directories active since a time, without their files. It is cheap."""
        with self._lock:
            return summaries(self._known, since)

    def shared_files(self, min_openers: int) -> list[SharedFile]:
        """Files that at least ``min_openers`` have open now, the most open first. None without CLOSE records."""
        with self._lock:
            return shared_files(self._known, min_openers) if self._records.closes else []
