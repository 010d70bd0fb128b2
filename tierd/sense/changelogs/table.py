"""The activity table: which job creates, opens, outgrows and unlinks files in which directory, from changelog records.

Any thread may read the table. It is not locked while paths are looked up or records are read.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Executor
from threading import RLock
from typing import NamedTuple

import numpy as np

from lustre.changelog.record import Record
from lustre.fid import Fid
from tierd.loads import CLOSES, OPENS, Ints, NamespaceLoads, distinct, sums, texts
from tierd.model import Candidate, DirectoryActivity, OpenFile, SharedFile, Window
from tierd.sense.changelogs.counts import COUNTED, PAST_STEP_SECONDS, CountTables, SharedRun
from tierd.sense.changelogs.follow import MissingRecordsError
from tierd.sense.changelogs.packed import Records
from tierd.sense.changelogs.roll_up import RollUp
from tierd.sense.changelogs.tallies import Tally, TallyContent, TallyLimits, TallyMaker, add_tally
from tierd.sense.own_moves import OtherMovers, OwnMoves
from tierd.sense.paths import PathCache, ResolvePath

log = logging.getLogger("tierd.sense")


class Recent(NamedTuple):
    """What jobs did in directories since a time."""

    directories: tuple[DirectoryActivity, ...]
    seconds: float
    """Time since then."""


Batch = Sequence[Record] | Tally
"""Records of one MDT, or the tally of a reader on another node."""
RECENT_SECONDS = 120.0
"""Activity counts as recent for one to two times this period."""


class ActivityTable:
    """A bounded table of files and of counts by job and directory, filled from changelog records. Any thread may use
    it; only one may add records at a time.
    """

    def __init__(self, resolve: ResolvePath, max_files: int = 150_000, max_counts: int = 10_000,
                 max_listed_files: int = 20_000, is_echo: OwnMoves | None = None, executor: Executor | None = None,
                 tallies: TallyLimits | None = None) -> None:
        """``executor`` looks up several paths at once. Without it, each path is looked up when it is needed. With
        ``tallies``, the table belongs to a reader, which calls ``tally`` at the end of each window.
        """
        self._limits = max_files, max_counts, max_listed_files
        self._path = PathCache(resolve)
        self._is_echo = is_echo or OwnMoves()
        self._begin()
        self._marked_at = float("-inf")
        self._making = TallyMaker(self._known, tallies) if tallies is not None else None
        self._movers = OtherMovers(max_counts)
        self._executor = executor
        self._lock = RLock()
        self._handles: dict[str, float] = {}
        """What each job has opened and not closed, each client for itself."""
        self.shared_files: Sequence[SharedFile] = ()
        """Files that several clients have open, the most first."""
        self.records_read = 0
        """Number of records in the last call of ``add``."""
        self.oldest_time = float("inf")
        """Time of the oldest record in the last call of ``add``; infinite without records."""

    def _begin(self) -> None:
        """Begin with empty tables."""
        self._known = CountTables(*self._limits)
        self._records = RollUp(self._known, self._path, self._is_echo)
        self._of_mdt: dict[str, set[Fid]] = {}
        """Files that are known from tallies, by MDT."""

    def take_in(self, batches: Iterable[Batch], now: float) -> str:
        """Add records or tallies, once in each cycle. Returns why tierd may start no act, or "". If records are
        missing, known files may be gone and known directories may have other names: the table begins again, empty.
        """
        self.mark(now)
        try:
            self.add(batches)
        except MissingRecordsError as error:
            log.warning("%s. tierd forgets which files and directories jobs worked with, and learns it again from new "
                        "records", error.message)
            with self._lock:
                self._path.clear()
                self._begin()
            return error.problems
        except OSError as error:
            return str(error)
        return ""

    def add(self, batches: Iterable[Batch]) -> None:
        """Add records or tallies in the order of each MDT's changelog. Records of tierd's own moves are ignored.

        An error of the iterator is raised after the batches before it were added. Other threads can read the table
        between two batches.
        """
        self.records_read, self.oldest_time = 0, float("inf")
        for batch in batches:
            if isinstance(batch, Tally):
                count, oldest = batch.records, batch.oldest_time if batch.records else float("inf")
                with self._lock:
                    self._add_tally(batch)
            else:
                records = Records.of(batch)
                count, oldest = len(records), records.oldest_time
                counted = self._records.read(records)
                del records  # its memory is used for the next one
                # before the lock: each takes a request
                if self._executor is not None:
                    self._path.look_up(self._records.fids_without_path(counted), self._executor)
                with self._lock:
                    moved, moves = self._records.add(counted)
                    for move in moves:
                        self._movers.moved(os.fsdecode(move.directory), move.job, move.time)
                    if self._making is not None:
                        self._making.note(counted.fields, moved, moves)
            self.records_read += count
            self.oldest_time = min(self.oldest_time, oldest)
            if oldest < self._marked_at - PAST_STEP_SECONDS:  # missed ones, which are not of these minutes
                with self._lock:
                    self._known.counts.past.clear()
            del batch  # its memory is used for the next one

    def tally(self) -> TallyContent:
        """What changed since the last call. The table must have been made with ``tallies``."""
        assert self._making is not None
        with self._lock:
            self._path.ask_again()
            return self._making.content()

    def _add_tally(self, tally: Tally) -> None:
        known = self._of_mdt.setdefault(tally.mdt, set())
        if tally.begun:  # whether its files are open is unknown to the new reader
            self._known.forget(self._known.files.known_rows(known))
            known.clear()
        add_tally(self._known, tally.content, self._movers, self._is_echo)
        known.difference_update(tally.content.removed)
        known.update([file.fid for file in tally.content.files])

    def mark(self, now: float) -> None:
        """Begin a new period of recent activity every ``RECENT_SECONDS``."""
        with self._lock:
            if not 0 <= now - self._marked_at < RECENT_SECONDS:
                self._marked_at = now
                self._known.counts.mark()
                self._path.ask_again()

    def other_mover_in(self, directory: str, since: float) -> str:
        """Job id of another mover that has moved several files of a directory since a time; "" for none."""
        with self._lock:
            return self._movers.at_work(directory, since)

    def forget_paths(self, renamed_until: float) -> None:
        """Drop all cached paths, after renames until a time, which another reader saw."""
        with self._lock:
            self._path.clear()
            self._path.renamed_until = renamed_until

    def shared_runs(self) -> list[SharedRun]:
        """Runs on shared files that have ended since the last call."""
        with self._lock:
            found, self._known.shared_runs = self._known.shared_runs, []
            return found

    def places(self) -> list[str]:
        """All directories in the table, the most recently active first."""
        with self._lock:
            counts = self._known.counts
            numbers = np.flatnonzero(counts.in_table)
            newest = numbers[np.argsort(-counts.last_time[numbers], kind="stable")]
            return [counts.places.by_number[place] for place in dict.fromkeys(counts.place[newest].tolist())]

    def of_job(self, job: str, since: float) -> list[DirectoryActivity]:
        """Activities of a job in directories where it was active since a time or has files open, most files first."""
        with self._lock:
            listed = self._known.listed(self._recent([job], since))
            return sorted([self._with_files(number, rows) for number, rows in listed.items()], key=_most_files_first)

    def counts_of_job(self, job: str, since: float) -> list[DirectoryActivity]:
        """Like ``of_job``, without the files. It is cheap: there may be a hundred thousand files."""
        with self._lock:
            return sorted(map(self._activity, self._recent([job], since).tolist()), key=_most_files_first)

    def _recent(self, jobs: Iterable[str], since: float, *, counting_open: bool = True) -> Ints:
        """Numbers of the counts of jobs with records since a time, or also a file that is open or was closed since."""
        counts = self._known.counts
        numbers = counts.of_jobs(jobs)
        recent = counts.last_time[numbers] >= since
        if counting_open and not recent.all():
            recent[~recent] = self._known.in_use(numbers[~recent], since)
        found: Ints = numbers[recent]
        return found

    def _with_files(self, number: int, rows: Sequence[int]) -> DirectoryActivity:
        files, at = self._known.files, np.array(rows, np.int64)
        fids, paths = files.fids_of(at), self._known.paths(at)
        existing, closed = (~files.created[at]).tolist(), (files.open_count[at] == 0).tolist()
        opened = tuple(OpenFile(fid, path) for fid, path, exists in zip(fids, paths, existing, strict=True) if exists)
        return self._activity(
            number, opened,
            tuple(Candidate(fid, path, closed_at, created_at, opens=opens)
                  for fid, path, closed_at, created_at, opens, is_closed in zip(
                      fids, paths, files.closed_at[at].tolist(), files.created_at[at].tolist(),
                      files.reopened[at].tolist(), closed, strict=True) if is_closed and path))

    def _activity(self, number: int, existing: tuple[OpenFile, ...] = (),
                  candidates: tuple[Candidate, ...] = ()) -> DirectoryActivity:
        counts = self._known.counts
        counted = dict(zip(COUNTED, counts.counted[number].tolist(), strict=True))
        return DirectoryActivity(
            *counts.names(number), existing_files=existing, candidates=candidates,
            lately=counted["creates"] + counted["opens"] - int(counts.earlier[number]),
            creates_before=counts.creates_before(number), last_time=float(counts.last_time[number]),
            clients=counts.clients[number], **counted)

    def operations_of(self, jobs: Collection[str]) -> NamespaceLoads:
        """Operations of these jobs since the last call, as far as the table knows the jobs. It is cheap."""
        with self._lock:
            counts = self._known.counts
            numbers = counts.of_jobs(jobs)
            done, owner = counts.counted[numbers] - counts.noted[numbers], counts.job[numbers]
            counts.noted[:] = counts.counted  # of all, so that each counts from now on
            job, at = distinct(owner)
            creates, opens, closes, unlinks = sums(at, done[:, :4].astype(float), len(job)).T
            return NamespaceLoads(  # a file is opened as it is made
                texts([counts.jobs.by_number[number] for number in job.tolist()]),
                np.column_stack((opens + creates, closes, creates, unlinks, np.zeros(len(job)))))

    def recent(self, now: float) -> Recent:
        """Activity in all directories of the last ten minutes. The first call of it returns none."""
        with self._lock:
            self._known.counts.keep_past(now)
            return self._since(0, now)

    def latest(self, now: float) -> Recent:
        """Activity in all directories since the last call of ``recent``."""
        with self._lock:
            return self._since(-1, now) if self._known.counts.past else Recent((), 0.0)

    def begin_again(self, directories: Iterable[str], now: float) -> None:
        """Count recent activity in these directories from now on: they have another default layout. Of files that
        outgrow a component, those made from now on count. A reader counts all, as it reads no layouts.
        """
        with self._lock:
            known, places = self._known, set(self.places())
            for directory in places.intersection(directories):
                known.counts.begin_again(known.counts.of_directory(directory))
                known.layouts_since[directory] = now
            known.layouts_since = {place: since for place, since in known.layouts_since.items() if place in places}

    def _since(self, which: int, now: float) -> Recent:
        counts = self._known.counts
        time, taken = counts.past[which]
        numbers, done = counts.since(taken)
        names = map(counts.names, numbers.tolist())
        return Recent(tuple(
            DirectoryActivity(job, place, clients=counts.clients[one], **dict(zip(COUNTED, more, strict=True)))
            for one, (job, place), more in zip(numbers.tolist(), names, done.tolist(), strict=True)
            if place), now - time)  # not of files that were gone when they were first seen

    def last_record(self, jobs: Iterable[str]) -> float:
        """Time of the newest record of any of these jobs; 0 without one."""
        with self._lock:
            counts = self._known.counts
            return float(counts.last_time[counts.of_jobs(jobs)].max(initial=0.0))

    def works_in(self, jobs: Iterable[str], directory: str, since: float, *, counting_open: bool) -> bool:
        """Whether one of these jobs has records since a time in a directory or just below it. ``counting_open``: a file
        that it has open counts too.
        """
        with self._lock:
            recent = self._recent(jobs, since, counting_open=counting_open).tolist()
            places = [self._known.counts.names(number)[1] for number in recent]
            return any(directory in {place, place.rpartition("/")[0]} for place in places)

    def note_shared(self, window: Window) -> None:
        """Note which files several clients have open, by what jobs opened and closed in a window.

        An MDT records one open for each user and mode of a file, until the last close (``mdd_open`` in
        lustre/mdd/mdd_object.c). Job statistics count one for each client, which asks once for all of its processes.
        """
        names = NamespaceLoads.of(window.namespace)
        more = names.numbers[:, OPENS] - names.numbers[:, CLOSES]
        with self._lock:
            for at in np.flatnonzero(more).tolist():
                job = names.job[at]
                left = self._handles.pop(job, 0.0) + float(more[at])
                if left > 0:
                    self._handles[job] = left
            while len(self._handles) > self._known.max_counts:
                del self._handles[next(iter(self._handles))]  # its client crashed, or others closed its files
            self.shared_files = self._known.note_shared(self._handles, window.end)


def _most_files_first(activity: DirectoryActivity) -> tuple[int, str]:
    return -(activity.creates + activity.opens + activity.closes), activity.directory
