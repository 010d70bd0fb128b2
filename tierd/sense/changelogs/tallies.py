"""Two bounded tables that changelog records fill: files, and tallies (counts of one job in one directory).

A full table drops a few entries at a time: the files that were added first, or the tallies that were idle longest.

>>> known = Tallies(max_files=2, max_tallies=9, max_files_per_tally=9)
>>> mine = known.tally("cp.0", "/in", 5.0)
>>> for number in range(3):
...     known.remember(Fid(1, number), File(mine, "/in", b"f%d" % number))
...     known.keep(mine, Fid(1, number))
>>> [known.files[fid].path for fid in known.of(mine)]
['/in/f1', '/in/f2']
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice

from lustre.fid import Fid
from tierd.sense.paths import join

MIN_SWEPT = 8
"""A tally's list of files is cleaned up when it exceeds twice its length after the last cleanup, plus this."""


@dataclass(slots=True, eq=False)
class Tally:
    """Counts of one job in one directory. The directory is a path, or a FID in brackets if its path is unknown."""

    job: str
    directory: str
    creates: int = 0
    opens: int = 0
    closes: int = 0
    unlinks: int = 0
    outgrown: int = 0
    last_time: float = 0.0
    files: list[Fid] = field(default_factory=list)
    """Files in the order of their first record. It may have duplicates and dropped files, and is cleaned up now and
    then: a set would take more memory than everything else that is stored about a file."""
    sweep_at: int = MIN_SWEPT
    """Length of ``files`` beyond which it is cleaned up."""
    there: bool = True
    """Whether the tally is still in the table."""
    earlier: int = 0
    """Creates and opens at the mark before the last."""
    marked: int = 0
    """Creates and opens at the last mark."""

    @property
    def lately(self) -> int:
        """Creates and opens since the mark before the last."""
        return self.creates + self.opens - self.earlier


@dataclass(slots=True, eq=False)
class File:
    """A file that a record named. The table has up to two hundred thousand, so each field costs memory."""

    tally: Tally
    """Tally of the job that created it or opened it last, in its directory at that time."""
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


class Tallies:
    """The table of files and the table of tallies."""

    def __init__(self, max_files: int, max_tallies: int, max_files_per_tally: int) -> None:
        self.max_files = max_files
        self.max_tallies = max_tallies
        self._max_files_per_tally = max_files_per_tally
        self.files: dict[Fid, File] = {}
        self.by_job_and_directory: dict[tuple[str, str], Tally] = {}
        """By job and directory."""
        self.directories: dict[str, set[str]] = {}
        """Directories of the tallies of each job."""

    def tally(self, job: str, directory: str, time: float) -> Tally:
        """The tally of a job in a directory, made if needed. A record at ``time`` belongs to it."""
        key = job, directory
        tally = self.by_job_and_directory.get(key)
        if tally is None:
            if len(self.by_job_and_directory) >= self.max_tallies:
                self._forget_some_tallies()
            tally = self.by_job_and_directory[key] = Tally(job, directory)
            self.directories.setdefault(job, set()).add(directory)
        if time > tally.last_time:  # noqa: PLR1730 -- of every record: max() takes twice as long
            tally.last_time = time
        return tally

    def tally_of(self, file: File, time: float) -> Tally:
        """The tally of a file's job in the present directory of the file."""
        tally = file.tally
        if not tally.there or tally.directory is not file.directory:
            return self.tally(tally.job, file.directory, time)
        if time > tally.last_time:  # noqa: PLR1730 -- of every record: max() takes twice as long
            tally.last_time = time
        return tally

    def mark(self) -> None:
        """Begin a new period of recent activity. ``lately`` counts from the mark before this one."""
        for tally in self.by_job_and_directory.values():
            tally.earlier, tally.marked = tally.marked, tally.creates + tally.opens

    def remember(self, fid: Fid, file: File) -> None:
        """Put a file into the table."""
        self.files[fid] = file
        if len(self.files) > self.max_files:
            self.forget_first_files()

    def forget_first_files(self) -> None:
        """Drop the files that were added first."""
        for first in list(islice(self.files, evicted_at_once(self.max_files))):
            del self.files[first]

    def keep(self, tally: Tally, fid: Fid) -> None:
        """Add a file to a tally."""
        tally.files.append(fid)
        if len(tally.files) > tally.sweep_at:
            self.sweep(tally)

    def sweep(self, tally: Tally) -> None:
        """Remove duplicates and dropped files from the list of a tally."""
        tally.files = self.of(tally)
        tally.sweep_at = 2 * len(tally.files) + MIN_SWEPT

    def of(self, tally: Tally) -> list[Fid]:
        """Files of a tally that are in the table, in order; only the last ones if there are more than the limit."""
        there = self.files
        files = [fid for fid in dict.fromkeys(tally.files) if fid in there]
        return files[-self._max_files_per_tally:] if len(files) > self._max_files_per_tally else files

    def forgotten(self, key: tuple[str, str]) -> Tally:
        """Remove a tally from the table and return it."""
        tally = self.by_job_and_directory.pop(key)
        tally.there = False
        mine = self.directories[tally.job]
        mine.discard(tally.directory)
        if not mine:
            del self.directories[tally.job]
        return tally

    def _forget_some_tallies(self) -> None:
        for key in nsmallest(
            evicted_at_once(self.max_tallies),
            self.by_job_and_directory,
            lambda key: self.by_job_and_directory[key].last_time,
        ):
            self.forgotten(key)


def evicted_at_once(most: int) -> int:
    """Entries to drop at once from a table of ``most`` entries. Finding one takes as long as finding several."""
    return max(1, most // 32)
