"""Follows the changelogs of all MDTs from the last position. It returns no record twice and reports every gap.

If an MDT is down, calls that read or clear its changelog or make a mark return only when it is back. Each such call
runs in its own thread with a limited wait, so that the other MDTs and the cycle continue. An MDT gets no second call
before the first has returned: there is at most one thread for each MDT. The result of a call that returned late goes
to the next caller with the same question.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from itertools import chain, count
from typing import Any, NamedTuple, TypeVar, cast

from lustre.background import DaemonExecutor
from lustre.changelog.decode import last_index, packed_pieces
from lustre.changelog.record import Record
from tierd.clock import Clock
from tierd.sense.changelogs.recording import MakeMark, RecordingCheck

ReadFrom = Callable[[str, int], bytes]
"""Raw records of an MDT with a higher index than given; b"" for none. See ``lustre.filesystem.Filesystem``."""


class ChangelogError(OSError):
    """A changelog cannot be read, or has a gap."""


class MissingRecordsError(ChangelogError):
    """Records are lost: the known state of directories may be wrong."""


MAX_READS = 16
"""Reads (some 4 MiB each) of one MDT in one call: an MDT that writes faster than tierd reads holds up no other."""


class Follower:
    """Position in the changelog of each MDT."""

    def __init__(self, read: ReadFrom, mdts: Iterable[str], positions: Mapping[str, int] | None = None,
                 max_reads: int = MAX_READS, recording: RecordingCheck | None = None) -> None:
        self._read = read
        self.recording = recording
        """Checks whether MDTs record. None: all are assumed to record."""
        self._max_reads = max_reads
        self._positions: dict[str, int] = {mdt: (positions or {}).get(mdt, 0) for mdt in mdts}
        self._lost: dict[tuple[str, str], str] = {}
        """Reason why an MDT keeps no records for tierd, by MDT and by the check that found it."""
        self._missed: dict[str, str] = {}
        """Reason why an MDT kept no records for a while. It is reported once, with the next records."""

    @property
    def positions(self) -> Mapping[str, int]:
        """Index of the last returned record of each MDT; 0 before the first."""
        return dict(self._positions)

    def mark_lost(self, mdt: str, why: str, by: str = "") -> None:
        """Mark an MDT as one that keeps no records for tierd. ``by`` names the check that found it."""
        self._lost[mdt, by] = why

    def restored(self, mdt: str, by: str = "") -> None:
        """Mark an MDT as recording again, according to the same check. Records in between are missing."""
        why = self._lost.pop((mdt, by), "")
        if why:
            self._missed[mdt] = f"records are missing, for {why}"

    def restart_from_zero(self, mdt: str) -> None:
        """Read an MDT from its first record, because its changelog restarted and ends before the last position."""
        self._positions[mdt] = 0
        self._missed[mdt] = "it has restarted"

    def records(self) -> Iterator[Record]:
        """Records since the last call, one by one. Raises the errors of ``batches``."""
        return chain.from_iterable(self.batches())

    def batches(self) -> Iterator[Sequence[Record]]:
        """Records since the last call in batches, one MDT after the other.

        Errors are raised after all readable records were returned: MissingRecordsError if records are missing (Lustre
        drops them, for example, when a reader is deregistered); ChangelogError if a device cannot be read, if its data
        is no changelog, or if an MDT keeps no records for tierd.
        """
        problems: list[str] = []
        gaps: list[str] = []
        for mdt, before in list(self._positions.items()):
            at_its_end = yield from self._of(mdt, problems, gaps)
            if at_its_end and self.recording is not None:
                self._judge(mdt, before, self.recording)
        gaps += [f"changelog of {mdt}: {why}" for mdt, why in self._missed.items()]
        self._missed.clear()
        lost = {mdt: why for (mdt, by), why in sorted(self._lost.items())}  # one sentence for each MDT
        problems += [f"changelog of {mdt}: {why}" for mdt, why in lost.items()]
        if gaps:
            raise MissingRecordsError("; ".join(gaps + problems))
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
            self._missed[mdt] = verdict.gap
        if verdict.anew:
            self.restart_from_zero(mdt)

    def _of(self, mdt: str, problems: list[str],
            gaps: list[str]) -> Generator[Sequence[Record], None, bool]:
        """Yield the records of one MDT. Returns whether its end was reached."""
        for _ in range(self._max_reads):
            start = last = self._positions[mdt]
            try:
                for records in packed_pieces(self._read(mdt, start)):
                    end = last_index(records)
                    if end <= last:  # otherwise the same records would be read forever
                        problems.append(f"changelog of {mdt}: asked for records after {last}, got {end}")
                        return False
                    if last and (gap := gap_in(last, records)):
                        gaps.append(f"changelog of {mdt}: {gap}")
                    last = self._positions[mdt] = end
                    yield records if self.recording is None else self.recording.without_marks(mdt, records)
                    del records  # their memory is used for the next ones
            except (OSError, ValueError) as error:
                problems.append(f"changelog of {mdt}: {error}")
                return False
            if last == start:
                return True
        return False


def gap_in(last: int, records: Sequence[Record]) -> str:
    """Describe the first gap after the last index; "" without a gap.

    >>> from lustre.changelog.record import RecordType
    >>> gap_in(5, [Record(6, RecordType.CLOSE, 0.0), Record(9, RecordType.CLOSE, 0.0)])
    'records 7 to 8 are missing'
    """
    if last_index(records) - last == len(records):
        return ""
    for record in records:
        if record.index > last + 1:
            return f"records {last + 1} to {record.index - 1} are missing"
        last = record.index
    return ""


Answer = TypeVar("Answer")
ClearChangelog = Callable[[str, str, int], None]
"""Clears the changelog of an MDT for a reader, up to an index."""
TIMEOUT_SECONDS = 10.0
"""Limit of one call. Reading some 4 MiB of records takes one to two seconds."""


class _Call(NamedTuple):
    question: Hashable
    begun_at: float
    answer: Future[Any]


class TimedCalls:
    """Calls MDTs with a limited wait, and with at most one call to each MDT at a time."""

    def __init__(self, clock: Clock, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._executor = DaemonExecutor("tierd-changelog")
        self._calls: dict[str, _Call] = {}

    def __call__(self, mdt: str, question: Hashable, ask: Callable[[], Answer]) -> Answer:
        """The result of ``ask``. Raises the error of ``ask``.

        Raises TimeoutError if this call, or the previous call to this MDT, has not returned in time. The result of a
        call that returns late goes to the next caller with an equal ``question``.
        """
        call = self._calls.get(mdt)
        if call is not None and call.question != question:
            if not call.answer.done():
                raise self._timeout(call)
            call = None
        if call is None:
            call = self._calls[mdt] = _Call(question, self._clock.now(), self._executor.submit(ask))
            wait({call.answer}, timeout=self._timeout_seconds)
        if not call.answer.done():
            raise self._timeout(call)
        del self._calls[mdt]
        return cast("Answer", call.answer.result())

    def _timeout(self, call: _Call) -> TimeoutError:
        waited_seconds = max(self._timeout_seconds, self._clock.now() - call.begun_at)
        return TimeoutError(errno.ETIMEDOUT, f"no answer for {waited_seconds:.0f} s: the MDS is down, or in recovery")

    def reading(self, read: ReadFrom) -> ReadFrom:
        """``read`` with this limit."""
        return lambda mdt, after: self(mdt, ("read", after), lambda: read(mdt, after))

    def clearing(self, clear: ClearChangelog) -> ClearChangelog:
        """``clear`` with this limit."""
        return lambda mdt, reader, index: self(mdt, ("clear", reader, index), lambda: clear(mdt, reader, index))

    def marking(self, mark: MakeMark) -> MakeMark:
        """``mark`` with this limit. The result of a mark that returns late is dropped."""
        numbers = count()
        return lambda mdt: self(mdt, ("mark", next(numbers)), lambda: mark(mdt))
