"""Tallies: what changed in an activity table in one window, and its addition to the table of another process.

A reader rolls the records of one MDT up in a table of its own and makes a tally at the end of each window. The leader
adds the tallies of all MDTs to its table, which then answers as if it had read the records itself, within the limits:

* a tally has the ``max_directories`` most active counts of a job in a directory. The others wait for a later tally;
* of each job and directory a random sample of ``max_files_each`` files is known, and ``max_files`` of the MDT.

A tally covers the records after one index up to another. The leader adds it only if the first is its position, so that
records count once, in order, whoever read them and however often a tally arrives.

>>> from lustre.changelog.record import Record, RecordType
>>> known = CountTables(max_files=9, max_counts=9, max_listed_files=9)
>>> making = TallyMaker(known, TallyLimits())
>>> number = known.counts.of("cp.0", "/in", 5.0)
>>> known.counts.counted[number, 0] += 3
>>> [(row.job, row.directory, row.creates) for row in making.content().directories]
[('cp.0', b'/in', 3)]
>>> making.content().directories
()
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Annotated, TypeVar

import numpy as np
from msgspec import Meta

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from tierd.sense.changelogs.counts import COUNTED, WRITE_OPENS, CountTables
from tierd.sense.changelogs.files import Words, each_fid, fid_words
from tierd.sense.changelogs.packed import RENAME, Fields
from tierd.sense.own_moves import OtherMovers, OwnMoves
from tierd.structs import Struct


@dataclass(frozen=True, slots=True)
class TallyLimits:
    """Limits on the size of a tally."""

    max_directories: int = 500
    """Counts of a job in a directory."""
    max_files_each: int = 200
    """Files of a job in a directory that the leader knows."""
    max_files: int = 4000
    """Files of the MDT that the leader knows."""
    max_moves: int = 200
    """Layout changes by other movers."""


MAX_ROWS = 100_000
Natural = Annotated[int, Meta(ge=0)]
Time = Annotated[float, Meta(ge=0, le=1e11)]
Name = Annotated[bytes, Meta(max_length=16384)]
"""A name or path, which may hold any byte."""
Item = TypeVar("Item")
Rows = Annotated[tuple[Item, ...], Meta(max_length=MAX_ROWS)]


class DirectoryTally(Struct, frozen=True, array_like=True):
    """Growth of the counts of one job in one directory."""

    job: str
    directory: Name
    creates: Natural = 0
    opens: Natural = 0
    closes: Natural = 0
    unlinks: Natural = 0
    outgrown: Natural = 0
    write_opens: Natural = 0
    last_time: Time = 0.0
    """Time of the last record; 0 without a record in the window."""
    files: tuple[Natural, ...] = ()
    """Positions in ``TallyContent.files`` of files that were added to the list of this job and directory."""
    clients: tuple[str, ...] = ()
    """NIDs of all its clients that the reader remembers, not only of new ones."""


class FileTally(Struct, frozen=True, array_like=True):
    """The present state of one file."""

    fid: Fid
    counts: Natural
    """Position in ``TallyContent.directories`` of the job and directory to which its records belong."""
    directory: Name
    """Its present directory."""
    name: Name
    created: bool
    open_count: Natural
    reopened: Natural
    created_at: Time
    closed_at: Time


STATE = ("created", "open_count", "reopened", "created_at", "closed_at")
"""What a tally has of a file by the same names as the table."""


class OtherMove(Struct, frozen=True, array_like=True):
    """A new layout of a file under the id of a job. The leader knows whether its own mover did it."""

    directory: Name
    job: str
    time: Time
    fid: Fid
    uid: int | None
    nid: str


class TallyContent(Struct, frozen=True):
    """What changed in a table."""

    directories: Rows[DirectoryTally] = ()
    files: Rows[FileTally] = ()
    removed: Rows[Fid] = ()
    """Files that no longer exist, or are no longer part of the sample."""
    moves: Rows[OtherMove] = ()
    renamed: bool = False
    """Whether directories, or files unknown to the reader, were renamed. Other readers may know paths with them."""

    def check(self) -> None:
        """Raise ValueError for a position that the tally does not have."""
        if (max((file.counts for file in self.files), default=-1) >= len(self.directories)
                or max((max(row.files, default=-1) for row in self.directories), default=-1) >= len(self.files)):
            raise ValueError("not a tally: a position that it does not have")


class Tally(Struct, frozen=True):
    """The records of one MDT after one index up to another."""

    mdt: str
    after: Natural
    """Index of the last record before the window."""
    last: Natural
    """Index of the last record of the window; equal to ``after`` without records."""
    records: Natural
    reader: str
    token: Natural
    """Fencing token of the reader's lease. A later lease has a higher one."""
    rereads: Natural
    """Number of the leader's last request to read again that the reader had seen."""
    begun: bool
    """Whether this is the first tally of a new table. What the leader knows of files of the MDT is then void."""
    at_end: bool
    """Whether the reader had read the whole changelog."""
    oldest_time: Time
    """Time of the oldest record, epoch seconds; 0 without records."""
    newest_time: Time
    gap: str = ""
    """Which records were missing when the reader read from ``after`` on; "" if none."""
    problem: str = ""
    """Why the changelog cannot be read, or records nothing; "" if it can."""
    content: TallyContent = TallyContent()
    version: Annotated[int, Meta(ge=1, le=1)] = 1
    """Of its form on the wire."""


_EVICTED_SHARE = 0.25
"""Share of the files that is dropped when the limit of an MDT is reached."""
_MIXED = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
"""Odd numbers that mix the bits of a FID."""


def fid_hashes(fids: Words) -> Words:
    """A hash of each FID. The files with the lowest ones are a random sample, but always the same."""
    mixed = fids[:, 0] * _MIXED[0] + fids[:, 1] * _MIXED[1]
    found: Words = (mixed ^ mixed >> 29) * _MIXED[2]
    return found


class TallyMaker:
    """Finds what changed in a table since the last tally. The table belongs to one MDT."""

    def __init__(self, known: CountTables, limits: TallyLimits) -> None:
        self._known = known
        self._limits = limits
        self._samples: dict[tuple[str, str], list[Fid]] = {}
        """Files that the leader knows, by job and directory of the counts that list them."""
        self._touched: set[bytes] = set()
        """FIDs of the records since the last tally, as bytes."""
        self._renamed = False
        """Whether directories or unknown files were renamed since the last tally."""
        self._moves: list[OtherMove] = []
        """The first layout changes by other movers since the last tally."""

    def note(self, fields: Fields, moved: Sequence[Fid], moves: Sequence[OtherMove]) -> None:
        """Remember which files records are about, files that have another path, and layout changes by other movers."""
        self._moves += moves[:self._limits.max_moves - len(self._moves)]
        self._touched.update(each_fid(fields.target), moved)
        self._renamed |= not self._known.files.has(fields.at(fields.kind == RENAME).target).all()

    def content(self) -> TallyContent:
        table, counts = self._known.files, self._known.counts
        before = self._sampled()
        chosen = self._chosen()
        members = self._sample(chosen)
        after = self._sampled()
        rows = np.sort(table.known_rows(after & self._touched | set(chain.from_iterable(members.values()))))
        fids = table.fids_of(rows)
        position = {fid: at for at, fid in enumerate(fids)}
        owners = table.owner[rows].tolist()
        every = {each: at for at, each in enumerate(dict.fromkeys([*chosen, *owners]))}
        renamed, self._renamed = self._renamed, False
        moves, self._moves = tuple(self._moves), []
        self._touched.clear()
        directories = tuple(self._row(each, [position[fid] for fid in members[each]] if each in members else None)
                            for each in every)
        return TallyContent(
            directories, tuple(map(FileTally, fids, map(every.__getitem__, owners), (
                os.fsencode(counts.places.by_number[place]) for place in table.place[rows].tolist()),
                table.names_of(rows), *(getattr(table, name)[rows].tolist() for name in STATE))),
            tuple(before - after), moves, renamed=renamed)

    def _sampled(self) -> set[Fid]:
        return set(chain.from_iterable(self._samples.values()))

    def _chosen(self) -> list[int]:
        """Numbers of the counts of this tally, the most active first. Others wait for a later one."""
        counts = self._known.counts
        more = counts.counted - counts.noted
        changed = np.flatnonzero(counts.in_table & (more.any(axis=1) | (counts.last_time != counts.noted_time)))
        order = np.argsort(-more[changed, :WRITE_OPENS].sum(axis=1), kind="stable")  # opens for writing are opens
        found: list[int] = changed[order[:self._limits.max_directories]].tolist()
        return found

    def _row(self, number: int, files: Sequence[int] | None) -> DirectoryTally:
        """The growth of counts; without ``files``, only whose they are."""
        counts = self._known.counts
        job, directory = counts.names(number)
        if files is None:
            return DirectoryTally(job, os.fsencode(directory))
        more = dict(zip(COUNTED, (counts.counted[number] - counts.noted[number]).tolist(), strict=True))
        counts.noted[number], counts.noted_time[number] = counts.counted[number], counts.last_time[number]
        return DirectoryTally(job, os.fsencode(directory), last_time=float(counts.last_time[number]),
                              files=tuple(files), clients=counts.clients[number], **more)

    def _sample(self, chosen: Sequence[int]) -> dict[int, list[Fid]]:
        """Sample the files of the chosen counts again. Returns those that each did not have before. The sample is of
        those with the lowest hashes, as far as there is room for new ones.
        """
        table, limits, before = self._known.files, self._limits, self._samples
        known = self._kept()
        found = {}
        for number, listed in self._known.listed(np.array(chosen, np.int64)).items():
            rows, names = np.array(listed, np.int64), self._known.counts.names(number)
            lowest = np.argsort(fid_hashes(table.fids.keys[rows]), kind="stable")[:limits.max_files_each]
            sample = []
            for fid in table.fids_of(rows[np.sort(lowest)]):
                if fid in known or len(known) < limits.max_files:
                    known.add(fid)
                    sample.append(fid)
            had = set(before.get(names, ()))
            found[number] = [fid for fid in sample if fid not in had]
            self._samples[names] = sample
        return found

    def _kept(self) -> set[Fid]:
        """Drop what is no longer in the table, and if the limit is reached, the files of counts that are idle longest.
        Returns the files that are left.
        """
        counts, fids = self._known.counts, list(self._sampled())
        there = set(compress(fids, self._known.files.has(fid_words(fids)).tolist()))
        is_full = len(there) >= self._limits.max_files
        most = self._limits.max_files * (1 - _EVICTED_SHARE) if is_full else float("inf")
        before, self._samples, known = self._samples, {}, set[Fid]()
        numbers = {names: number for names in before if (number := counts.find(*names)) >= 0}
        for names in sorted(numbers, key=lambda names: -counts.last_time[numbers[names]]):
            files = [fid for fid in before[names] if fid in there]
            if len(known) + len(files) <= most:
                known.update(files)
                self._samples[names] = files
        return known


def add_tally(known: CountTables, content: TallyContent, movers: OtherMovers, is_echo: OwnMoves) -> None:
    counts, files, places = known.counts, known.files, known.counts.places
    numbers = []
    for row in content.directories:
        number = counts.of(row.job, os.fsdecode(row.directory), row.last_time)
        counts.counted[number] += [getattr(row, which) for which in COUNTED]
        for nid in row.clients:
            counts.add_client(number, nid)
        numbers.append(number)
    known.forget(files.known_rows(content.removed))
    each, names = content.files, [file.name for file in content.files]
    sizes = np.array([len(name) for name in names], np.int64)
    rows = files.rows_of(fid_words([file.fid for file in each]))
    files.put(rows, np.array([numbers[file.counts] for file in each], np.int64),
              np.array([places[os.fsdecode(file.directory)] for file in each], np.int64),
              **{name: np.array([getattr(file, name) for file in each]) for name in STATE})
    files.put_names(rows, np.frombuffer(b"".join(names), np.uint8), np.cumsum(sizes) - sizes, sizes)
    for number, row in zip(numbers, content.directories, strict=True):
        known.list_files(np.full(len(row.files), number), rows[list(row.files)])
    known.settle()
    for move in content.moves:
        record = Record(0, RecordType.LAYOUT, move.time, target=move.fid, job_id=move.job.encode(), uid=move.uid,
                        nid=move.nid)
        if not is_echo(record, move.job):
            movers.moved(os.fsdecode(move.directory), move.job, move.time)
