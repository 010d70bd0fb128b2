"""Two bounded tables that changelog records fill: files, and counts of one job in one directory.

Both are columns of numbers, so that thousands of records are added at once. Jobs, directories and counts have numbers,
which :meth:`CountTables.settle` may change. A full table drops what was added first, or was idle longest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lustre.fid import Fid
from lustre.nid import NONE as NID_OF_NOBODY
from tierd.loads import Bools, Floats, Ints, Names, distinct
from tierd.model import MAX_CLIENTS, SharedFile
from tierd.sense.changelogs.files import FileTable, KeyIndex, grown, pieces
from tierd.sense.paths import join

COUNTED = ("creates", "opens", "closes", "unlinks", "outgrown", "write_opens")
"""Counts of a job in a directory, which only grow. The last are opens of existing files for writing."""
CREATES, OPENS, CLOSES, UNLINKS, OUTGROWN, WRITE_OPENS = range(6)
_PLACE_BITS = 32
PAST_SECONDS, PAST_STEP_SECONDS = 600.0, 60.0
"""How long earlier counts are kept, and how far apart."""
_COLUMNS = {"counted": (np.int64, len(COUNTED)), "noted": (np.int64, len(COUNTED)), "last_time": (float,),
            "noted_time": (float,), "earlier": (np.int64,), "marked": (np.int64,),
            "job": (np.int64,), "place": (np.int64,), "in_table": (bool,)}


class CountTable:
    """Counts by job and directory. The directory is a path, or a FID in brackets if its path is unknown."""

    counted: NDArray[np.int64]
    noted: NDArray[np.int64]
    """Counts as of the last window, or the last tally that had them."""
    last_time: NDArray[np.float64]
    """Time of the newest record, without closes by client threads."""
    noted_time: NDArray[np.float64]
    """``last_time`` as of the last tally."""
    earlier: NDArray[np.int64]
    """Creates and opens at the mark before the last."""
    marked: NDArray[np.int64]
    """Creates and opens at the last mark."""
    job: NDArray[np.int64]
    place: NDArray[np.int64]
    in_table: NDArray[np.bool_]
    """Whether these counts are still in the table."""

    def __init__(self) -> None:
        self.jobs, self.places = Names(), Names()
        """Numbers of jobs and of directories."""
        self.clients: list[tuple[str, ...]] = []
        """By number, NIDs of the first clients that created, opened or removed files; at most ``MAX_CLIENTS``."""
        self._number_of: dict[int, int] = {}
        """Numbers of those in the table, by job and directory."""
        self._free: list[int] = []
        """Numbers that are no longer used."""
        self.past: deque[tuple[float, NDArray[np.uint32]]] = deque()
        """Low 32 bits of all counts at earlier times. Those that were added later were 0 then."""
        self._of_job: tuple[Ints, Ints] | None = None
        """Numbers in order of their jobs, and where each job begins; None since one was added."""
        for name, (kind, *more) in _COLUMNS.items():
            setattr(self, name, np.zeros((64, *more), kind))

    def __len__(self) -> int:
        return len(self._number_of)

    def number(self, job: int, place: int) -> int:
        """Number of the counts of a job in a directory, made if needed."""
        pair = job << _PLACE_BITS | place
        number = self._number_of.get(pair, -1)
        if number < 0:
            number = self._number_of[pair] = self._free.pop() if self._free else len(self.clients)
            for name in _COLUMNS if number == len(self.job) else ():
                setattr(self, name, grown(getattr(self, name), number + 1))
            self.clients[number:number + 1] = [()]
            self.job[number], self.place[number], self.in_table[number] = job, place, True
            self._of_job = None
        return number

    def numbers(self, job: Ints, place: NDArray[np.integer], owner: NDArray[np.integer]) -> Ints:
        """Numbers of the counts of jobs in directories, made if needed: most are the owners of the files."""
        found = owner.astype(np.int64)
        other = np.flatnonzero(~self.in_table[found] | (self.job[found] != job) | (self.place[found] != place))
        pairs, at = distinct(job[other] << _PLACE_BITS | place[other])
        mask = (1 << _PLACE_BITS) - 1
        numbers = [self.number(pair >> _PLACE_BITS, pair & mask) for pair in pairs.tolist()]
        found[other] = np.array(numbers, np.int64)[at]
        return found

    def find(self, job: str, directory: str) -> int:
        """Number of the counts of a job in a directory; -1 if the table has none."""
        return self._number_of.get(self.jobs.get(job, -1) << _PLACE_BITS | self.places.get(directory, -1), -1)

    def has(self, job: int, place: int) -> bool:
        return job << _PLACE_BITS | place in self._number_of

    def of(self, job: str, directory: str, time: float) -> int:
        """Number of the counts of a job in a directory, made if needed. A record at ``time`` belongs to them."""
        number = self.number(self.jobs[job], self.places[directory])
        self.last_time[number] = max(self.last_time[number], time)
        return number

    def names(self, number: int) -> tuple[str, str]:
        """Job and directory."""
        return self.jobs.by_number[self.job[number]], self.places.by_number[self.place[number]]

    def add_client(self, number: int, nid: str) -> None:
        """Remember a client. A record without a NID, or with that of no client, adds none."""
        known = self.clients[number]
        if nid and nid != NID_OF_NOBODY and nid not in known and len(known) < MAX_CLIENTS:
            self.clients[number] = (*known, nid)

    def of_jobs(self, jobs: Iterable[str]) -> Ints:
        """Numbers of the counts of jobs that are in the table."""
        some = [self.jobs[job] for job in jobs if job in self.jobs]
        if self._of_job is None:
            order = np.argsort(self.job[:len(self.clients)], kind="stable")
            self._of_job = order, np.searchsorted(self.job[order], np.arange(len(self.jobs.by_number) + 1))
        order, begins = self._of_job
        first = np.array([job for job in some if job + 1 < len(begins)], np.int64)
        every = order[pieces(begins[first], begins[first + 1] - begins[first])[1]]
        found: Ints = np.sort(every[self.in_table[every]])
        return found

    def of_directory(self, directory: str) -> Ints:
        return np.flatnonzero(self.in_table & (self.place == self.places.get(directory, -1)))

    def drop(self, numbers: Ints) -> None:
        for pair in (self.job[numbers] << _PLACE_BITS | self.place[numbers]).tolist():
            del self._number_of[pair]
        self.in_table[numbers] = False

    def idle_longest(self, count: int) -> Ints:
        numbers = np.fromiter(self._number_of.values(), np.int64, len(self))
        return numbers[np.argsort(self.last_time[numbers], kind="stable")[:count]]

    def at_work(self, numbers: Ints, time: Floats) -> None:
        """Note the times of records that show jobs at work."""
        np.maximum.at(self.last_time, numbers, time)

    def mark(self) -> None:
        """Begin a new period of recent activity. ``lately`` counts from the mark before this one."""
        self.earlier[:] = self.marked
        self.marked[:] = self.counted[:, (CREATES, OPENS)].sum(axis=1)

    def keep_past(self, now: float) -> None:
        """Keep the present counts, and those of each of the last ten minutes."""
        while self.past and self.past[-1][0] > now:  # the clock was set back
            self.past.pop()
        if len(self.past) > 1 and self.past[-1][0] - self.past[-2][0] < PAST_STEP_SECONDS:
            self.past.pop()
        self.past.append((now, self.counted[:len(self.clients)].astype(np.uint32)))
        while len(self.past) > 2 and self.past[0][0] < now - PAST_SECONDS:
            self.past.popleft()

    def creates_before(self, number: int) -> int:
        """Creates that are older than the ten minutes that are kept; 0 until five minutes are known."""
        is_known = self.past and self.past[-1][0] - self.past[0][0] >= PAST_SECONDS / 2
        return int(self.past[0][1][number:number + 1, CREATES].sum()) if is_known else 0

    def since(self, taken: NDArray[np.uint32]) -> tuple[Ints, NDArray[np.uint32]]:
        """Numbers of the counts that rose since an earlier time, and their increases, which are less than 2^32."""
        done = self.counted[:len(self.clients)].astype(np.uint32)
        done[:len(taken)] -= taken  # modulo 2^32
        numbers = np.flatnonzero(self.in_table[:len(done)] & done.any(axis=1))
        return numbers, done[numbers]

    def begin_again(self, numbers: Ints) -> None:
        """Count these from now on: what they counted is not part of any increase."""
        self.counted[numbers, OUTGROWN] = 0  # of another layout
        for _, taken in self.past:
            taken.resize((len(self.clients), len(COUNTED)), refcheck=False)  # what was added since was 0
            taken[numbers] = self.counted[numbers]

    @property
    def used(self) -> int:
        """How many numbers have a meaning: those in the table, and those that were."""
        return len(self.clients) - len(self._free)

    def free_unused(self, owners: NDArray[np.int32], places: NDArray[np.int32]) -> None:
        """Free the numbers of what is neither in the table nor one of these owners of files. Forget the jobs and
        directories that nothing names.
        """
        kept = self.in_table[:len(self.clients)].copy()
        kept[owners] = True
        self.jobs.keep_only({*self.job[:len(kept)][kept].tolist()})
        self.places.keep_only({*self.place[:len(kept)][kept].tolist(), *places.tolist()})
        free = np.flatnonzero(~kept)
        self._free = free.tolist()
        for column in (*map(partial(getattr, self), _COLUMNS), *(taken for _, taken in self.past)):
            column[free[free < len(column)]] = 0
        self._of_job = None


MIN_CLIENTS = 4
"""Clients that have a file open from which it counts as shared."""
MAX_SHARED_RUNS = 1000


@dataclass(slots=True)
class SharedRun:
    """One time in which several clients had a file open, until all closed it."""

    job: str
    path: str
    openers: int
    """Most clients that had it open."""
    began_at: float
    ended_at: float = 0.0


class CountTables:
    """The table of files, the table of counts by job and directory, and which of these lists which files."""

    def __init__(self, max_files: int, max_counts: int, max_listed_files: int) -> None:
        self.max_files = max_files
        self.max_counts = max_counts
        self._max_listed_files = max_listed_files
        self.files, self.counts = FileTable(), CountTable()
        self._lister: NDArray[np.int32] = np.zeros(64, np.int32)
        self._listed: NDArray[np.int32] = np.zeros(64, np.int32)
        """Counts and row of each file that counts list: those whose job created or opened it in their directory."""
        self._lists = 0
        self._begins: Ints | None = None
        """Where the list of each of the counts begins, once they are sorted."""
        self._clients = KeyIndex(1)
        """Pairs of counts and clients that were seen."""
        self._settled = 0, 0
        """Entries of the lists and bytes of names after the last compaction."""
        self._counts_kept = 0
        """Counts after their last compaction: those in the table and the owners of files."""
        self.compactions = 0
        """How often numbers have got another meaning."""
        self.layouts_since: dict[str, float] = {}
        """When the default layout of a directory was found changed. Older files outgrow the layout before."""
        self.shared: dict[Fid, SharedRun] = {}
        """Runs on files that are open and were shared."""
        self.shared_runs: list[SharedRun] = []
        """Runs that have ended and were not taken yet."""

    def path(self, row: int) -> str:
        """Path of a file below the root of the file system; "" if unknown."""
        return self.paths(np.array([row]))[0]

    def paths(self, rows: Ints) -> list[str]:
        directories = map(self.counts.places.by_number.__getitem__, self.files.place[rows].tolist())
        return [join(directory, name.decode("utf-8", "surrogateescape")) if directory.startswith("/") and name else ""
                for directory, name in zip(directories, self.files.names_of(rows), strict=True)]

    def note_shared(self, handles: Mapping[str, float], time: float) -> list[SharedFile]:
        """Note runs on shared files that begin and end. Returns the files that are shared now, the most open first.

        ``handles`` has for each job how often clients have its files open, in any mode.
        """
        files, found = self.files, list[SharedFile]()
        for fid, run in [*self.shared.items()]:
            row = files.row_of(fid)
            if not files.open_count[row]:
                del self.shared[fid]
                run.ended_at = max(run.began_at, float(files.closed_at[row]))  # by the clock of the MDT
                self.shared_runs = [*self.shared_runs[1 - MAX_SHARED_RUNS:], run]
        opened = np.flatnonzero(files.present & (files.open_count > 0))
        number_of_job = self.counts.job[files.owner[opened]]
        recorded = np.bincount(number_of_job, files.open_count[opened], len(self.counts.jobs.by_number))
        sharing = {run.job for run in self.shared.values()}
        for job in handles.keys() & self.counts.jobs.keys():
            least = 2 if job in sharing else MIN_CLIENTS  # the clients of a run close the file one after the other
            openers = int(handles[job] / max(recorded[self.counts.jobs[job]], 1.0))
            if openers < least:
                continue
            rows = opened[number_of_job == self.counts.jobs[job]]
            for fid, path in zip(files.fids_of(rows), self.paths(rows), strict=True):
                if openers >= MIN_CLIENTS and path:
                    self.shared.setdefault(fid, SharedRun(job, path, openers, time))
                if fid in self.shared:
                    self.shared[fid].openers = max(self.shared[fid].openers, openers)
                    found.append(SharedFile(job, path, self.shared[fid].openers))
        return sorted(found, key=lambda file: (-file.openers, file.path))

    def move_directory(self, old: str, new: str, note: Callable[[str], None]) -> list[Fid]:
        """Give the files in a directory and below it the path that it was renamed to. Returns these files. The counts
        of what was done there before stay those of the old path.
        """
        files, places = self.files, self.counts.places
        below = {number: new + name[len(old):] for name, number in places.items()
                 if name == old or name.startswith(f"{old}/")}
        rows = files.rows()
        rows = rows[np.isin(files.place[rows], list(below))] if below else rows[:0]
        renamed = [below[number] for number in files.place[rows].tolist()]
        files.place[rows] = [places[place] for place in renamed]
        for place in set(renamed):
            note(place)
        return files.fids_of(rows)

    def forget(self, rows: Ints) -> None:
        for fid in self.files.fids_of(rows) if self.shared else ():
            self.shared.pop(fid, None)
        self.files.present[rows] = False

    def count(self, column: int, numbers: Ints, nids: Ints, names: Sequence[str], order: Ints,
              ones: Ints | int = 1) -> None:
        """Add a record, or what ``ones`` has, to each of these counts, and remember the clients in their order."""
        np.add.at(self.counts.counted[:, column], numbers, ones)
        before = len(self._clients)
        pairs = (numbers << _PLACE_BITS | nids)[:, None].astype(np.uint64)
        new = np.flatnonzero(self._clients.numbers_of(pairs) >= before)
        for at in new[np.argsort(order[new], kind="stable")].tolist():
            self.counts.add_client(int(numbers[at]), names[nids[at]])

    def list_files(self, numbers: Ints, rows: Ints) -> None:
        end = self._lists + len(rows)
        self._lister, self._listed = grown(self._lister, end), grown(self._listed, end)
        self._lister[self._lists:end], self._listed[self._lists:end] = numbers, rows
        self._lists, self._begins = end, None

    def _lists_of(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Where the lists of these counts begin and end."""
        if self._begins is None or len(self._begins) <= len(self.counts.clients):
            order = np.argsort(self._lister[:self._lists], kind="stable")
            self._lister, self._listed = self._lister[order], self._listed[order]
            self._begins = np.searchsorted(self._lister, np.arange(len(self.counts.clients) + 1))
        return self._begins[numbers], self._begins[numbers + 1]

    def listed(self, numbers: Ints) -> dict[int, list[int]]:
        """Rows of the files that counts list, in the order of their first records; beyond the limit, the last ones."""
        found = {}
        for number, begin, end in zip(numbers.tolist(), *self._lists_of(numbers), strict=True):
            rows = self._listed[begin:end]
            found[number] = list(dict.fromkeys(rows[self.files.present[rows]].tolist()))[-self._max_listed_files:]
        return found

    def in_use(self, numbers: Ints, since: float) -> Bools:
        """Whether each of these counts lists a file that is open, or was closed since a time by any thread."""
        begins, ends = self._lists_of(numbers)
        files, rows = self.files, self._listed[pieces(begins, ends - begins)[1]]
        used = files.present[rows] & ((files.open_count[rows] > 0) | (files.closed_at[rows] >= since))
        return np.bincount(np.repeat(np.arange(len(numbers)), ends - begins)[used], minlength=len(numbers)) > 0

    def settle(self) -> None:
        """Enforce the limits. Numbers may change."""
        files, counts = self.files, self.counts
        if (more_files := int(np.count_nonzero(files.present)) - self.max_files) > 0:
            self.forget(files.oldest(more_files))
        if len(counts) > self.max_counts:
            more = len(counts) - self.max_counts + self.max_counts // 32  # finding one takes as long as finding several
            counts.drop(counts.idle_longest(more))
        lists, name_bytes = self._settled
        if (counts.used > 2 * max(self.max_counts, self._counts_kept)
                or len(counts.jobs) + len(counts.places) > 4 * self.max_counts + self.max_files):
            self._compact_counts()
            self.forget_clients()
        elif len(self._clients) > MAX_CLIENTS * self.max_counts:
            self.forget_clients()
        if (len(files.fids) > self.max_files + self.max_files // 2 or self._lists > 2 * lists + self.max_files
                or files.names_used > 2 * name_bytes + (1 << 20)):
            self._compact_files()

    def forget_clients(self) -> None:
        """Forget the numbers of clients, but not who worked where."""
        self._clients = KeyIndex(1)

    def _compact_counts(self) -> None:
        present = self.files.rows()
        self.counts.free_unused(self.files.owner[present], self.files.place[present])
        self._keep_lists(self._lister[:self._lists], self._listed[:self._lists])
        self._counts_kept = self.counts.used
        self.compactions += 1

    def _compact_files(self) -> None:
        row = self.files.compact()
        self._keep_lists(self._lister[:self._lists], row[self._listed[:self._lists]])
        self._settled = self._lists, self.files.names_used

    def _keep_lists(self, lister: Ints | NDArray[np.int32], listed: Ints | NDArray[np.int32]) -> None:
        """Make these the lists, as far as counts and files are in the table."""
        kept = np.flatnonzero(listed >= 0)
        kept = kept[self.counts.in_table[lister[kept]] & self.files.present[listed[kept]]]
        if len(kept) > 2 * self.max_files:  # jobs that open files in turn add them again and again
            _, first = np.unique(lister[kept].astype(np.int64) << _PLACE_BITS | listed[kept], return_index=True)
            kept = kept[np.sort(first)]
        self._lists, self._begins = len(kept), None
        self._lister[:len(kept)], self._listed[:len(kept)] = lister[kept], listed[kept]
