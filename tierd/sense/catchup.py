"""After a gap in a changelog: look again at the directories that are known, so many of them, a bit in each cycle.

Until it is done nothing new is done: a file may have been replaced, a directory renamed, and nobody would know.
"""

from __future__ import annotations

from collections.abc import Callable

from lustre.fid import Fid
from lustre.filesystem import FileStatus, Filesystem
from tierd.sense.changelogs import ActivityTable
from tierd.sense.paths import join

MOST_DIRECTORIES = 2000
"""The most recently active ones; others are forgotten, and known again when something happens there."""
MOST_ENTRIES = 20_000
"""Of one directory."""


class CatchUp:
    """A walk over the known directories, that can be interrupted."""

    def __init__(self, table: ActivityTable, filesystem: Filesystem, now: Callable[[], float]) -> None:
        self._table = table
        self._filesystem = filesystem
        self._now = now
        table.forget_paths()
        places = table.places()
        self._left = [place for place in places[:MOST_DIRECTORIES] if place.startswith("/")]
        self._count = len(self._left)
        for place in set(places) - set(self._left):
            table.forget_directory(place)

    def __str__(self) -> str:
        done = self._count - len(self._left)
        return f"{done} of {self._count} directories looked at again"

    def go_on(self, until: float) -> bool:
        """Look at directories until that time, one at the least; whether all are done."""
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
            if count >= MOST_ENTRIES:
                break
            try:
                status = self._filesystem.status(join(place, name))
            except OSError:
                continue
            if not status.is_directory:
                found[status.fid] = name, status
        return found
