"""Changelog records into the table of activity, and a look at the directories again where records are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lustre.changelog.record import Record
from lustre.filesystem import Filesystem
from tierd.sense.catchup import CatchUp
from tierd.sense.changelogs import ActivityTable
from tierd.sense.follow import MissingRecordsError


class Ears:
    """What was heard last, and whether something was missed."""

    def __init__(self, table: ActivityTable, filesystem: Filesystem, now: Callable[[], float]) -> None:
        self._table = table
        self._filesystem = filesystem
        self._now = now
        self._missed = ""
        self._catch_up: CatchUp | None = None
        self.caught_up = ""
        """What was missed and is made up for since the last look, in words."""

    @property
    def heard(self) -> int:
        """Records of the last call."""
        return self._table.heard

    @property
    def oldest(self) -> float:
        """Time of the oldest of them; infinite where there were none."""
        return self._table.oldest

    def listen(self, records: Iterable[Record], until: float) -> str:
        """Take records in, and catch up until that time where some were missed.

        "" when everything is known; else what is not, and then nothing new should be done.
        """
        trouble = self.caught_up = ""
        self._table.mark(self._now())
        try:
            self._table.add(records)
        except MissingRecordsError as error:
            self._missed = str(error)
            self._catch_up = CatchUp(self._table, self._filesystem, self._now)
        except OSError as error:
            trouble = str(error)
        if self._catch_up is not None and not trouble:
            if self._catch_up.go_on(until):
                self.caught_up = f"{self._missed}; {self._catch_up}: what is known holds again"
                self._catch_up = None
            else:
                trouble = f"{self._missed}; catching up: {self._catch_up}"
        return trouble
