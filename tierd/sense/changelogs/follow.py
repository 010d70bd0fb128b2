"""Follows the changelogs of all MDTs from the last position, and clears them. No record is returned twice, and every
gap is reported.

A record whose number is missing may be late: since Lustre 2.17 an MDT writes records at the same time, and a reader may
see record 12 before record 11 (:mod:`lustre.changelog.device`). So the first missing record is the end of the changelog
for now. Records after it are returned only once it is there, or once it is lost: then it is still missing in a later
read, :data:`LATE_SECONDS` after a record behind it was seen. Nothing waits for that, and records keep their order.

A lost record may never have existed. An MDT that cannot write a record, or that ends before the record is on disk, does
not use its number again.

If an MDT is down, calls that read or clear its changelog return only when it is back. Each such call runs in its own
thread with a limited wait, so that the other MDTs and the cycle continue. An MDT gets no second call before the first
has returned: there is at most one thread for each MDT. The result of a call that returned late goes to the next caller
with the same question.
"""

from __future__ import annotations

import errno
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from tierd.background import DaemonExecutor
from tierd.clock import Clock
from tierd.sense.changelogs.packed import Records, packed_pieces
from tierd.sense.changelogs.recording import RecordingCheck
from tierd.sense.http_client import summary_of_errors
from tierd.text import utc_text

log = logging.getLogger("tierd.sense")
ReadFrom = Callable[[str, int], bytes]
"""Raw records of an MDT with a higher index than given; b"" for none. See ``lustre.filesystem.Filesystem``."""


class ChangelogError(OSError):
    """A changelog cannot be read, or has a gap."""


class MissingRecordsError(ChangelogError):
    """Records are lost: the known state of directories may be wrong."""

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        """``problems``: other errors of the same call."""
        super().__init__("; ".join((message, *problems)))
        self.message = message
        self.problems = "; ".join(problems)


MAX_READS = 64
"""Reads (some 1 MiB each) of one MDT in one call: an MDT that writes faster than tierd reads holds up no other."""
READ_SECONDS = 5.0
"""Time after which the rest of an MDT's records is left for the next call, which continues there. A choice."""
BEHIND_SECONDS = 60.0
"""Age of the last record of a call that left some for the next one, with which the present is unknown. A choice."""
LATE_SECONDS = 2.0
"""Time for a record to be written after one with a higher number was seen. An MDT thread needs some microseconds, or
milliseconds if it waits for a disk. A choice."""


class _Later(NamedTuple):
    """The highest index in a read that a missing record ended, and the time of the read."""

    highest_index: int
    seen_at: float


class Follower:
    """Position in the changelog of each MDT."""

    def __init__(self, read: ReadFrom, mdts: Iterable[str], clock: Clock, positions: Mapping[str, int] | None = None,
                 max_reads: int = MAX_READS, recording: RecordingCheck | None = None) -> None:
        self._read = read
        self._clock = clock
        self.recording = recording
        """Checks whether MDTs record. None: all are assumed to record."""
        self._max_reads = max_reads
        self._positions: dict[str, int] = {mdt: (positions or {}).get(mdt, 0) for mdt in mdts}
        self._later: dict[str, _Later] = {}
        """By MDT, if the last call ended at a missing record."""
        self.unread: dict[str, bool] = {}
        """MDTs that the last call did not read to their end, and whether it could read them at all."""
        self._lost: dict[tuple[str, str], str] = {}
        """Reason why an MDT keeps no records for tierd, by MDT and by the check that found it."""
        self._missed: defaultdict[str, list[str]] = defaultdict(list)
        """By MDT, why records are missing. It is reported once, with the next records."""

    @property
    def positions(self) -> Mapping[str, int]:
        """Index of the last returned record of each MDT; 0 before the first."""
        return dict(self._positions)

    @property
    def waiting(self) -> Collection[str]:
        """MDTs of which the last call returned only the records before a missing one, which may still be written."""
        return self._later.keys()

    def mark_lost(self, mdt: str, why: str, by: str = "") -> None:
        """Mark an MDT as one that keeps no records for tierd. ``by`` names the check that found it."""
        self._lost[mdt, by] = why

    def restored(self, mdt: str, by: str = "") -> None:
        """Mark an MDT as recording again, according to the same check. Records in between are missing."""
        if why := self._lost.pop((mdt, by), ""):
            self._missed[mdt].append(f"records are missing, for {why}")

    def restart_from_zero(self, mdt: str) -> None:
        """Read an MDT from its first record, because its changelog restarted and ends before the last position."""
        if self._positions[mdt]:
            self._positions[mdt] = 0
            self._missed[mdt].append("it has restarted")

    def batches(self) -> Iterator[Records]:
        """Records since the last call in batches, one MDT after the other.

        Errors are raised after all readable records were returned: MissingRecordsError if records are missing (Lustre
        drops them, for example, when a reader is deregistered); ChangelogError if a device cannot be read, if its data
        is not a changelog, or if an MDT keeps no records for tierd.
        """
        problems: list[str] = []
        for mdt, before in list(self._positions.items()):  # copied: it changes meanwhile
            at_its_end = yield from self._of(mdt, problems)
            some = mdt in self._later and self._positions[mdt] != before
            if self.recording is not None and (at_its_end or some):
                self._judge(mdt, before, self.recording)
        gaps, self._missed = self._missed, defaultdict(list)
        lost = {mdt: why for (mdt, by), why in sorted(self._lost.items())}  # one sentence for each MDT
        problems += [f"changelog of {mdt}: {why}" for mdt, why in lost.items()]
        missing = [f"changelog of {mdt}: {summary_of_errors(whys)}" for mdt, whys in gaps.items()]
        if missing:
            raise MissingRecordsError("; ".join(missing), problems)
        if problems:
            raise ChangelogError("; ".join(problems))

    def _judge(self, mdt: str, before: int, recording: RecordingCheck) -> None:
        """Check an MDT that could be read, and apply the verdict."""
        verdict = recording.check(mdt, before, self._positions[mdt])
        if verdict.problem:
            self.mark_lost(mdt, verdict.problem, "recording")
        else:
            self.restored(mdt, "recording")
        if verdict.gap:
            self._missed[mdt].append(verdict.gap)

    def _of(self, mdt: str, problems: list[str]) -> Generator[Records, None, bool]:
        """Yield the records of one MDT. Returns whether its end was reached."""
        begun_at = self._clock.now()
        before = self._later.pop(mdt, None)
        if before is not None and begun_at < before.seen_at:  # the clock was set back
            before = before._replace(seen_at=begun_at)
        newest = begun_at
        self.unread.pop(mdt, None)
        for _ in range(self._max_reads):
            start = self._positions[mdt]
            behind = end = 0
            try:
                for records in packed_pieces(self._read(mdt, start)):
                    newest, end, last = records.newest_time, records.last_index, self._positions[mdt]
                    if behind:  # of the rest, only the last index counts
                        continue
                    if end <= last:  # otherwise the same records would be read forever
                        problems.append(f"changelog of {mdt}: asked for records after {last}, got {end}")
                        return False
                    behind = yield from self._up_to_missing(mdt, records, before, begun_at)
                    del records  # their memory is used for the next ones
            except (OSError, ValueError) as error:
                problems.append(f"changelog of {mdt}: {error}")
                self.unread[mdt] = False
                if before is not None:
                    self._later[mdt] = before  # the wait goes on
                return False
            if behind:
                known = before is not None and behind <= before.highest_index
                self._later[mdt] = before if before is not None and known else _Later(end, begun_at)
                return False
            if self._positions[mdt] == start:  # a read without records is the end
                return True
            if not 0 <= self._clock.now() - begun_at < READ_SECONDS:
                break
        if newest < begun_at - BEHIND_SECONDS:
            self.unread[mdt] = True
            problems.append(f"changelog of {mdt}: tierd is more than {BEHIND_SECONDS:.0f} s behind, and catches up")
        return False

    def _up_to_missing(self, mdt: str, records: Records, before: _Later | None,
                       now: float) -> Generator[Records, None, int]:
        """Yield the records up to a missing one that may be late. Returns the index behind it; 0 without one.
        ``before`` is what the last call saw, if it ended at a missing record.
        """
        indexes, begin, last = records.indexes, 0, self._positions[mdt]
        gaps: list[int] = []
        # nearly always none is missing, and there is nothing to search
        if records.last_index - last != len(records):
            # indexes need not rise: a late record follows one with a higher index
            highest = np.maximum.accumulate(np.append(np.uint64(last or indexes[0]), indexes))
            gaps = np.flatnonzero(indexes > highest[:-1] + 1).tolist()
        for at in (*gaps, len(records)):
            if at > begin:
                part = records.at(slice(begin, at)) if gaps else records
                self._positions[mdt] = part.last_index
                yield part
                begin = at
            if at < len(records):
                behind = int(indexes[at])
                # seen for the first time, or not for long: it may still be written
                if before is None or behind > before.highest_index or now - before.seen_at < LATE_SECONDS:
                    return behind
                self._missed[mdt].append(f"records {highest[at] + 1} to {behind - 1} are missing")
        return 0


Answer = TypeVar("Answer")
ClearChangelog = Callable[[str, str, int], None]
"""Clears the changelog of an MDT for a reader, up to an index."""
TIMEOUT_SECONDS = 10.0
"""Limit of one call. Reading about 1 MiB of records takes less than a second."""


class _Call(NamedTuple):
    doing: str
    begun_at: float
    answer: Future[Any]


class TimedCalls:
    """Calls MDTs with a limited wait, and with at most one call to each MDT at a time."""

    def __init__(self, clock: Clock, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._executor = DaemonExecutor("tierd-changelog")
        self._calls: dict[str, _Call] = {}

    def __call__(self, mdt: str, doing: str, ask: Callable[[], Answer]) -> Answer:
        """The result of ``ask``. Raises the error of ``ask``. ``doing`` describes the call, for people too.

        Raises TimeoutError if this call, or the previous call to this MDT, has not returned in time. The result of a
        call that returns late goes to the next caller that does the same, or is dropped.
        """
        call = self._calls.get(mdt)
        if call is not None and call.doing != doing:
            if not call.answer.done():
                raise self._timeout(call)
            call = None
        if call is None:
            call = self._calls[mdt] = _Call(doing, self._clock.now(), self._executor.submit(ask))
            wait({call.answer}, timeout=self._timeout_seconds)
        if not call.answer.done():
            raise self._timeout(call)
        del self._calls[mdt]
        return cast("Answer", call.answer.result())

    def _timeout(self, call: _Call) -> TimeoutError:
        return TimeoutError(errno.ETIMEDOUT, f"{call.doing} has not returned since {utc_text(call.begun_at)}: the MDS "
                            "is down, in recovery or slow")

    def under_way(self) -> str:
        """The calls that have not returned, for people; "" for none. Any thread may ask."""
        now = self._clock.now()
        return "; ".join(f"{mdt}: {call.doing} has taken {now - call.begun_at:.0f} s"
                         for mdt, call in sorted(self._calls.copy().items()) if not call.answer.done())

    def reading(self, read: ReadFrom) -> ReadFrom:
        """``read`` with this limit."""
        return lambda mdt, after: self(mdt, f"reading the records after {after}", lambda: read(mdt, after))

    def clearing(self, clear: ClearChangelog) -> ClearChangelog:
        """``clear`` with this limit. An MDT is cleared for one reader."""
        return lambda mdt, reader, index: self(mdt, f"clearing the records up to {index}",
                                               lambda: clear(mdt, reader, index))


CLEAR_AGAIN_SECONDS = 10.0
"""Interval at which the last index is cleared again if there are no new records. This detects a deregistered reader
within two cycles, and Lustre does not count the reader as idle."""


class ChangelogClearing:
    """Clears the changelogs of MDTs with a configured reader.

    Lustre deregisters a reader that lags too far or is idle for a month. An MDT without readers writes no records, and
    reading its device returns no data and no error. Clearing for such a reader fails (``mdd_changelog_clear`` of Lustre
    2.17 returns ENOENT). :mod:`tierd.sense.changelogs.recording` uses other evidence.
    """

    def __init__(self, clear: ClearChangelog, readers: Mapping[str, str], clock: Clock, fsname: str = "FSNAME") -> None:
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
            if index and follower.unread.get(mdt, True) and (
                    index > last or not 0 <= now - at < CLEAR_AGAIN_SECONDS or mdt in self._logged):
                self._one(follower, mdt, reader, index, now)

    def _one(self, follower: Follower, mdt: str, reader: str, index: int, now: float) -> None:
        try:
            self._clear(mdt, reader, index)
        except OSError as error:
            # older records, which another reader keeps, are none of this one: it begins where it was registered
            if mdt in follower.unread and mdt not in self._cleared:
                return
            words = f"{error}"
            # also, and before 2.17.57 EINVAL (LU-20351), for an index below the last one cleared for this reader: then
            # another program clears for it, and records may be gone that tierd has not read
            below = error.errno == errno.EINVAL and follower.recording and follower.recording.has_written(mdt, index)
            if error.errno == errno.ENOENT or below:
                words = (f"Lustre knows no reader {reader} (or another program clears for it); register one: lctl "
                         f"--device {self._fsname}-{mdt} changelog_register, and name it in sense.readers")
                follower.mark_lost(mdt, words, "clearing")
            # there is no such record yet
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
