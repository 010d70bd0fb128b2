"""Two bounded tables that changelog records fill: files, and counts of one job in one directory.

A full table drops a few entries at a time: the files that were added first, or the counts that were idle longest.

>>> known = CountTables(max_files=2, max_counts=9, max_listed_files=9)
>>> counts = known.counts("cp.0", "/in", 5.0)
>>> for number in range(3):
...     known.remember(Fid(1, number), File(counts, "/in", b"f%d" % number))
...     known.keep(counts, Fid(1, number))
>>> [known.files[fid].path for fid in known.of(counts)]
['/in/f1', '/in/f2']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice
from operator import attrgetter

from lustre.fid import Fid
from lustre.nid import NONE as NID_OF_NOBODY
from tierd.model import MAX_CLIENTS
from tierd.sense.paths import join

COUNTED = ("creates", "opens", "closes", "unlinks", "outgrown", "write_opens")
"""Counts of a job in a directory, which only grow."""
counted = attrgetter(*COUNTED)
MIN_SWEPT = 4
"""The list of files of a job in a directory is cleaned up when more than a third of it, and this, may be stale."""


@dataclass(slots=True, eq=False)
class DirectoryCounts:
    """Counts of one job in one directory. The directory is a path, or a FID in brackets if its path is unknown."""

    job: str
    directory: str
    creates: int = 0
    opens: int = 0
    closes: int = 0
    unlinks: int = 0
    outgrown: int = 0
    write_opens: int = 0
    """Opens of existing files for writing."""
    last_time: float = 0.0
    """Time of the newest record, without closes by client threads."""
    files: list[Fid] = field(default_factory=list)
    """Files in the order of their first record. It may have duplicates and dropped files, and is cleaned up now and
    then: a set would take more memory than everything else that is stored about a file."""
    stale: int = 0
    """Entries of ``files`` that are duplicates or dropped files, at most."""
    in_table: bool = True
    """Whether these counts are still in the table."""
    earlier: int = 0
    """Creates and opens at the mark before the last."""
    marked: int = 0
    """Creates and opens at the last mark."""
    clients: tuple[str, ...] = ()
    """NIDs of the first clients that created, opened or removed files; at most ``MAX_CLIENTS``."""

    @property
    def lately(self) -> int:
        """Creates and opens since the mark before the last."""
        return self.creates + self.opens - self.earlier

    def add_client(self, nid: str) -> None:
        """Remember a client. A record without a NID, or with that of no client, adds none."""
        if nid and nid != NID_OF_NOBODY and nid not in self.clients and len(self.clients) < MAX_CLIENTS:
            self.clients += (nid,)


@dataclass(slots=True, eq=False)
class File:
    """A file that a record named. The table has up to two hundred thousand, so each field costs memory."""

    counts: DirectoryCounts
    """Counts of the job that created it or opened it last, in its directory at that time."""
    directory: str
    name: bytes = b""
    created: bool = False
    open_count: int = 0
    reopened: int = 0
    """Opens, without the open that created it."""
    created_at: float = 0.0
    closed_at: float = 0.0

    @property
    def path(self) -> str:
        """Path below the root of the file system; "" if unknown."""
        if not self.directory.startswith("/") or not self.name:
            return ""
        return join(self.directory, self.name.decode("utf-8", "surrogateescape"))


MIN_SHARED_OPENS = 4
"""Simultaneous opens from which a file counts as shared."""
MAX_SHARED_RUNS = 1000


@dataclass(slots=True)
class SharedRun:
    """One time in which a file was open several times, until all closed it."""

    job: str
    path: str
    openers: int
    """Most simultaneous opens."""
    began_at: float
    ended_at: float = 0.0


class CountTables:
    """The table of files, and the table of counts by job and directory."""

    def __init__(self, max_files: int, max_counts: int, max_listed_files: int) -> None:
        self.max_files = max_files
        self.max_counts = max_counts
        self._max_listed_files = max_listed_files
        self.files: dict[Fid, File] = {}
        self.by_job_and_directory: dict[tuple[str, str], DirectoryCounts] = {}
        """By job and directory."""
        self.directories: dict[str, set[str]] = {}
        """Directories of each job in the table of counts."""
        self.layouts_since: dict[str, float] = {}
        """When the default layout of a directory was found changed. Files made before outgrow an earlier one."""
        self.shared: dict[Fid, SharedRun] = {}
        """Runs on files that are shared now."""
        self.shared_runs: list[SharedRun] = []
        """Runs that have ended and were not taken yet."""
        self.additions: list[tuple[DirectoryCounts, Fid]] | None = None
        """Files added to the lists of jobs and directories since the last tally; None without tallies."""

    def of_job(self, job: str) -> list[DirectoryCounts]:
        """The counts of a job, by directory."""
        return [self.by_job_and_directory[job, directory] for directory in self.directories.get(job, ())]

    def of_directory(self, directory: str) -> list[DirectoryCounts]:
        """The counts of all jobs in a directory."""
        return [counts for (_, place), counts in self.by_job_and_directory.items() if place == directory]

    def counts(self, job: str, directory: str, time: float) -> DirectoryCounts:
        """The counts of a job in a directory, made if needed. A record at ``time`` belongs to them."""
        key = job, directory
        counts = self.by_job_and_directory.get(key)
        if counts is None:
            if len(self.by_job_and_directory) >= self.max_counts:
                self._evict_counts()
            counts = self.by_job_and_directory[key] = DirectoryCounts(job, directory)
            self.directories.setdefault(job, set()).add(directory)
        if time > counts.last_time:  # noqa: PLR1730 -- of every record: max() takes twice as long
            counts.last_time = time
        return counts

    def counts_of(self, file: File, time: float) -> DirectoryCounts:
        """The counts of a file's job in the present directory of the file."""
        counts = file.counts
        if not counts.in_table or counts.directory is not file.directory:
            return self.counts(counts.job, file.directory, time)
        if time > counts.last_time:  # noqa: PLR1730 -- of every record: max() takes twice as long
            counts.last_time = time
        return counts

    def opened(self, fid: Fid, file: File, job: str, time: float) -> None:
        """Note one more open of a file that is shared."""
        run = self.shared.get(fid)
        if run is not None:
            run.openers = max(run.openers, file.open_count)
        elif file.path:
            if len(self.shared) >= MAX_SHARED_RUNS:
                del self.shared[next(iter(self.shared))]  # its last close was lost, or it was removed
            self.shared[fid] = SharedRun(job, file.path, file.open_count, time)

    def closed_by_all(self, fid: Fid, time: float) -> None:
        """Note that nobody has a shared file open any more."""
        run = self.shared.pop(fid)
        run.ended_at = time
        self.shared_runs = [*self.shared_runs[1 - MAX_SHARED_RUNS:], run]

    def mark(self) -> None:
        """Begin a new period of recent activity. ``lately`` counts from the mark before this one."""
        for counts in self.by_job_and_directory.values():
            counts.earlier, counts.marked = counts.marked, counts.creates + counts.opens

    def remember(self, fid: Fid, file: File) -> None:
        """Put a file into the table."""
        files, before = self.files, len(self.files)
        files[fid] = file
        if len(files) == before:
            file.counts.stale += 1
        elif before >= self.max_files:
            self.forget_first_files()

    def forget(self, fid: Fid) -> None:
        """Drop a file, if it is in the table."""
        self.shared.pop(fid, None)
        file = self.files.pop(fid, None)
        if file is not None:
            file.counts.stale += 1

    def forget_first_files(self) -> None:
        """Drop the files that were added first."""
        for first in list(islice(self.files, evicted_at_once(self.max_files))):
            self.forget(first)

    def keep(self, counts: DirectoryCounts, fid: Fid) -> None:
        """Add a file to the list of a job in a directory."""
        counts.files.append(fid)
        if self.additions is not None:
            self.additions.append((counts, fid))
        if counts.stale > MIN_SWEPT and 3 * counts.stale > len(counts.files):
            self._sweep(counts)

    def keep_all(self, counts: DirectoryCounts, fids: Sequence[Fid]) -> None:
        """Add the files of a tally to the list of a job in a directory."""
        counts.files.extend(fids)
        counts.stale += len(fids)  # a reader may send a file again
        if counts.stale > MIN_SWEPT and 3 * counts.stale > len(counts.files):
            self._sweep(counts)

    def _sweep(self, counts: DirectoryCounts) -> None:
        counts.files, counts.stale = self.of(counts), 0

    def of(self, counts: DirectoryCounts) -> list[Fid]:
        """Files of a job in a directory that are in the table, in order; the last ones if the limit is exceeded."""
        in_table = self.files
        files = list(dict.fromkeys(filter(in_table.__contains__, counts.files)))
        return files[-self._max_listed_files:] if len(files) > self._max_listed_files else files

    def forgotten(self, key: tuple[str, str]) -> DirectoryCounts:
        """Remove counts from the table and return them."""
        counts = self.by_job_and_directory.pop(key)
        counts.in_table = False
        directories = self.directories[counts.job]
        directories.discard(counts.directory)
        if not directories:
            del self.directories[counts.job]
        return counts

    def _evict_counts(self) -> None:
        for key in nsmallest(
            evicted_at_once(self.max_counts),
            self.by_job_and_directory,
            lambda key: self.by_job_and_directory[key].last_time,
        ):
            self.forgotten(key)


def evicted_at_once(most: int) -> int:
    """Entries to drop at once from a table of ``most`` entries. Finding one takes as long as finding several."""
    return max(1, most // 32)
