"""Takes changelog records into the activity table, and rescans directories after a gap.

Until the rescan is complete tierd begins nothing new: a file may have been replaced or a directory renamed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lustre.changelog.record import Record
from lustre.fid import Fid
from lustre.filesystem import FileStatus, Filesystem
from tierd.sense.changelogs.follow import MissingRecordsError
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.paths import join

MAX_DIRECTORIES = 2000
"""The most recently active ones; others are forgotten, and known again when something happens there."""
MAX_ENTRIES = 20_000
"""Of one directory."""


class DirectoryRescan:
    """A walk over the known directories, that can be interrupted."""

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

    def go_on(self, until: float) -> bool:
        """Scan directories until that time, at least one; whether all are done."""
        while self._left:
            place = self._left.pop(0)
            try:
                self._table.reconcile(place, self._listed(place))
            except OSError:  # gone, or not to be read: then nothing is known of it
                self._table.forget_directory(place)
            if self._now() >= until:
                break
        return not self._left

    def _listed(self, place: str) -> dict[Fid, tuple[str, FileStatus]]:
        """Files in a directory, by identity. Those that vanish meanwhile are not there."""
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
    """Records of the last call, and whether records were missed."""

    def __init__(self, table: ActivityTable, filesystem: Filesystem, now: Callable[[], float]) -> None:
        self._table = table
        self._filesystem = filesystem
        self._now = now
        self._missed = ""
        self._catch_up: DirectoryRescan | None = None
        self.gap_closed = ""
        """What was missed, and is known again since the last call; "" for nothing."""

    @property
    def records_read(self) -> int:
        """Records of the last call."""
        return self._table.records_read

    @property
    def oldest_time(self) -> float:
        """Time of the oldest record of the last call; infinite without records."""
        return self._table.oldest_time

    def take_in(self, records: Iterable[Record], until: float) -> str:
        """Take records in, and catch up until that time where some were missed.

        Returns "" when everything is known; else the reason why nothing new may be done.
        """
        problem = self.gap_closed = ""
        self._table.mark(self._now())
        try:
            self._table.add(records)
        except MissingRecordsError as error:
            self._missed = str(error)
            self._catch_up = DirectoryRescan(self._table, self._filesystem, self._now)
        except OSError as error:
            problem = str(error)
        if self._catch_up is not None and not problem:
            if self._catch_up.go_on(until):
                self.gap_closed = f"{self._missed}; {self._catch_up}: what is known holds again"
                self._catch_up = None
            else:
                problem = f"{self._missed}; catching up: {self._catch_up}"
        return problem
