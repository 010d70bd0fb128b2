"""Follows the changelogs of all MDTs from the last position: no record twice, and every gap is reported.

Reading the changelog of an MDT that is down does not return until the MDT is back, and neither do clearing and marks.
Each such call runs in a thread of its own and is waited for a limited time; the other MDTs and the cycle go on. An
MDT gets no second call before the first has returned, so that there is one such thread for each MDT at most. A late
answer is given to the next caller with the same question.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from itertools import chain, count
from typing import Any, NamedTuple, TypeVar, cast

from lustre.background import DaemonExecutor
from lustre.changelog.decode import pieces
from lustre.changelog.record import Record
from tierd.clock import Clock
from tierd.sense.changelogs.recording import MakeMark, RecordingCheck

ReadFrom = Callable[[str, int], bytes]
"""Raw records of an MDT with a higher index than given, b"" when there are none; as the file system port has it."""


class ChangelogError(OSError):
    """A changelog that cannot be read, or from which records are missing."""


class MissingRecordsError(ChangelogError):
    """Records are missing for good: what is known of directories may no longer be so."""


MAX_READS = 16
"""Reads of one MDT (some 4 MiB each) in one call: where records come faster than they are dealt with, others and the
cycle have their turn all the same."""


class Follower:
    """Position in the changelog of each MDT."""

    def __init__(self, read: ReadFrom, mdts: Iterable[str], positions: Mapping[str, int] | None = None,
                 max_reads: int = MAX_READS, recording: RecordingCheck | None = None) -> None:
        self._read = read
        self.recording = recording
        """Checks whether MDTs record at all; None: they are assumed to record."""
        self._max_reads = max_reads
        self._positions: dict[str, int] = {mdt: (positions or {}).get(mdt, 0) for mdt in mdts}
        self._lost: dict[tuple[str, str], str] = {}
        """MDTs that keep no records for tierd now, by the check that found it, and the reason."""
        self._missed: dict[str, str] = {}
        """MDTs that kept no records for a while, and the reason; reported once, with the next records."""

    @property
    def positions(self) -> Mapping[str, int]:
        """Index of the last record of each MDT that was given out; 0 before the first."""
        return dict(self._positions)

    def mark_lost(self, mdt: str, why: str, by: str = "") -> None:
        """Mark an MDT as one that keeps no records for tierd. ``by`` is the check that found it."""
        self._lost[mdt, by] = why

    def restored(self, mdt: str, by: str = "") -> None:
        """Mark the MDT as recording again, by the same check. Records of the time between are missing."""
        why = self._lost.pop((mdt, by), "")
        if why:
            self._missed[mdt] = f"records are missing, for {why}"

    def restart_from_zero(self, mdt: str) -> None:
        """Read an MDT from its first record: its changelog began again, and ends before the last position."""
        self._positions[mdt] = 0
        self._missed[mdt] = "it was begun anew"

    def records(self) -> Iterator[Record]:
        """Records since the last call, one by one; raises as ``batches`` does."""
        return chain.from_iterable(self.batches())

    def batches(self) -> Iterator[Sequence[Record]]:
        """Records since the last call, one MDT after the other, so many at a time.

        Once all that could be read was given out, raises MissingRecordsError where records are missing (Lustre forgot
        them, as it does when a reader was deregistered), or ChangelogError: naming an MDT whose device cannot be read,
        data that is no changelog, or an MDT that keeps no records for tierd.
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
        """Apply the verdict on an MDT that could be read."""
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
        """Records of one MDT; whether that is all there are at present."""
        for _ in range(self._max_reads):
            asked = last = self._positions[mdt]
            try:
                for records in pieces(self._read(mdt, asked)):
                    if records[-1].index <= last:  # never to be asked again and again
                        problems.append(f"changelog of {mdt}: asked for records after {last}, got {records[-1].index}")
                        return False
                    if last and (gap := gap_in(last, records)):
                        gaps.append(f"changelog of {mdt}: {gap}")
                    last = self._positions[mdt] = records[-1].index
                    yield records if self.recording is None else self.recording.without_marks(mdt, records)
            except (OSError, ValueError) as error:
                problems.append(f"changelog of {mdt}: {error}")
                return False
            if last == asked:
                return True
        return False


def gap_in(last: int, records: Sequence[Record]) -> str:
    """Which numbers are missing between the last record and these, or among them; "" for none.

    >>> from lustre.changelog.record import RecordType
    >>> gap_in(5, [Record(6, RecordType.CLOSE, 0.0), Record(9, RecordType.CLOSE, 0.0)])
    'records 7 to 8 are missing'
    """
    if records[-1].index - last == len(records):
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
"""Some 4 MiB of records take one to two."""


class _Call(NamedTuple):
    question: Hashable
    begun_at: float
    answer: Future[Any]


class TimedCalls:
    """Calls to MDTs with a limit on the wait, and at most one call to each MDT at a time."""

    def __init__(self, clock: Clock, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._executor = DaemonExecutor("tierd-changelog")
        self._calls: dict[str, _Call] = {}

    def __call__(self, mdt: str, question: Hashable, ask: Callable[[], Answer]) -> Answer:
        """The result of ``ask``, or what it raised.

        Raises TimeoutError when this call, or the one before it, has not returned in time. The result of a call that
        returns late is given to the next caller with an equal ``question``.
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
