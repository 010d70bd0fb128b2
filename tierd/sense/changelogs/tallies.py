"""Two bounded tables that changelog records fill: files, and counts of one job in one directory (tallies).

When a table is full, the files that came first, and the tallies idle for longest, are dropped, a few at a time.

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
"""So many more than last time, and as many again, before the files of a tally are put in order."""


@dataclass(slots=True, eq=False)
class Tally:
    """What one job did in one directory, a path, or the FID in brackets where it could not be resolved."""

    job: str
    directory: str
    creates: int = 0
    opens: int = 0
    closes: int = 0
    unlinks: int = 0
    outgrown: int = 0
    last_time: float = 0.0
    files: list[Fid] = field(default_factory=list)
    """In the order in which it came by them, some of them twice or gone meanwhile: now and then they are put in order,
    since to keep order all the time takes more memory than all else that is known of a file."""
    sweep_at: int = MIN_SWEPT
    """With more files than that they are put in order."""
    there: bool = True
    """Whether it is still in the table."""
    earlier: int = 0
    """Creates and opens, as they stood at the mark before the last."""
    marked: int = 0
    """The same at the last mark."""

    @property
    def lately(self) -> int:
        """Creates and opens since the mark before the last."""
        return self.creates + self.opens - self.earlier


@dataclass(slots=True, eq=False)
class File:
    """A file that records spoke of. Two hundred thousand are kept: each field counts."""

    tally: Tally
    """Of the job that made it or opened it last, where it lay then."""
    directory: str
    name: bytes = b""
    created: bool = False
    open_count: int = 0
    reopened: int = 0
    """Opens other than that of the create."""
    created_at: float = 0.0
    closed_at: float = 0.0

    @property
    def path(self) -> str:
        """Below the root; "" where it is not known."""
        if not self.directory.startswith("/") or not self.name:
            return ""
        return join(self.directory, self.name.decode("utf-8", "surrogateescape"))


class Tallies:
    """The two tables."""

    def __init__(self, max_files: int, max_tallies: int, max_files_per_tally: int) -> None:
        self.max_files = max_files
        self.max_tallies = max_tallies
        self._max_files_per_tally = max_files_per_tally
        self.files: dict[Fid, File] = {}
        self.by_job_and_directory: dict[tuple[str, str], Tally] = {}
        """By job and directory."""
        self.directories: dict[str, set[str]] = {}
        """By job: the directories of its tallies."""

    def tally(self, job: str, directory: str, time: float) -> Tally:
        """The tally of a job in a directory, which had a record at ``time``."""
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
        """Of the job of a file, where it lies now."""
        tally = file.tally
        if not tally.there or tally.directory is not file.directory:
            return self.tally(tally.job, file.directory, time)
        if time > tally.last_time:  # noqa: PLR1730 -- of every record: max() takes twice as long
            tally.last_time = time
        return tally

    def mark(self) -> None:
        """From the next mark on, what has come until now is not of late."""
        for tally in self.by_job_and_directory.values():
            tally.earlier, tally.marked = tally.marked, tally.creates + tally.opens

    def remember(self, fid: Fid, file: File) -> None:
        """Put a file into the table."""
        self.files[fid] = file
        if len(self.files) > self.max_files:
            self.forget_first_files()

    def forget_first_files(self) -> None:
        """There are more files than there may be."""
        for first in list(islice(self.files, evicted_at_once(self.max_files))):
            del self.files[first]

    def keep(self, tally: Tally, fid: Fid) -> None:
        """A tally has come by a file."""
        tally.files.append(fid)
        if len(tally.files) > tally.sweep_at:
            self.sweep(tally)

    def sweep(self, tally: Tally) -> None:
        """Put the files of a tally in order."""
        tally.files = self.of(tally)
        tally.sweep_at = 2 * len(tally.files) + MIN_SWEPT

    def of(self, tally: Tally) -> list[Fid]:
        """Files of a tally that are there, in the order in which it came by them; no more than the bound, the last."""
        there = self.files
        files = [fid for fid in dict.fromkeys(tally.files) if fid in there]
        return files[-self._max_files_per_tally:] if len(files) > self._max_files_per_tally else files

    def forgotten(self, key: tuple[str, str]) -> Tally:
        """The tally, which is in the table no more."""
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
    """So many fall out at a time where there may be so many: to look for the first of them takes as long for one."""
    return max(1, most // 32)
