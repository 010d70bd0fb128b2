"""Changelogs of all MDTs, followed from where they were left: nothing twice, and a gap is said, never guessed over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from lustre import changelog
from lustre.changelog import Record

ReadFrom = Callable[[str, int], bytes]
"""Raw records of an MDT with a higher index than given, b"" when there are none; as the file system port has it."""


class ChangelogError(OSError):
    """A changelog that cannot be read, or from which records are missing."""


class Follower:
    """Where each MDT's changelog was read to."""

    def __init__(self, read: ReadFrom, mdts: Iterable[str], positions: Mapping[str, int] | None = None) -> None:
        self._read = read
        self._positions: dict[str, int] = {mdt: (positions or {}).get(mdt, 0) for mdt in mdts}

    @property
    def positions(self) -> Mapping[str, int]:
        """Index of the last record of each MDT that was given out; 0 before the first."""
        return dict(self._positions)

    def records(self) -> Iterator[Record]:
        """Records since the last call, one MDT after the other.

        Raises ChangelogError once all that could be read was given out: naming an MDT whose device cannot be read,
        data that is no changelog, or a gap (Lustre forgot records, as it does when a reader was deregistered).
        """
        problems: list[str] = []
        for mdt in self._positions:
            yield from self._of(mdt, problems)
        if problems:
            raise ChangelogError("; ".join(problems))

    def _of(self, mdt: str, problems: list[str]) -> Iterator[Record]:
        while True:
            last = self._positions[mdt]
            try:
                records, _ = changelog.decode(self._read(mdt, last))
            except (OSError, ValueError) as error:
                problems.append(f"changelog of {mdt}: {error}")
                return
            if not records:
                return
            if last and records[0].index > last + 1:
                problems.append(f"changelog of {mdt}: records {last + 1} to {records[0].index - 1} are missing")
            self._positions[mdt] = records[-1].index
            yield from records
