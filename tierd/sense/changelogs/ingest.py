"""Adds changelog records to the activity table, and rescans directories after a gap in the records.

tierd begins no act until the rescan is complete: a file may have been replaced, or a directory renamed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lustre.changelog.record import Record
from lustre.fid import Fid
from lustre.filesystem import FileStatus, Filesystem
from tierd.sense.changelogs.follow import MissingRecordsError
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.changelogs.tally_source import Tallies
from tierd.sense.paths import join

MAX_DIRECTORIES = 2000
"""Directories to rescan, the most recently active first. Others are forgotten until they have a new record."""
MAX_ENTRIES = 20_000
"""Maximum number of entries read from one directory."""


class DirectoryRescan:
    """Scans the known directories again, a part of them in each call."""

    def __init__(self, table: ActivityTable, filesystem: Filesystem, now: Callable[[], float]) -> None:
        self._table = table
        self._filesystem = filesystem
        self._now = now
        table.forget_paths()
        places = table.places()
        self._left = [place for place in places[:MAX_DIRECTORIES] if place.startswith("/")]
        self._count = len(self._left)
        for place in set(places) - set(self._left):
            table.forget_directory(place)

    def __str__(self) -> str:
        done = self._count - len(self._left)
        return f"{done} of {self._count} directories scanned again"

    def scan(self, until: float) -> bool:
        """Scan directories until that time, but at least one. Returns whether all are scanned."""
        while self._left:
            place = self._left.pop(0)
            try:
                self._table.reconcile(place, self._listed(place))
            except OSError:  # removed or unreadable
                self._table.forget_directory(place)
            if self._now() >= until:
                break
        return not self._left

    def _listed(self, place: str) -> dict[Fid, tuple[str, FileStatus]]:
        """Name and status of the files in a directory by FID. Files removed during the scan are left out."""
        found: dict[Fid, tuple[str, FileStatus]] = {}
        for count, name in enumerate(self._filesystem.entries(place)):
            if count >= MAX_ENTRIES:
                break
            try:
                status = self._filesystem.status(join(place, name))
            except OSError:
                continue
            if not status.is_directory:
                found[status.fid] = name, status
        return found


class ChangelogIngest:
    """Adds records to the table and keeps track of missed records."""

    def __init__(self, table: ActivityTable, filesystem: Filesystem, now: Callable[[], float]) -> None:
        self._table = table
        self._filesystem = filesystem
        self._now = now
        self._missed = ""
        self._rescan: DirectoryRescan | None = None
        self.gap_closed = ""
        """The gap that the last call closed, for the log; "" if it closed none."""

    @property
    def records_read(self) -> int:
        """Number of records in the last call."""
        return self._table.records_read

    @property
    def oldest_time(self) -> float:
        """Time of the oldest record in the last call; infinite without records."""
        return self._table.oldest_time

    def take_in(self, records: Iterable[Record] | Tallies, until: float) -> str:
        """Add records or tallies, and rescan directories until that time if records were missed.

        Returns the reason why tierd may begin no act; "" if the table is complete.
        """
        problem = self.gap_closed = ""
        self._table.mark(self._now())
        try:
            if isinstance(records, Tallies):
                self._table.add_tallies(records)
            else:
                self._table.add(records)
        except MissingRecordsError as error:
            self._missed = str(error)
            self._rescan = DirectoryRescan(self._table, self._filesystem, self._now)
        except OSError as error:
            problem = str(error)
        if self._rescan is not None and not problem:
            if self._rescan.scan(until):
                self.gap_closed = f"{self._missed}; {self._rescan}; the table is complete again"
                self._rescan = None
            else:
                problem = f"{self._missed}; rescan: {self._rescan}"
        return problem
