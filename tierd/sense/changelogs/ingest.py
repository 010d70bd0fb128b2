"""Adds changelog records to the activity table, and checks directories again after a gap in the records.

A record of an MDT is about an operation on a file of that MDT, or on a name in a directory of it (``mdd_changelog_*``
in lustre/mdd of Lustre 2.17). So missing records of an MDT concern the directories with files there. They are listed
again, because a file may have been removed, renamed or replaced. A directory above any directory may have been renamed
too: of a directory whose known files are all on other MDTs, one file is looked up by its name. It must still be that
file.

tierd starts no act in a directory until it is checked, and continues in the others. Acts do not rely on it alone: the
gate and the mover check each file again, by its FID.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from itertools import islice

from lustre.fid import Fid
from lustre.filesystem import FileStatus, Filesystem
from tierd.sense.changelogs.follow import MissingRecordsError
from tierd.sense.changelogs.table import ActivityTable, Batch
from tierd.sense.paths import join
from tierd.text import count_of

MAX_DIRECTORIES = 2000
"""Directories to rescan, the most recently active first. Others are forgotten until they have a new record."""
MAX_ENTRIES = 20_000
"""Maximum number of entries read from one directory."""


class DirectoryRescan:
    """Checks the known directories again, a part of them in each call."""

    def __init__(self, table: ActivityTable, filesystem: Filesystem, now: Callable[[], float],
                 mdts: Collection[str]) -> None:
        """``mdts`` are the MDTs whose records are missing (``MDT0000``)."""
        self._table = table
        self._filesystem = filesystem
        self._now = now
        self.mdts = frozenset(mdts)
        self._indexes = {int(mdt.removeprefix("MDT"), 16) for mdt in mdts}
        self._index_of: dict[int, int] = {}
        """Index of the MDT of each sequence of FIDs; -1 if it is unknown."""
        table.forget_paths()
        places = [place for place in table.places() if place.startswith("/")]
        files = table.files_by_sequence()
        self._to_compare = {place: files[place] for place in places if not self._concerns(files.get(place, {}))}
        self._to_list = [place for place in places if place not in self._to_compare][:MAX_DIRECTORIES]
        self._count = len(self._to_list) + len(self._to_compare)
        for place in set(table.places()) - self._to_compare.keys() - set(self._to_list):
            table.forget_directory(place)
        table.unchecked.clear()
        table.unchecked.update(self._to_list, self._to_compare)

    def _concerns(self, files: Collection[int]) -> bool:
        """Whether missing records may be about files of these sequences, or about files that are not known."""
        for sequence in files:
            if sequence not in self._index_of:
                try:
                    self._index_of[sequence] = self._filesystem.mdt_index_of(Fid(sequence, 1))
                except OSError:
                    self._index_of[sequence] = -1
        return not files or any(self._index_of[sequence] in {-1, *self._indexes} for sequence in files)

    @property
    def concerned(self) -> int:
        """Number of directories that remain to be listed again."""
        return len(self._to_list)

    def __str__(self) -> str:
        done = self._count - len(self._to_list) - len(self._to_compare)
        return f"{done} of {count_of(self._count, 'directory', 'directories')} checked again"

    def scan(self, until: float) -> bool:
        """Check directories until that time, but at least one. Returns whether all are checked."""
        while self._to_compare or self._to_list:
            if self._to_compare:
                place = next(iter(self._to_compare))
                if any(self._is_there(place, fid, name) for fid, name in self._to_compare.pop(place).values()):
                    self._table.unchecked.discard(place)
                else:
                    self._to_list.append(place)
            else:
                place = self._to_list.pop(0)
                try:
                    self._table.reconcile(place, self._listed(place))
                except OSError:  # removed or unreadable
                    self._table.forget_directory(place)
                self._table.unchecked.discard(place)
            if self._now() >= until:
                break
        return not self._table.unchecked

    def _is_there(self, place: str, fid: Fid, name: str) -> bool:
        with suppress(OSError):
            return self._filesystem.status(join(place, name)).fid == fid
        return False

    def _listed(self, place: str) -> dict[Fid, tuple[str, FileStatus]]:
        """Name and status of the files in a directory by FID. Files removed during the scan are left out."""
        found: dict[Fid, tuple[str, FileStatus]] = {}
        for name in islice(self._filesystem.entries(place), MAX_ENTRIES):
            with suppress(OSError):
                status = self._filesystem.status(join(place, name))
                if not status.is_directory:
                    found[status.fid] = name, status
        return found


class ChangelogIngest:
    """Adds records to the table and keeps track of missed records."""

    def __init__(self, table: ActivityTable, filesystem: Filesystem, now: Callable[[], float]) -> None:
        self.table = table
        self._filesystem = filesystem
        self._now = now
        self._missed = ""
        self._rescan: DirectoryRescan | None = None
        self.gap_begun = self.gap_closed = ""
        """The gap that the last call found, and the one that it closed, for the log; "" for none."""

    def take_in(self, batches: Iterable[Batch], until: float) -> str:
        """Add records or tallies. If records were missed, check directories until that time. Returns the reason why
        tierd may start no act; "" if it may, except in the unchecked directories of the table.
        """
        problem = self.gap_begun = self.gap_closed = ""
        self.table.mark(self._now())
        try:
            self.table.add(batches)
        except MissingRecordsError as error:
            self._missed, problem = str(error), error.problems
            # a check that was under way begins again, for the MDTs of both
            before = self._rescan.mdts if self._rescan is not None else frozenset()
            self._rescan = DirectoryRescan(self.table, self._filesystem, self._now, error.mdts | before)
            count = count_of(self._rescan.concerned, "directory", "directories")
            self.gap_begun = (f"{self._missed}. tierd lists {count} with files of "
                              f"{', '.join(sorted(self._rescan.mdts))} again, and starts no acts there until then")
        except OSError as error:
            problem = str(error)
        # while an MDT cannot be read, its directories would be out of date again at once
        if self._rescan is not None and not problem and self._rescan.scan(until):
            self.gap_closed = f"{self._missed}; {self._rescan}; the table is complete again"
            self._rescan, self.gap_begun = None, ""
        return problem
