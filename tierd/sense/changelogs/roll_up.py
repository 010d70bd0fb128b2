"""Adds changelog records to the counts of their jobs and directories, many at a time.

Recordings of Lustre 2.17 show three properties of records that this module depends on:

* Only namespace records have a reliable parent. The parent in an OPEN of an existing file may be another directory, so
  the path of the file itself is preferred.
* The last CLOSE may have the job id of a client thread (``ldlm_bl.0``), and the LYOUT of a new component has no job id.
  Both belong to the job that opened the file. Such a CLOSE may come long after the job has ended, for example when a
  file is moved, so it does not show that the job is at work.
* Files that a job creates and unlinks again are gone before tierd can move them.

The order of records matters only among those of one file, and around renames of directories. So records are sorted by
file. What a file is begins with a CREATE, ends with an UNLINK, and lasts in between: the records of a file up to the
next CREATE or UNLINK are a *phase*. The first phases of all files are added at once, then the second ones, and so on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lustre.fid import Fid
from lustre.nid import nid_text
from tierd.loads import Bools, Ints, Names
from tierd.sense.changelogs.counts import CLOSES, CREATES, OPENS, OUTGROWN, UNLINKS, WRITE_OPENS, CountTables
from tierd.sense.changelogs.files import Bytes, KeyIndex, Words, as_fid, each_fid, grown
from tierd.sense.changelogs.packed import (
    CLOSE,
    CREATE,
    LAYOUT,
    MKDIR,
    OPEN,
    RENAME,
    UNLINK,
    CountedRecords,
    Fields,
    Records,
    counted_records,
)
from tierd.sense.changelogs.tallies import OtherMove
from tierd.sense.own_moves import OwnMoves
from tierd.sense.paths import PathCache, directory_of, join

MOST_KEYS = 100_000
"""Job ids and NIDs in each cache. MDTs leave bytes of earlier records behind their ends: others make another key."""


class Interned:
    """Numbers of names that stand in records as keys of fixed size. Each key is decoded once."""

    def __init__(self, words: int, decode: Callable[[bytes], str]) -> None:
        self.keys = KeyIndex(words)
        self._decode = decode
        self._number: NDArray[np.int64] = np.zeros(64, np.int64)
        self._known = 0

    def numbers_of(self, keys: Words, names: Names) -> Ints:
        found = self.keys.numbers_of(keys)
        self._number = grown(self._number, len(self.keys))
        for key in range(self._known, len(self.keys)):
            self._number[key] = names[self._decode(self.keys.keys[key].tobytes())]
        self._known = len(self.keys)
        return self._number[found]


def job_name(job_id: bytes) -> str:
    return job_id.partition(b"\0")[0].decode("utf-8", "replace")


def nid_name(nid: bytes) -> str:
    return nid_text(nid, False)


class RollUp:
    """Adds records to the tables."""

    def __init__(self, known: CountTables, path: PathCache, is_echo: OwnMoves) -> None:
        self._known = known
        self._files, self._counts = known.files, known.counts
        self._path = path
        self._moves: list[OtherMove] = []
        self._is_echo = is_echo
        self._nids, self._clients = Names(), Interned(3, nid_name)
        self._begin()

    def _begin(self) -> None:
        self._compactions, self._changes = self._known.compactions, self._path.changes
        self._jobs = Interned(4, job_name)
        self._parents = KeyIndex(3)
        self._counts_in: NDArray[np.int32] = np.zeros(0, np.int32)
        """Counts of each job and parent that has a number in ``_parents``; -1 if they are not known."""

    def read(self, records: Records) -> CountedRecords:
        """The fields of records. This changes no table."""
        if max(len(self._nids), len(self._clients.keys)) > MOST_KEYS:
            self._nids, self._clients = Names(), Interned(3, nid_name)
            self._known.forget_clients()
        nids, clients = self._nids, self._clients
        return counted_records(records, lambda keys: clients.numbers_of(keys, nids), nids.__getitem__)

    def fids_without_path(self, counted: CountedRecords) -> set[Fid]:
        """FIDs of directories and opened files whose paths these records need and the cache lacks."""
        fields = counted.fields
        kind = fields.kind
        opened = fields.at(kind == OPEN).target
        parents = fields.at(np.isin(kind, (CREATE, UNLINK, MKDIR, RENAME))).parent
        made = fields.at(np.isin(kind, (CREATE, MKDIR))).target
        unknown = opened.compress(~self._files.has(opened), axis=0)
        sources = [one.source_parent for one in counted.renames.values() if one.source_parent]
        needed = {*each_fid(parents), *each_fid(unknown), *sources}.difference(each_fid(made))
        return {fid for fid in needed if fid and fid not in self._path.known}

    def add(self, counted: CountedRecords) -> tuple[list[Fid], list[OtherMove]]:
        """Add records in the order of one MDT's changelog. Records of tierd's own moves are ignored.

        Returns the files that have another path because a directory above them was renamed, and new layouts under the
        id of a job: of a migration or a setstripe, not of files that grew.
        """
        self._moves = []
        # numbers in these caches have another meaning now
        if self._known.compactions != self._compactions or len(self._jobs.keys) > MOST_KEYS:
            self._begin()
        job = self._jobs.numbers_of(counted.fields.job, self._counts.jobs)
        fields, job = self._without_echoes(counted, job)
        kind, begin, moved = fields.kind, 0, list[Fid]()
        renames = np.flatnonzero(kind == RENAME).tolist()
        created, made = ({*each_fid(fields.at(kind == each).target)} if renames else set() for each in (CREATE, MKDIR))
        for at in renames:
            fid = as_fid(fields.target[at].tobytes())
            if fid in created:
                continue  # a file: it is part of no other path
            renamed = counted.renames[int(fields.number[at])]
            old = self._named(renamed.source_parent, renamed.source_name.decode("utf-8", "surrogateescape"))
            concerns_paths = fid in made or fid in self._path.known or self._path.may_contain(old)
            if concerns_paths:
                self._add(fields.at(slice(begin, at)), job[begin:at], counted)  # by their paths of then
                begin = at
            if self._files.row_of(fid) >= 0:
                self._path.forget(fid)
                continue
            self._path.note_renamed(fid)
            if concerns_paths:
                new = self._named(renamed.parent, counted.name(fields, at))  # as of then: it may have moved on since
                self._path.clear()  # it may be part of any path
                if old and new:
                    moved += self._known.move_directory(old, new, self._path.note_place)
        self._add(fields.at(slice(begin, None)), job[begin:], counted)
        # Lustre writes no other record of a file that a rename overwrites
        self._known.forget(self._files.known_rows([one.target for one in counted.renames.values()
                                                   if one.target and one.target != one.source]))
        self._known.settle()
        return moved, self._moves

    def _named(self, parent: Fid | None, name: str) -> str:
        """The path of a name in a directory; "" if it is unknown."""
        above = self._path(parent) if parent else ""
        return join(above, name) if above else ""

    def _without_echoes(self, counted: CountedRecords, job: Ints) -> tuple[Fields, Ints]:
        fields, moved = counted.fields, self._is_echo.files
        tagged = [self._counts.jobs[tag] for tag in self._is_echo.tags if tag in self._counts.jobs]
        # only these are decoded, and asked about
        doubtful = np.isin(job, tagged)
        if moved:
            doubtful |= np.fromiter((target in moved for target in each_fid(fields.target)), bool, len(fields))
        kept = np.ones(len(fields), bool)
        for at in np.flatnonzero(doubtful).tolist():
            kept[at] = not self._is_echo(counted.record(int(fields.number[at])), self._counts.jobs.by_number[job[at]])
        return fields.at(kept), job[kept]

    def _add(self, fields: Fields, job: Ints, counted: CountedRecords) -> None:
        """Add records without a rename of a directory, except for the first."""
        if not len(fields):
            return
        for at in np.flatnonzero(fields.kind == MKDIR).tolist():
            if path := self._named(as_fid(fields.parent[at].tobytes()), counted.name(fields, at)):
                self._path.learn(as_fid(fields.target[at].tobytes()), path, float(fields.time[at]))
        if self._path.changes != self._changes or len(self._parents) > 4 * self._known.max_counts:
            self._changes, self._parents, self._counts_in = self._path.changes, KeyIndex(3), self._counts_in[:0]
        row = self._rows(fields, job)
        order = np.sort(row << 32 | np.arange(len(row)))  # many times faster than a stable sort of the rows
        order = order[np.searchsorted(order, 0):] & 0xFFFFFFFF  # without the records of other files
        fields, row, job = fields.at(order), row[order], job[order]
        begins, of_file = files_in(row)
        kind = fields.kind
        events = np.cumsum((kind == CREATE) | (kind == UNLINK))
        phase = events - events[begins][of_file]
        last = int(phase.max(initial=0))
        for number in range(last + 1):
            which: Bools | slice = phase == number if last else slice(None)
            self._phase(fields.at(which), row[which], job[which], counted)

    def _rows(self, fields: Fields, job: Ints) -> Ints:
        kind = fields.kind
        row = self._files.rows_of(fields.target, (kind == CREATE) | (kind == OPEN) | (kind == LAYOUT))
        rest = np.flatnonzero(row < 0)
        # some got their rows just now
        row[rest] = self._files.fids.find(fields.at(rest).target)
        # the unlink of an unknown file counts for its job nevertheless
        astray = np.flatnonzero((row < 0) & (kind == UNLINK))
        if len(astray):
            gone = fields.at(astray)
            self._count(UNLINKS, self._in_parent(job[astray], gone.parent), gone)
        return row

    def _phase(self, fields: Fields, row: Ints, job: Ints, counted: CountedRecords) -> None:
        """Add one phase of each file. ``row`` and ``job`` are those of the records."""
        files, (begins, of_file) = self._files, files_in(row)
        kind, time = fields.kind, fields.time
        first = kind[begins]
        made, removed = begins[first == CREATE], begins[first == UNLINK]
        known = files.present[row[removed]]
        astray, removed = removed[~known], removed[known]
        # in the order of the changelog
        made = made[np.argsort(fields.number[made], kind="stable")]
        new, stray, gone = row[made], fields.at(astray), row[removed]
        numbers = self._in_parent(job[made], fields.at(made).parent)
        self._count(CREATES, numbers, fields.at(made))
        files.put(new, numbers, self._counts.place[numbers], created=True, created_at=time[made], closed_at=time[made])
        files.put_names(new, counted.text, fields.name_at[made], fields.name_bytes[made])
        self._known.list_files(numbers, new)
        self._count(UNLINKS, self._in_parent(job[astray], stray.parent), stray)
        self._count(UNLINKS, self._counts.numbers(job[removed], files.place[gone], files.owner[gone]),
                    fields.at(removed))
        files.present[gone] = False
        live = files.present[row] & (kind != CREATE) & (kind != UNLINK)
        found = np.flatnonzero((kind == OPEN) & ~files.present[row])
        _, which = np.unique(of_file[found], return_index=True)
        for at in found[which].tolist():
            self._find(fields, row, job, at)
            same = slice(at, at + np.searchsorted(of_file[at:], of_file[at], side="right"))
            live[same] = kind[same] != UNLINK
        if live.any():
            changes = Changes(self._known, self._path, fields.at(live), row[live], job[live])
            changes.add(counted.text, self._nids.by_number)
        self._move_layouts(fields, row, job, counted)

    def _in_parent(self, job: Ints, parent: Words) -> Ints:
        """Numbers of the counts of jobs in the parents that records name."""
        keys = self._parents.numbers_of(np.column_stack((job.astype(np.uint64), parent)))
        before = len(self._counts_in)
        self._counts_in = grown(self._counts_in, len(self._parents))
        self._counts_in[before:] = -1
        counts = self._counts
        numbers = self._counts_in[keys]
        for key in np.unique(keys[(numbers < 0) | ~counts.in_table[numbers]]).tolist():
            words, number = self._parents.keys[key], self._counts_in[key]
            place = counts.places[self._path.place(as_fid(words[1:].tobytes()))] if number < 0 else counts.place[number]
            self._counts_in[key] = counts.number(int(words[0]), int(place))
        return self._counts_in[keys].astype(np.int64)

    def _count(self, column: int, numbers: Ints, fields: Fields) -> None:
        self._counts.at_work(numbers, fields.time)
        self._known.count(column, numbers, fields.nid, self._nids.by_number, fields.number)

    def _find(self, fields: Fields, row: Ints, job: Ints, at: int) -> None:
        path = self._path(as_fid(fields.target[at].tobytes()))
        # an OPEN may name another directory than that of the file
        directory = directory_of(path) if path else self._path.place(as_fid(fields.parent[at].tobytes()))
        place = self._counts.places[directory]
        one, number = row[at:at + 1], np.array([self._counts.number(int(job[at]), place)])
        self._files.put(one, number, place, created=False)
        self._files.put_name(int(row[at]), path.rpartition("/")[2].encode("utf-8", "surrogateescape"))
        self._known.list_files(number, one)

    def _move_layouts(self, fields: Fields, row: Ints, job: Ints, counted: CountedRecords) -> None:
        layouts = np.flatnonzero(fields.kind == LAYOUT)
        for at in layouts[np.argsort(fields.number[layouts], kind="stable")].tolist():
            name, known = self._counts.jobs.by_number[job[at]], self._files.present[row[at]]
            if not name:
                continue
            path = self._known.path(int(row[at])) if known else self._path(as_fid(fields.target[at].tobytes()))
            if path:  # otherwise it is an unnamed file that a mover copies into
                record = counted.record(int(fields.number[at]))
                self._moves.append(OtherMove(os.fsencode(directory_of(path)), name, record.time, record.target,
                                             record.uid, nid=record.nid))


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
    """Records of known files in which none is created or removed: opens, closes, renames and new layouts. They are
    sorted by file, and those of each file by time.
    """

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
        before, after = self._open_counts()
        self._count_opens(owner, nids, before)
        self._count_closes(owner, place)
        self._count_layouts(owner, place)
        files.owner[row[last]], files.place[row[last]] = owner[last], place[last]
        files.open_count[row[last]] = after[last]
        files.closed_at[row[last]] = self._last(self._fields.time, self._latest(self._closed), files.closed_at)[last]
        named = self._renamed[last][self._renamed[last] >= 0]
        files.put_names(row[named], text, self._fields.name_at[named], self._fields.name_bytes[named])

    def _latest(self, which: Bools) -> Ints:
        """For each record, the latest of these of the same file that does not come after it; -1 without one."""
        latest = np.maximum.accumulate(np.where(which, np.arange(len(which)), -1))
        found: Ints = np.where(latest >= self._begins[self._of_file], latest, -1)
        return found

    def _last(self, values: Column, latest: Ints, before: NDArray[np.generic]) -> Column:
        """The value of the latest record, or the one of the file before."""
        return np.where(latest >= 0, values[latest], before[self._row])  # type: ignore[return-value]

    def _places(self) -> Ints:
        place, renamed = np.zeros(len(self._row), np.int64), self._fields.kind == RENAME
        parents = self._fields.at(renamed).parent
        place[renamed] = [self._counts.places[self._path.place(as_fid(parent.tobytes()))] for parent in parents]
        return self._last(place, self._renamed, self._files.place)

    def _owners(self, place: Ints) -> Ints:
        """The counts to which the file belongs after each record: those of the job that opened it last."""
        opened, owner = self._opened, np.zeros(len(self._row), np.int64)
        if not opened.any():
            return self._files.owner[self._row].astype(np.int64)
        owner[opened] = self._counts.numbers(self._job[opened], place[opened], self._files.owner[self._row[opened]])
        owner = self._last(owner, self._latest(opened), self._files.owner)
        before = np.append(0, owner[:-1])
        before[self._begins] = self._files.owner[self._row[self._begins]]
        new = np.flatnonzero(owner != before)
        new = new[np.argsort(self._fields.number[new], kind="stable")]
        self._known.list_files(owner[new], self._row[new])
        return owner

    def _count_opens(self, owner: Ints, nids: Sequence[str], before: Ints) -> None:
        files, fields, row, opened = self._files, self._fields, self._row, self._opened
        self._counts.at_work(owner[opened], fields.time[opened])
        closed_at = self._last(fields.time, self._latest(self._closed), files.closed_at)
        # the open that created a file is counted as a create; others before its close only show their clients
        again = opened & ~(files.created[row] & (closed_at == files.created_at[row]))
        np.add.at(files.reopened, row[again], 1)
        shown = again | (opened & (before > 0))
        self._known.count(OPENS, owner[shown], fields.nid[shown], nids, fields.number[shown],
                          ones=again[shown].astype(np.int64))
        written = owner[again & ((fields.mode & WRITE_MODES) > 0)]
        np.add.at(self._counts.counted[:, WRITE_OPENS], written, 1)

    def _count_closes(self, owner: Ints, place: Ints) -> None:
        counts, closed = self._counts, self._closed
        numbers, place, job = owner[closed], place[closed], self._job[closed]
        whose = counts.job[numbers]
        moved = np.flatnonzero(~counts.in_table[numbers] | (counts.place[numbers] != place))
        if len(moved):
            # a job that never worked where the file is now does not get this close
            there = [counts.has(*pair) for pair in zip(whose[moved].tolist(), place[moved].tolist(), strict=True)]
            whose[moved] = np.where(there, whose[moved], job[moved])
            numbers[moved] = counts.numbers(whose[moved], place[moved], numbers[moved])
        np.add.at(counts.counted[:, CLOSES], numbers, 1)
        # closes by client threads (ldlm_bl) show no job at work
        own = whose == job
        counts.at_work(numbers[own], self._fields.time[closed][own])

    def _count_layouts(self, owner: Ints, place: Ints) -> None:
        counts, since = self._counts, self._known.layouts_since
        # that a file grew is recorded without a job
        grew = np.flatnonzero((self._fields.kind == LAYOUT) & (self._job == counts.jobs[""]))
        if since and len(grew):
            begun = [since.get(counts.places.by_number[number], 0.0) for number in place[grew].tolist()]
            grew = grew[self._files.created_at[self._row[grew]] >= begun]
        numbers = counts.numbers(counts.job[owner[grew]], place[grew], owner[grew])
        np.add.at(counts.counted[:, OUTGROWN], numbers, 1)
        counts.at_work(numbers, self._fields.time[grew])

    def _open_counts(self) -> tuple[Ints, Ints]:
        """How often the file is open before and after each record. A close of a file that is not open, as far as known,
        changes nothing.
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
