"""Changelogs of all MDTs, followed from where they were left: nothing twice, and a gap is said, never guessed over."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from lustre.changelog.decode import pieces
from lustre.changelog.record import Record
from tierd.sense.recording import Recording

ReadFrom = Callable[[str, int], bytes]
"""Raw records of an MDT with a higher index than given, b"" when there are none; as the file system port has it."""


class ChangelogError(OSError):
    """A changelog that cannot be read, or from which records are missing."""


class MissingRecordsError(ChangelogError):
    """Records are missing for good: what is known of directories may no longer be so."""


MOST_READS = 16
"""Reads of one MDT (some 4 MiB each) in one call: where records come faster than they are dealt with, others and the
cycle have their turn all the same."""


class Follower:
    """Where each MDT's changelog was read to."""

    def __init__(self, read: ReadFrom, mdts: Iterable[str], positions: Mapping[str, int] | None = None,
                 most_reads: int = MOST_READS, recording: Recording | None = None) -> None:
        self._read = read
        self.recording = recording
        """Tells whether MDTs record at all; None: that is taken for granted."""
        self._most_reads = most_reads
        self._positions: dict[str, int] = {mdt: (positions or {}).get(mdt, 0) for mdt in mdts}
        self._lost: dict[tuple[str, str], str] = {}
        """MDTs that keep no records for us at present, by who says so, and why."""
        self._missed: dict[str, str] = {}
        """MDTs that have kept none for a while; told once, with the next records."""

    @property
    def positions(self) -> Mapping[str, int]:
        """Index of the last record of each MDT that was given out; 0 before the first."""
        return dict(self._positions)

    def lost(self, mdt: str, why: str, by: str = "") -> None:
        """Take note that an MDT keeps no records for us, which its records themselves do not show; and who says so."""
        self._lost[mdt, by] = why

    def regained(self, mdt: str, by: str = "") -> None:
        """It does again, by the same. What happened meanwhile nobody knows."""
        why = self._lost.pop((mdt, by), "")
        if why:
            self._missed[mdt] = f"records are missing, for {why}"

    def begin_anew(self, mdt: str) -> None:
        """Its changelog was begun anew, and ends before the record that was read last."""
        self._positions[mdt] = 0
        self._missed[mdt] = "it was begun anew"

    def records(self) -> Iterator[Record]:
        """Records since the last call, one by one; raises as ``batches`` does."""
        return chain.from_iterable(self.batches())

    def batches(self) -> Iterator[Sequence[Record]]:
        """Records since the last call, one MDT after the other, so many at a time.

        Once all that could be read was given out, raises MissingRecordsError where records are missing (Lustre forgot
        them, as it does when a reader was deregistered), or ChangelogError: naming an MDT whose device cannot be read,
        data that is no changelog, or an MDT that keeps no records for us.
        """
        problems: list[str] = []
        gaps: list[str] = []
        for mdt, before in list(self._positions.items()):
            at_its_end = yield from self._of(mdt, problems, gaps)
            if at_its_end and self.recording is not None:
                self._judge(mdt, before, self.recording)
        gaps += [f"changelog of {mdt}: {why}" for mdt, why in self._missed.items()]
        self._missed.clear()
        lost = {mdt: why for (mdt, by), why in sorted(self._lost.items())}  # one sentence for each: they say the same
        problems += [f"changelog of {mdt}: {why}" for mdt, why in lost.items()]
        if gaps:
            raise MissingRecordsError("; ".join(gaps + problems))
        if problems:
            raise ChangelogError("; ".join(problems))

    def _judge(self, mdt: str, before: int, recording: Recording) -> None:
        """Take note of what has come to light of an MDT that could be read."""
        verdict = recording.look(mdt, before, self._positions[mdt])
        if verdict.trouble:
            self.lost(mdt, verdict.trouble, "recording")
        else:
            self.regained(mdt, "recording")
        if verdict.gap:
            self._missed[mdt] = verdict.gap
        if verdict.anew:
            self.begin_anew(mdt)

    def _of(self, mdt: str, problems: list[str],
            gaps: list[str]) -> Generator[Sequence[Record], None, bool]:
        """Records of one MDT; whether that is all there are at present."""
        for _ in range(self._most_reads):
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
