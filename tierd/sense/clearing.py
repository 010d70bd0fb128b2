"""Let Lustre forget the records that were dealt with, and learn from it whether it still keeps any for us.

A reader that lags too far, or is silent for a month, is deregistered by Lustre; without readers an MDT writes no
records at all, and reading its device goes on as if nothing happened there. Clearing knows no such reader
(``mdd_changelog_clear`` of Lustre 2.17 answers ENOENT); what else tells is in :mod:`tierd.sense.recording`.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping

from tierd.clock import Clock
from tierd.sense.follow import Follower

AT_LEAST_EVERY_SECONDS = 10.0
"""So often the last index is cleared again where there is nothing to clear: two cycles after a reader was deregistered
that is known, and for Lustre a reader that does so is not idle."""

Clear = Callable[[str, str, int], None]
"""Clear the records of an MDT up to an index for a reader (``cl1``)."""


class Clearing:
    """The readers of the configuration."""

    def __init__(self, clear: Clear, readers: Mapping[str, str], follower: Follower, clock: Clock,
                 say: Callable[[str], None], fsname: str = "FSNAME") -> None:
        self._fsname = fsname
        self._clear = clear
        self._readers = readers
        self._follower = follower
        self._clock = clock
        self._say = say
        self._cleared: dict[str, tuple[int, float]] = {}
        """MDT to the last index that was cleared, and when."""
        self._told: dict[str, str] = {}

    def __call__(self) -> None:
        """Clear what has been dealt with since. Only after the positions are in the journal."""
        positions = self._follower.positions
        now = self._clock.now()
        for mdt, reader in self._readers.items():
            index = positions.get(mdt, 0)
            last, at = self._cleared.get(mdt, (0, -AT_LEAST_EVERY_SECONDS))
            if index and (index > last or now - at >= AT_LEAST_EVERY_SECONDS or mdt in self._told):
                self._one(mdt, reader, index, now)

    def _one(self, mdt: str, reader: str, index: int, now: float) -> None:
        """Clear one MDT.

        ENOENT is also what Lustre says to an index before the one this reader had cleared: then somebody else clears
        for it, and records may be gone that were never seen here. EINVAL means that there is no such record yet.
        """
        try:
            self._clear(mdt, reader, index)
        except OSError as error:
            words = f"{error}"
            if error.errno == errno.ENOENT:
                words = (f"Lustre knows no reader {reader} (or somebody else clears for it); register one: lctl "
                         f"--device {self._fsname}-{mdt} changelog_register, and name it in sense.readers")
                self._follower.lost(mdt, words, "clearing")
            elif error.errno == errno.EINVAL:
                words = f"it has no record {index}: it was begun anew"
                self._follower.begin_anew(mdt)
            if self._told.get(mdt) != words:
                self._say(f"changelog of {mdt} cannot be cleared for {reader}: {words}")
            self._told[mdt] = words
        else:
            self._cleared[mdt] = index, now
            if self._told.pop(mdt, ""):
                self._say(f"changelog of {mdt} can be cleared again for {reader}")
                self._follower.regained(mdt, "clearing")
