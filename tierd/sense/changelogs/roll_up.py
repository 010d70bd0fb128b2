"""Adds each changelog record to the counts of its job and directory.

Recordings of Lustre 2.17 show three properties of records that this module depends on:

* Only namespace records have a reliable parent. The parent in an OPEN of an existing file may be another directory, so
  the path of the file itself is preferred.
* The last CLOSE may have the job id of a client thread (``ldlm_bl.0``), and the LYOUT of a new component has no job id.
  Both belong to the job that opened the file. Such a CLOSE may come long after the job has ended, for example when a
  file is moved, so it does not show that the job is at work.
* Files that a job creates and unlinks again are gone before tierd can move them.

Each job id is decoded once. The counts of a job are cached by directory until a path changes.

The C module (``_roll_up.c``, optional) adds the bulk of the records from their bytes, with the same results: those of a
known job in a known directory. Making a ``Record`` of each takes as long as adding it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from lustre.nid import NONE as NID_OF_NOBODY
from lustre.nid import nid_text
from tierd.model import MAX_CLIENTS
from tierd.sense.changelogs.counts import CountTables, DirectoryCounts, File
from tierd.sense.own_moves import OtherMovers, OwnMoves
from tierd.sense.paths import PathCache, directory_of, join


@dataclass(slots=True, eq=False)
class JobCounts:
    """Cached properties of one job id."""

    name: str
    tagged: bool
    """Whether records with this job id may be tierd's own."""
    places: dict[Fid, DirectoryCounts] = field(default_factory=dict)
    """Counts of the job by directory. Some may have been dropped from the table."""


class JobTable:
    """Cache of jobs: at most as many as counts, with at most twice as many directories in all."""

    def __init__(self, known: CountTables, path: PathCache, tags: Collection[str]) -> None:
        self._known = known
        self._path = path
        self._tags = tags
        self.by_id: dict[bytes, JobCounts] = {}
        self._places = 0
        """Number of cached directories over all jobs."""
        self.changes = 0
        """Value of ``PathCache.changes`` for which the cached directories are valid."""

    def anew(self, job_id: bytes) -> JobCounts:
        """Add a job to the cache."""
        if len(self.by_id) >= self._known.max_counts:
            self.by_id.clear()
            self._places = 0
        name = job_id.decode("utf-8", "replace")
        job = self.by_id[job_id] = JobCounts(name, name in self._tags)
        return job

    def counts_in(self, job: JobCounts, directory: Fid, time: float) -> DirectoryCounts:
        """The counts of a job in the directory with this FID. They are cached."""
        if self._path.changes != self.changes or self._places >= 2 * self._known.max_counts:
            for each in self.by_id.values():
                each.places.clear()
            self.changes, self._places = self._path.changes, 0
        counts = job.places[directory] = self._known.counts(job.name, self._path.place(directory), time)
        self._places += 1
        return counts


WRITE_MODES = 0o3002
"""Flags of an open that may change the file: write, truncate, append (``MDS_FMODE_WRITE``, ``MDS_OPEN_TRUNC``,
``MDS_OPEN_APPEND``)."""
_MADE_HERE = {RecordType.CREATE, RecordType.MKDIR}
"""Records that name the path of their target, so that it need not be looked up."""
_WITH_PARENT = {RecordType.CREATE, RecordType.UNLINK, RecordType.MKDIR, RecordType.RENAME}


try:
    from tierd.sense.changelogs import _roll_up
    _PREPARED = _roll_up.prepare(JobCounts, DirectoryCounts, File, Fid, lru_cache(maxsize=4096)(nid_text),
                                 NID_OF_NOBODY, MAX_CLIENTS, WRITE_MODES)
except (ImportError, TypeError):  # TypeError: this Python stores the fields of a class in another form
    AVAILABLE = False
else:
    AVAILABLE = True


class RollUp:
    """Adds records to the tables."""

    def __init__(self, known: CountTables, path: PathCache, movers: OtherMovers, own_jobs: Iterable[str],
                 is_echo: OwnMoves) -> None:
        self._known = known
        self._files = known.files
        self._path = path
        self._movers = movers
        self._own_jobs = frozenset(own_jobs)
        self._is_echo = is_echo
        self._jobs = JobTable(known, path, self._own_jobs | is_echo.tags)
        self.closes = 0
        """CLOSE records so far."""
        self.records_read = 0
        """Number of records in the last call."""
        self.oldest_time = float("inf")
        """Time of the oldest record in the last call; infinite without records."""

    def add(self, records: Iterable[Record]) -> None:
        """Add records in the order of one MDT's changelog. Records of tierd's own moves are ignored."""
        handler_of = {
            RecordType.CREATE: self._create, RecordType.OPEN: self._open, RecordType.CLOSE: self._close,
            RecordType.UNLINK: self._unlink, RecordType.LAYOUT: self._layout, RecordType.RENAME: self._rename,
            RecordType.MKDIR: self._make_directory,
        }.get
        job_of, job_anew = self._jobs.by_id.get, self._jobs.anew
        own_jobs, is_echo, moved = self._own_jobs, self._is_echo, self._is_echo.files
        records_read, oldest_time = 0, float("inf")
        try:
            for record in records:
                records_read += 1
                time = record.time
                if time < oldest_time:  # noqa: PLR1730 -- of every record: min() takes twice as long
                    oldest_time = time
                handle = handler_of(record.type)
                if handle is None:
                    continue
                job = job_of(record.job_id) or job_anew(record.job_id)
                if (job.tagged or (moved and record.target in moved)) and (
                        job.name in own_jobs or is_echo(record, job.name)):
                    continue
                handle(record, job, time)
        finally:
            self.records_read, self.oldest_time = records_read, oldest_time

    def add_packed(self, data: bytes, at: int, end: int) -> tuple[int, int]:
        """Add records from their bytes with the C module, until one needs ``add``.

        Returns the offset of that record, or ``end``, and the number of added records. It does not set ``records_read``
        and ``oldest_time``.
        """
        if not AVAILABLE:
            return at, 0
        at, added, closes = _roll_up.add(
            _PREPARED, data, at, end, self._jobs.by_id, self._files, self._is_echo.files, self._known,
            self._known.max_files, self._path.changes == self._jobs.changes and self._known.additions is None)
        self.closes += closes
        return at, added

    def fids_without_path(self, records: Sequence[Record]) -> set[Fid]:
        """FIDs of directories and opened files whose paths these records need and the cache lacks."""
        found: set[Fid] = set()
        known = self._path.known
        for record in records:
            if record.type is RecordType.OPEN:
                if record.target not in self._files and record.target not in known:
                    found.add(record.target)
            elif record.type in _WITH_PARENT and record.parent and record.parent not in known:
                found.add(record.parent)
        return found - {record.target for record in records if record.type in _MADE_HERE}

    def _create(self, record: Record, job: JobCounts, time: float) -> None:
        counts = job.places.get(record.parent)
        if counts is None or not counts.there or self._path.changes != self._jobs.changes:
            counts = self._jobs.counts_in(job, record.parent, time)
        elif time > counts.last_time:
            counts.last_time = time
        counts.creates += 1
        if record.nid not in counts.clients:
            counts.add_client(record.nid)
        fid = record.target
        self._files[fid] = File(counts, counts.directory, record.name, True, 0, 0, time, time)
        if len(self._files) > self._known.max_files:
            self._known.forget_first_files()
        files = counts.files
        files.append(fid)
        if len(files) > counts.sweep_at:
            self._known.sweep(counts)
        if self._known.additions is not None:
            self._known.additions.append((counts, fid))

    def _make_directory(self, record: Record, _job: JobCounts, _time: float) -> None:
        above = self._path(record.parent)
        if above:
            self._path.learn(record.target, join(above, record.name.decode("utf-8", "surrogateescape")))

    def _open(self, record: Record, job: JobCounts, time: float) -> None:
        file = self._files.get(record.target)
        if file is None:
            path = self._path(record.target)
            directory = directory_of(path) if path else self._path.place(record.parent)
            counts = self._known.counts(job.name, directory, time)
            file = File(counts, directory, path.rpartition("/")[2].encode("utf-8", "surrogateescape"))
            self._known.remember(record.target, file)
            self._known.keep(counts, record.target)
        else:
            counts = self._known.counts(job.name, file.directory, time)
            if file.counts is not counts:
                file.counts = counts
                self._known.keep(counts, record.target)
        file.open_count += 1
        if not (file.created and file.closed_at == file.created_at):
            if record.nid not in counts.clients:
                counts.add_client(record.nid)
            counts.opens += 1  # otherwise it is the open that created the file, which is counted as a create
            file.reopened += 1
            if record.open_mode is not None and record.open_mode & WRITE_MODES:
                counts.write_opens += 1

    def _close(self, record: Record, job: JobCounts, time: float) -> None:
        file = self._files.get(record.target)
        if file is None:
            return
        self.closes += 1
        if file.open_count:
            file.open_count -= 1
        file.closed_at = time
        counts = file.counts
        if not counts.there or counts.directory is not file.directory:
            owner = counts.job if (counts.job, file.directory) in self._known.by_job_and_directory else job.name
            counts = self._known.counts(owner, file.directory, time if owner == job.name else 0.0)
        elif time > counts.last_time and counts.job == job.name:
            counts.last_time = time
        counts.closes += 1

    def _unlink(self, record: Record, job: JobCounts, time: float) -> None:
        file = self._files.pop(record.target, None)
        if file is None:
            counts = job.places.get(record.parent)
            if counts is None or not counts.there or self._path.changes != self._jobs.changes:
                counts = self._jobs.counts_in(job, record.parent, time)
            elif time > counts.last_time:
                counts.last_time = time
        else:
            counts = self._known.counts_of(file, time)
        if record.nid not in counts.clients:
            counts.add_client(record.nid)
        counts.unlinks += 1

    def _layout(self, record: Record, job: JobCounts, time: float) -> None:
        file = self._files.get(record.target)
        if job.name:  # a migration or a setstripe, not a file that grew
            path = file.path if file is not None else self._path(record.target)
            if not path:
                return  # an unnamed file that a mover copies into
            self._movers.moved(directory_of(path), job.name, time, record)
        elif file is not None:
            self._known.counts_of(file, time).outgrown += 1

    def _rename(self, record: Record, _job: JobCounts, _time: float) -> None:
        moved = record.source or record.target
        file = self._files.get(moved)
        if file is None:
            self._path.renamed(moved)
            return
        # jobs often write under a temporary name and rename: the new name lasts
        file.name = record.name
        file.directory = self._path.place(record.parent)
