"""Changelogs of all MDTs, followed from where they were left: nothing twice, and a gap is said, never guessed over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from lustre import changelog
from lustre.changelog import Record

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
                 most_reads: int = MOST_READS) -> None:
        self._read = read
        self._most_reads = most_reads
        self._positions: dict[str, int] = {mdt: (positions or {}).get(mdt, 0) for mdt in mdts}
        self._lost: dict[str, str] = {}
        """MDTs that keep no records for us at present, and why."""
        self._missed: dict[str, str] = {}
        """MDTs that have kept none for a while; told once, with the next records."""

    @property
    def positions(self) -> Mapping[str, int]:
        """Index of the last record of each MDT that was given out; 0 before the first."""
        return dict(self._positions)

    def lost(self, mdt: str, why: str) -> None:
        """Take note that an MDT keeps no records for us, which its records themselves do not show."""
        self._lost[mdt] = why

    def regained(self, mdt: str) -> None:
        """It does again. What happened meanwhile nobody knows."""
        why = self._lost.pop(mdt, "")
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
        problems = [f"changelog of {mdt}: {why}" for mdt, why in self._lost.items()]
        gaps = [f"changelog of {mdt}: {why}" for mdt, why in self._missed.items()]
        self._missed.clear()
        for mdt in self._positions:
            yield from self._of(mdt, problems, gaps)
        if gaps:
            raise MissingRecordsError("; ".join(gaps + problems))
        if problems:
            raise ChangelogError("; ".join(problems))

    def _of(self, mdt: str, problems: list[str], gaps: list[str]) -> Iterator[Sequence[Record]]:
        for _ in range(self._most_reads):
            asked = last = self._positions[mdt]
            try:
                for records in changelog.pieces(self._read(mdt, asked)):
                    if records[-1].index <= last:  # never to be asked again and again
                        problems.append(f"changelog of {mdt}: asked for records after {last}, got {records[-1].index}")
                        return
                    if asked and asked == last and records[0].index > last + 1:
                        gaps.append(f"changelog of {mdt}: records {last + 1} to {records[0].index - 1} are missing")
                    last = self._positions[mdt] = records[-1].index
                    yield records
            except (OSError, ValueError) as error:
                problems.append(f"changelog of {mdt}: {error}")
                return
            if last == asked:
                return
