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
>>> number = known.counts.of("cp.0", "/in", 5.0).number
>>> known.counts.counted[number, 0] += 3
>>> [(row.job, row.directory, row.creates) for row in making.content(()).directories]
[('cp.0', b'/in', 3)]
>>> making.content(()).directories
()
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, TypeVar

import numpy as np
from msgspec import Meta

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from tierd.sense.changelogs.counts import COUNTED, WRITE_OPENS, CountTables, DirectoryCounts
from tierd.sense.changelogs.files import each_fid, fid_words
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
    max_renames: int = 500
    """Renames of directories."""


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
    closes: Natural = 0
    """CLOSE records of known files."""
    renamed: Rows[Fid] | None = ()
    """Directories, and files unknown to the reader, that were renamed. Other readers may know paths that contain them.
    None: more than the limit, so that any path may have changed."""
    waiting: Natural = 0
    """Counts of jobs in directories that the limit left for a later tally."""

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


class MoveCollector(OtherMovers):
    """Collects layout changes by other movers for the next tally."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self._most_moves = most
        self._moved: list[OtherMove] = []

    def moved(self, directory: str, job: str, time: float, record: Record | None = None) -> None:
        """Collect a layout change. Beyond the limit the first of each window are kept."""
        if record is not None and len(self._moved) < self._most_moves:
            self._moved.append(OtherMove(os.fsencode(directory), job, time, record.target, record.uid, nid=record.nid))

    def take(self) -> tuple[OtherMove, ...]:
        """The layout changes since the last call."""
        found, self._moved = tuple(self._moved), []
        return found


@dataclass(slots=True)
class _Sample:
    """A random sample of the files of a job in a directory."""

    fids: list[Fid] = field(default_factory=list)
    seen: int = 0

    def offer(self, fid: Fid, most: int, random: Random) -> Fid | None:
        """Offer a file to the sample (algorithm R: Vitter, Random sampling with a reservoir, 1985).

        Returns the file that is left out: the offered one, the one that it replaces, or None.
        """
        self.seen += 1
        if len(self.fids) < most:
            self.fids.append(fid)
            return None
        place = random.randrange(self.seen)
        if place >= most:
            return fid
        replaced, self.fids[place] = self.fids[place], fid
        return replaced


_EVICTED_SHARE = 0.25
"""Share of the files that is dropped when the limit of an MDT is reached."""


class TallyMaker:
    """Finds what changed in a table since the last tally. The table belongs to one MDT."""

    def __init__(self, known: CountTables, limits: TallyLimits, seed: int = 1) -> None:
        self._known = known
        self._limits = limits
        self._random = Random(seed)  # noqa: S311 -- a sample, not a secret
        self._samples: dict[DirectoryCounts, _Sample] = {}
        self._uses: dict[Fid, int] = {}
        """Files that the leader knows, and the number of samples that have them."""
        self._touched: set[bytes] = set()
        """FIDs of the records since the last tally, as bytes."""
        self._left: list[tuple[DirectoryCounts, Fid]] = []
        """Files of counts that wait for a later tally."""
        self._renamed: dict[Fid, None] = {}
        """Directories and unknown files that were renamed since the last tally."""
        self._rows: dict[Fid, int] = {}
        """Rows of those files in the table that this tally may be about."""
        known.additions = []

    def note(self, fields: Fields) -> None:
        """Remember which files records are about."""
        self._touched.update(each_fid(fields.target))
        moved = fields.at(fields.kind == RENAME).target
        for renamed in each_fid(moved[~self._known.files.has(moved)]):
            if len(self._renamed) <= self._limits.max_renames:
                self._renamed[renamed] = None

    def content(self, moves: Sequence[OtherMove], closes: int = 0) -> TallyContent:
        """What changed since the last call."""
        self._find_rows()
        chosen, waiting = self._chosen()
        removed = self._gone()
        members = self._sampled(chosen, removed)
        fids = self._changed({fid for added in members.values() for fid in added})
        position = {fid: at for at, fid in enumerate(fids)}
        table, counts = self._known.files, self._known.counts
        rows = np.array([self._rows[fid] for fid in fids], np.int64)
        owners = [counts.every[number] for number in table.owner[rows].tolist()]
        listed = {each: [position[fid] for fid in members.get(each, ()) if fid in position] for each in chosen}
        every = {each: at for at, each in enumerate(dict.fromkeys([*chosen, *owners]))}
        renamed = tuple(self._renamed) if len(self._renamed) <= self._limits.max_renames else None
        self._touched.clear()
        self._renamed.clear()
        return TallyContent(
            tuple(self._row(each, listed[each]) if each in listed
                  else DirectoryTally(each.job, os.fsencode(each.directory)) for each in every),
            tuple(map(FileTally, fids, map(every.__getitem__, owners), (
                os.fsencode(counts.places.by_number[place]) for place in table.place[rows].tolist()),
                table.names_of(rows), *(getattr(table, name)[rows].tolist() for name in STATE))),
            tuple(removed - position.keys()), tuple(moves), closes, renamed=renamed, waiting=waiting)

    def _find_rows(self) -> None:
        """Find the rows of the files that the leader knows, and of those added since the last tally."""
        self._left += self._known.additions or ()
        self._known.additions = []
        fids = list(self._uses.keys() | {fid for _, fid in self._left})
        table = self._known.files
        found = table.fids.find(fid_words(fids))
        there = table.present[found] & (found >= 0)
        self._rows = {fid: row for fid, row, known in zip(fids, found.tolist(), there.tolist(), strict=True) if known}

    def _chosen(self) -> tuple[list[DirectoryCounts], int]:
        """The counts of this tally, the most active first, and how many wait."""
        counts, count = self._known.counts, len(self._known.counts.every)
        more = counts.counted[:count] - counts.noted[:count]
        changed = np.flatnonzero(counts.in_table[:count] & (
            more.any(axis=1) | (counts.last_time[:count] != counts.noted_time[:count])))
        order = np.argsort(-more[changed, :WRITE_OPENS].sum(axis=1), kind="stable")  # opens for writing are opens
        most = self._limits.max_directories
        chosen = changed[order[:most]].tolist()
        return [counts.every[number] for number in chosen], len(changed) - len(chosen)

    def _row(self, counts: DirectoryCounts, files: Sequence[int]) -> DirectoryTally:
        table, number = self._known.counts, counts.number
        more = dict(zip(COUNTED, (table.counted[number] - table.noted[number]).tolist(), strict=True))
        table.noted[number], table.noted_time[number] = table.counted[number], counts.last_time
        return DirectoryTally(counts.job, os.fsencode(counts.directory), last_time=counts.last_time,
                              files=tuple(files), clients=counts.clients, **more)

    def _gone(self) -> set[Fid]:
        """Files that the leader knows and that are no longer in the table; forget them and evicted counts."""
        gone = self._uses.keys() - self._rows.keys()
        for fid in gone:
            del self._uses[fid]
        if gone:
            for sample in self._samples.values():
                if not gone.isdisjoint(sample.fids):
                    sample.fids = [fid for fid in sample.fids if fid not in gone]
        for counts in [counts for counts in self._samples if not counts.in_table]:
            gone |= self._dropped(counts)
        if len(self._uses) >= self._limits.max_files:
            gone |= self._evicted()
        return gone

    def _evicted(self) -> set[Fid]:
        gone: set[Fid] = set()
        most = int(self._limits.max_files * (1 - _EVICTED_SHARE))
        for counts in sorted(self._samples, key=lambda counts: counts.last_time):
            if len(self._uses) <= most:
                break
            gone |= self._dropped(counts)
        return gone

    def _dropped(self, counts: DirectoryCounts) -> set[Fid]:
        return {fid for fid in self._samples.pop(counts).fids if self._released(fid)}

    def _released(self, fid: Fid) -> bool:
        """Drop one use of a file. Returns whether it was the last."""
        self._uses[fid] -= 1
        if self._uses[fid]:
            return False
        del self._uses[fid]
        return True

    def _sampled(self, chosen: Sequence[DirectoryCounts], removed: set[Fid]) -> dict[DirectoryCounts, list[Fid]]:
        """Offer new files of the chosen counts to their samples. Returns the added ones; replaced ones are removed."""
        now = set(chosen)
        added: dict[DirectoryCounts, dict[Fid, None]] = {}
        offered, self._left, limits = self._left, [], self._limits
        for counts, fid in offered:
            if fid not in self._rows or not counts.in_table:
                continue
            if counts not in now:
                self._left.append((counts, fid))
                continue
            sample = self._samples.setdefault(counts, _Sample())
            if fid in self._uses and fid in sample.fids:
                continue
            if len(self._uses) >= limits.max_files and fid not in self._uses:
                sample.seen += 1
                continue
            out = sample.offer(fid, limits.max_files_each, self._random)
            newly = added.setdefault(counts, {})
            if out is not fid:
                self._uses[fid] = self._uses.get(fid, 0) + 1
                newly[fid] = None
                removed.discard(fid)
            if out is not None and out is not fid:
                newly.pop(out, None)
                if self._released(out):
                    removed.add(out)
        self._left = self._left[-limits.max_files:]
        return {counts: list(fids) for counts, fids in added.items()}

    def _changed(self, added: set[Fid]) -> list[Fid]:
        """Files whose state the leader needs: new ones, and known ones with records, in the order of the table."""
        wanted = {fid for fid in self._uses if fid in self._rows and (fid in self._touched or fid in added)}
        return sorted(wanted, key=lambda fid: (self._known.files.created_at[self._rows[fid]], fid))


def add_tally(known: CountTables, content: TallyContent, movers: OtherMovers, is_echo: OwnMoves) -> None:
    """Add a tally to a table."""
    counts, files, places = known.counts, known.files, known.counts.places
    numbers = []
    for row in content.directories:
        total = counts.of(row.job, os.fsdecode(row.directory), row.last_time)
        counts.counted[total.number] += [getattr(row, which) for which in COUNTED]
        for nid in row.clients:
            total.add_client(nid)
        numbers.append(total.number)
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
