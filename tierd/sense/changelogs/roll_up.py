"""Adds each changelog record to the counts of its job and directory.

Recordings of Lustre 2.17 show three properties of records that this module depends on:

* Only namespace records have a reliable parent. The parent in an OPEN of an existing file may be another directory, so
  the path of the file itself is preferred.
* The last CLOSE may have the job id of a client thread (``ldlm_bl.0``), and the LYOUT of a new component has no job id.
  Both belong to the job that opened the file. Such a CLOSE may come long after the job has ended, for example when a
  file is moved, so it does not show that the job is at work.
* Files that a job creates and unlinks again are gone before tierd can move them.

Each job id is decoded once. The counts of a job are cached by directory until a path changes.

Most records are added from the fields that numpy reads (:mod:`tierd.sense.changelogs.packed`), without a ``Record``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import cast

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from lustre.nid import nid_text
from tierd.sense.changelogs.counts import MIN_SHARED_OPENS, CountTables, DirectoryCounts, File, SharedRun
from tierd.sense.changelogs.packed import IRREGULAR, PackedRecords, types_and_fids
from tierd.sense.own_moves import OtherMovers, OwnMoves
from tierd.sense.paths import PathCache, directory_of, join


@dataclass(slots=True, eq=False)
class JobCounts:
    """Cached properties of one job id."""

    name: str
    tagged: bool
    """Whether records with this job id may be tierd's own."""
    places: dict[bytes, DirectoryCounts] = field(default_factory=dict)
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
        self._changes = 0
        """Value of ``PathCache.changes`` for which the cached directories are valid."""

    def anew(self, job_id: bytes) -> JobCounts:
        """Add a job to the cache."""
        if len(self.by_id) >= self._known.max_counts:
            self.by_id.clear()
            self._places = 0
        name = job_id.decode("utf-8", "replace")
        job = self.by_id[job_id] = JobCounts(name, name in self._tags)
        return job

    def check_paths(self) -> None:
        """Drop the cached directories if a path may have changed."""
        if self._path.changes != self._changes:
            self._changes = self._path.changes
            self._forget_places()

    def _forget_places(self) -> None:
        for each in self.by_id.values():
            each.places.clear()
        self._places = 0

    def counts_in(self, job: JobCounts, directory: Fid, time: float) -> DirectoryCounts:
        """The counts of a job in the directory with this FID. They are cached."""
        if self._places >= 2 * self._known.max_counts:
            self._forget_places()
        counts = job.places[directory] = self._known.counts(job.name, self._path.place(directory), time)
        self._places += 1
        return counts


WRITE_MODES = 0o3002
"""Flags of an open that may change the file: write, truncate, append (``MDS_FMODE_WRITE``, ``MDS_OPEN_TRUNC``,
``MDS_OPEN_APPEND``)."""
_MADE_HERE = {RecordType.CREATE, RecordType.MKDIR}
"""Records that name the path of their target, so that it need not be looked up."""
_WITH_PARENT = {RecordType.CREATE, RecordType.UNLINK, RecordType.MKDIR, RecordType.RENAME}


_CREATE, _OPEN, _CLOSE, _UNLINK = (
    int(kind) for kind in (RecordType.CREATE, RecordType.OPEN, RecordType.CLOSE, RecordType.UNLINK))
_AS_FIELDS = {_CREATE, _OPEN, _CLOSE, _UNLINK}
_AS_RECORDS = {RecordType.MKDIR, RecordType.RENAME, RecordType.LAYOUT, IRREGULAR}
_COUNTED = _AS_FIELDS | _AS_RECORDS
as_fid = partial(bytes.__new__, Fid)
"""Makes a FID from its bytes. FIDs are equal to their bytes, so they are looked up as bytes."""
_nid = lru_cache(maxsize=4096)(nid_text)


class RollUp:
    """Adds records to the tables."""

    def __init__(self, known: CountTables, path: PathCache, movers: OtherMovers, is_echo: OwnMoves) -> None:
        self._known = known
        self._files = cast("dict[bytes, File]", known.files)
        self._shared = cast("dict[bytes, SharedRun]", known.shared)
        self._path = path
        self._movers = movers
        self._is_echo = is_echo
        self._jobs = JobTable(known, path, is_echo.tags)
        self.closes = 0
        """CLOSE records so far."""

    def add(self, records: Sequence[Record]) -> None:
        """Add records in the order of one MDT's changelog. Records of tierd's own moves are ignored."""
        self._jobs.check_paths()
        if isinstance(records, PackedRecords):
            self._add_packed(records)
            return
        for record in records:
            self._add(record)

    def _add(self, record: Record) -> None:
        kind, time = record.type, record.time
        if kind not in _COUNTED:
            return
        job = self._job(record.job_id)
        if (job.tagged or record.target in self._is_echo.files) and self._is_echo(record, job.name):
            return
        if kind is RecordType.CREATE:
            self._create(job, time, record.target, record.parent, record.name, nid=record.nid)
        elif kind is RecordType.CLOSE:
            self._close(job, time, record.target)
        elif kind is RecordType.UNLINK:
            self._unlink(job, time, record.target, record.parent, record.nid)
        elif kind is RecordType.OPEN:
            self._open(job, time, record.target, record.parent, record.nid, mode=record.open_mode or 0)
        elif kind is RecordType.LAYOUT:
            self._layout(record, job, time)
        elif kind is RecordType.RENAME:
            self._rename(record)
            self._jobs.check_paths()
        else:
            self._make_directory(record)
            self._jobs.check_paths()

    def _add_packed(self, records: PackedRecords) -> None:
        data, moved, job_of = records.data, self._is_echo.files, self._jobs.by_id.get
        create, opened, close, unlink = self._create, self._open, self._close, self._unlink
        nid_bytes, nid = b"", ""
        for kind, time, target, parent, job_id, its_nid, mode, at, name_at, end in records.rows():
            if kind not in _AS_FIELDS:
                if kind in _AS_RECORDS:
                    self._add(records.decoded(at))
                continue
            job = job_of(job_id) or self._job(job_id)
            if job.tagged or (moved and target in moved):
                self._add(records.decoded(at))
                continue
            if kind == _CLOSE:
                close(job, time, target)
                continue
            if its_nid != nid_bytes:  # most records have that of the record before
                nid_bytes, nid = its_nid, _nid(its_nid, False)
            if kind == _CREATE:
                create(job, time, target, parent, data[name_at:end], nid=nid)
            elif kind == _UNLINK:
                unlink(job, time, target, parent, nid)
            else:
                opened(job, time, target, parent, nid, mode=mode)

    def fids_without_path(self, records: Sequence[Record]) -> set[Fid]:
        """FIDs of directories and opened files whose paths these records need and the cache lacks."""
        seen = types_and_fids(records)
        opened = {target for kind, target, _ in seen if kind == _OPEN}
        parents = {parent for kind, _, parent in seen if kind in _WITH_PARENT}
        made = {target for kind, target, _ in seen if kind in _MADE_HERE}
        needed = (parents | (opened - self._files.keys())) - made
        return {fid for fid in map(as_fid, needed) if fid and fid not in self._path.known}

    def _job(self, job_id: bytes) -> JobCounts:
        job_id = job_id.partition(b"\0")[0]
        return self._jobs.by_id.get(job_id) or self._jobs.anew(job_id)

    def _in_parent(self, job: JobCounts, time: float, parent: bytes) -> DirectoryCounts:
        counts = job.places.get(parent)
        if counts is None or not counts.in_table:
            return self._jobs.counts_in(job, as_fid(parent), time)
        if time > counts.last_time:  # noqa: PLR1730 -- of every record: max() takes twice as long
            counts.last_time = time
        return counts

    def _create(self, job: JobCounts, time: float, target: bytes, parent: bytes, name: bytes, nid: str) -> None:
        counts = self._in_parent(job, time, parent)
        counts.creates += 1
        if nid not in counts.clients:
            counts.add_client(nid)
        fid = as_fid(target)
        self._known.remember(fid, File(counts, counts.directory, name, True, 0, reopened=0, created_at=time,
                                       closed_at=time))
        self._known.keep(counts, fid)

    def _make_directory(self, record: Record) -> None:
        above = self._path(record.parent)
        if above:
            self._path.learn(record.target, join(above, record.name.decode("utf-8", "surrogateescape")))

    def _open(self, job: JobCounts, time: float, target: bytes, parent: bytes, nid: str, mode: int) -> None:
        file = self._files.get(target)
        if file is None:
            fid = as_fid(target)
            path = self._path(fid)
            directory = directory_of(path) if path else self._path.place(as_fid(parent))
            counts = self._known.counts(job.name, directory, time)
            file = File(counts, directory, path.rpartition("/")[2].encode("utf-8", "surrogateescape"))
            self._known.remember(fid, file)
            self._known.keep(counts, fid)
        else:
            counts = self._known.counts(job.name, file.directory, time)
            if file.counts is not counts:
                file.counts.stale += 1
                counts.stale += 1  # the file may have been there before
                file.counts = counts
                self._known.keep(counts, as_fid(target))
        file.open_count += 1
        if file.open_count >= MIN_SHARED_OPENS:
            self._known.opened(as_fid(target), file, job.name, time)
        if not (file.created and file.closed_at == file.created_at):
            if nid not in counts.clients:
                counts.add_client(nid)
            counts.opens += 1  # otherwise it is the open that created the file, which is counted as a create
            file.reopened += 1
            if mode & WRITE_MODES:
                counts.write_opens += 1

    def _close(self, job: JobCounts, time: float, target: bytes) -> None:
        file = self._files.get(target)
        if file is None:
            return
        self.closes += 1
        if file.open_count:
            file.open_count -= 1
            if not file.open_count and target in self._shared:
                self._known.closed_by_all(as_fid(target), time)
        file.closed_at = time
        counts = file.counts
        if not counts.in_table or counts.directory is not file.directory:
            owner = counts.job if (counts.job, file.directory) in self._known.by_job_and_directory else job.name
            counts = self._known.counts(owner, file.directory, time if owner == job.name else 0.0)
        elif time > counts.last_time and counts.job == job.name:
            counts.last_time = time
        counts.closes += 1

    def _unlink(self, job: JobCounts, time: float, target: bytes, parent: bytes, nid: str) -> None:
        file = self._files.pop(target, None)
        if file is None:
            counts = self._in_parent(job, time, parent)
        else:
            file.counts.stale += 1
            counts = self._known.counts_of(file, time)
        if nid not in counts.clients:
            counts.add_client(nid)
        counts.unlinks += 1

    def _layout(self, record: Record, job: JobCounts, time: float) -> None:
        file = self._files.get(record.target)
        if job.name:  # a migration or a setstripe, not a file that grew
            path = file.path if file is not None else self._path(record.target)
            if not path:
                return  # an unnamed file that a mover copies into
            self._movers.moved(directory_of(path), job.name, time, record)
        elif file is not None and file.created_at >= self._known.layouts_since.get(file.directory, 0.0):
            self._known.counts_of(file, time).outgrown += 1

    def _rename(self, record: Record) -> None:
        moved = record.source or record.target
        file = self._files.get(moved)
        if file is None:
            self._path.renamed(moved)
            return
        # jobs often write under a temporary name and rename: the new name lasts
        file.name = record.name
        file.directory = self._path.place(record.parent)
