"""Adds records of known files, in which no file is created or removed: opens, closes, renames and new layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tierd.loads import Bools, Ints
from tierd.sense.changelogs.counts import CLOSES, MIN_SHARED_OPENS, OPENS, OUTGROWN, WRITE_OPENS, CountTables
from tierd.sense.changelogs.files import Bytes, as_fid
from tierd.sense.changelogs.packed import CLOSE, LAYOUT, OPEN, RENAME, Fields
from tierd.sense.paths import PathCache

WRITE_MODES = 0o3002
"""Flags of an open that may change the file: write, truncate, append (``MDS_FMODE_WRITE``, ``MDS_OPEN_TRUNC``,
``MDS_OPEN_APPEND``)."""
_FAR = 1 << 32
"""More than a file is open at the same time."""
Column = TypeVar("Column", bound=NDArray[np.generic])


def files_in(row: Ints) -> tuple[Ints, Ints]:
    """Of records sorted by file: where each file begins, and the number of the file of each record."""
    is_first = np.empty(len(row), bool)
    is_first[:1] = True
    np.not_equal(row[1:], row[:-1], out=is_first[1:])
    return np.flatnonzero(is_first), np.cumsum(is_first) - 1


class Changes:
    """Some records, sorted by file, and by time those of each file."""

    def __init__(self, known: CountTables, path: PathCache, fields: Fields, row: Ints, job: Ints) -> None:
        self._known, self._files, self._counts, self._path = known, known.files, known.counts, path
        self._fields, self._row, self._job = fields, row, job
        self._begins, self._of_file = files_in(row)
        self._ends = np.append(self._begins[1:], len(row)) - 1
        self._opened, self._closed = fields.kind == OPEN, fields.kind == CLOSE
        self._renamed = self._latest(fields.kind == RENAME)

    def add(self, text: Bytes, nids: Sequence[str]) -> None:
        """Add them. ``text`` has their names, and ``nids`` the names of the clients by number."""
        files, row, last, place = self._files, self._row, self._ends, self._places()
        owner = self._owners(place)
        self._count_opens(owner, nids)
        self._count_closes(owner, place)
        self._count_layouts(owner, place)
        before, after = self._open_counts()
        files.owner[row[last]], files.place[row[last]] = owner[last], place[last]
        files.open_count[row[last]] = after[last]
        files.closed_at[row[last]] = self._last(self._fields.time, self._latest(self._closed), files.closed_at)[last]
        named = self._renamed[last][self._renamed[last] >= 0]
        files.put_names(row[named], text, self._fields.name_at[named], self._fields.name_bytes[named])
        self._share(before, after)

    def _latest(self, which: Bools) -> Ints:
        """For each record, the latest of these of the same file that does not come after it; -1 without one."""
        latest = np.maximum.accumulate(np.where(which, np.arange(len(which)), -1))
        found: Ints = np.where(latest >= self._begins[self._of_file], latest, -1)
        return found

    def _last(self, values: Column, latest: Ints, before: NDArray[np.generic]) -> Column:
        """The value of the latest record, or the one of the file before."""
        return np.where(latest >= 0, values[latest], before[self._row])  # type: ignore[return-value]

    def _places(self) -> Ints:
        """The directory of the file after each record."""
        place, renamed = np.zeros(len(self._row), np.int64), self._fields.kind == RENAME
        parents = self._fields.parent[renamed]
        place[renamed] = [self._counts.places[self._path.place(as_fid(parent.tobytes()))] for parent in parents]
        return self._last(place, self._renamed, self._files.place)

    def _owners(self, place: Ints) -> Ints:
        """The counts to which the file belongs after each record: those of the job that opened it last."""
        opened, owner = self._opened, np.zeros(len(self._row), np.int64)
        if not opened.any():
            return self._files.owner[self._row].astype(np.int64)
        owner[opened] = self._counts.numbers(self._job[opened], place[opened])
        owner = self._last(owner, self._latest(opened), self._files.owner)
        before = np.append(0, owner[:-1])
        before[self._begins] = self._files.owner[self._row[self._begins]]
        new = np.flatnonzero(owner != before)
        new = new[np.argsort(self._fields.number[new])]
        self._known.list_files(owner[new], self._row[new])
        return owner

    def _count_opens(self, owner: Ints, nids: Sequence[str]) -> None:
        files, fields, row, opened = self._files, self._fields, self._row, self._opened
        self._counts.at_work(owner[opened], fields.time[opened])
        closed_at = self._last(fields.time, self._latest(self._closed), files.closed_at)
        # the open that created a file is counted as a create
        again = opened & ~(files.created[row] & (closed_at == files.created_at[row]))
        np.add.at(files.reopened, row[again], 1)
        self._known.count(OPENS, owner[again], fields.nid[again], nids, fields.number[again])
        written = owner[again & ((fields.mode & WRITE_MODES) > 0)]
        np.add.at(self._counts.counted[:, WRITE_OPENS], written, 1)

    def _count_closes(self, owner: Ints, place: Ints) -> None:
        counts, closed = self._counts, self._closed
        numbers, place, job = owner[closed], place[closed], self._job[closed]
        whose = counts.job[numbers]
        moved = np.flatnonzero(~counts.in_table[numbers] | (counts.place[numbers] != place))
        if len(moved):
            there = [counts.has(*pair) for pair in zip(whose[moved].tolist(), place[moved].tolist(), strict=True)]
            whose[moved] = np.where(there, whose[moved], job[moved])
            numbers[moved] = counts.numbers(whose[moved], place[moved])
        np.add.at(counts.counted[:, CLOSES], numbers, 1)
        own = whose == job
        counts.at_work(numbers[own], self._fields.time[closed][own])

    def _count_layouts(self, owner: Ints, place: Ints) -> None:
        """Count files that grew beyond a component."""
        counts, since = self._counts, self._known.layouts_since
        grew = np.flatnonzero((self._fields.kind == LAYOUT) & (self._job == counts.jobs[""]))
        if since and len(grew):
            begun = [since.get(counts.places.by_number[number], 0.0) for number in place[grew].tolist()]
            grew = grew[self._files.created_at[self._row[grew]] >= begun]
        numbers = counts.present(owner[grew], place[grew])
        np.add.at(counts.counted[:, OUTGROWN], numbers, 1)
        counts.at_work(numbers, self._fields.time[grew])

    def _open_counts(self) -> tuple[Ints, Ints]:
        """How often the file is open before and after each record.

        A close of a file that is not open, as far as known, changes nothing.
        """
        first = self._files.open_count[self._row].astype(np.int64)
        if not self._opened.any() and not first.any():
            return first, first
        change = self._opened.astype(np.int64) - self._closed
        done, begins = np.cumsum(change), self._begins
        height = first + done - (done - change)[begins][self._of_file]
        step = self._of_file * _FAR
        lowest = np.minimum.accumulate(height - step) + step
        after = height - np.minimum(lowest, 0)
        before = np.append(0, after[:-1])
        before[begins] = first[begins]
        return before, after

    def _share(self, before: Ints, after: Ints) -> None:
        """Note opens and closes of shared files."""
        crowded = self._opened & (after >= MIN_SHARED_OPENS)
        emptied = self._closed & (before > 0) & (after == 0)
        if not crowded.any() and not self._known.shared:
            return
        fields, jobs = self._fields, self._counts.jobs.by_number
        for at in np.flatnonzero(crowded | emptied).tolist():
            if crowded[at]:
                self._known.opened(int(self._row[at]), jobs[self._job[at]], int(after[at]), float(fields.time[at]))
            else:
                self._known.closed_by_all(int(self._row[at]), float(fields.time[at]))
