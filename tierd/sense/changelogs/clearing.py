"""Clears processed changelog records, and detects by errors of clearing that the reader was deregistered.

Lustre deregisters a reader that lags too far or is idle for a month. An MDT without readers writes no records, and
reading its device returns no data and no error. Clearing for such a reader fails (``mdd_changelog_clear`` of Lustre
2.17 returns ENOENT). :mod:`tierd.sense.changelogs.recording` uses other evidence.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Mapping

from tierd.clock import Clock
from tierd.sense.changelogs.follow import ClearChangelog, Follower

log = logging.getLogger("tierd.sense")
CLEAR_AGAIN_SECONDS = 10.0
"""Interval at which the last index is cleared again if there are no new records. This detects a deregistered reader
within two cycles, and Lustre does not count the reader as idle."""


class ChangelogClearing:
    """Clears the changelogs of MDTs with a configured reader."""

    def __init__(self, clear: ClearChangelog, readers: Mapping[str, str], clock: Clock,
                 fsname: str = "FSNAME") -> None:
        self._fsname = fsname
        self._clear = clear
        self._readers = readers
        self._clock = clock
        self._cleared: dict[str, tuple[int, float]] = {}
        """Last cleared index and its time, by MDT."""
        self._logged: dict[str, str] = {}

    def __call__(self, follower: Follower, positions: Mapping[str, int]) -> None:
        """Clear the records up to these positions. Call it only after the positions are in the journal."""
        now = self._clock.now()
        for mdt, reader in self._readers.items():
            index = positions.get(mdt, 0)
            last, at = self._cleared.get(mdt, (0, -CLEAR_AGAIN_SECONDS))
            if index and (index > last or now - at >= CLEAR_AGAIN_SECONDS or mdt in self._logged):
                self._one(follower, mdt, reader, index, now)

    def _one(self, follower: Follower, mdt: str, reader: str, index: int, now: float) -> None:
        """Clear one MDT.

        Lustre also returns ENOENT for an index below the last one cleared for this reader: then another program clears
        for it, and records may be gone that tierd never read. EINVAL means that there is no such record yet.
        """
        try:
            self._clear(mdt, reader, index)
        except OSError as error:
            words = f"{error}"
            if error.errno == errno.ENOENT:
                words = (f"Lustre knows no reader {reader} (or another program clears for it); register one: lctl "
                         f"--device {self._fsname}-{mdt} changelog_register, and name it in sense.readers")
                follower.mark_lost(mdt, words, "clearing")
            elif error.errno == errno.EINVAL:
                words = f"it has restarted, and has no record {index}"
                follower.restart_from_zero(mdt)
            if self._logged.get(mdt) != words:
                log.warning("changelog of %s cannot be cleared for %s: %s", mdt, reader, words)
            self._logged[mdt] = words
        else:
            self._cleared[mdt] = index, now
            if self._logged.pop(mdt, ""):
                log.info("changelog of %s can be cleared again for %s", mdt, reader)
                follower.restored(mdt, "clearing")
