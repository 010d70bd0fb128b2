"""Changelog records, rolled up by (job, directory): who creates, opens, outgrows and unlinks where.

Three facts of the records rule this module (all seen in recordings of Lustre 2.17):

* only namespace records name a parent that can be trusted: the parent in an OPEN of an existing file may be another
  directory, so the file's own path comes first;
* the last CLOSE may carry the client's own thread (``ldlm_bl.0``), and the LYOUT of a new component no job at all: both
  belong to the job that opened the file;
* files that a job creates and unlinks again are gone before anybody could move them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice

from lustre.changelog import Record, RecordType
from lustre.fid import Fid
from lustre.filesystem import FileStatus
from tierd.facts import SharedFile
from tierd.model import Candidate, DirectoryActivity, OpenFile
from tierd.sense.paths import PathCache, Resolve, directory_of, join

LEAST_SWEPT = 8
"""So many more than last time, and half as many again, before the files of a tally are put in order."""
_MOVES_OF_A_MOVER = 3
"""So many files that get another layout within a time are the work of a mover."""


@dataclass(slots=True)
class _Tally:
    """What one job did in one directory, a path, or the FID in brackets where it could not be resolved."""

    job: str
    directory: str
    creates: int = 0
    opens: int = 0
    closes: int = 0
    unlinks: int = 0
    outgrown: int = 0
    last_time: float = 0.0
    files: list[Fid] = field(default_factory=list)
    """In the order in which it came by them, some of them twice or gone meanwhile: now and then they are put in order,
    since to keep order all the time takes more memory than all else that is known of a file."""
    swept: int = 0
    """How many files there were when they were put in order last."""
    there: bool = True
    """Whether it is still in the table."""


@dataclass(slots=True)
class _File:
    """A file that records spoke of. Two hundred thousand are kept: each field counts."""

    tally: _Tally
    """Of the job that made it or opened it last, where it lay then."""
    directory: str
    name: bytes = b""
    created: bool = False
    open_count: int = 0
    reopened: int = 0
    """Opens other than that of the create."""
    created_at: float = 0.0
    closed_at: float = 0.0

    @property
    def path(self) -> str:
        if not self.directory.startswith("/") or not self.name:
            return ""
        return join(self.directory, self.name.decode("utf-8", "surrogateescape"))


class ActivityTable:
    """A bounded table of files and of (job, directory) tallies.

    What falls out first are the files that came first, and the tallies of which nothing was heard for longest; a few at
    a time, as many as there are.
    """

    def __init__(self, resolve: Resolve, own_jobs: Iterable[str] = (), max_files: int = 150_000,
                 max_tallies: int = 10_000, max_files_per_tally: int = 20_000,
                 is_echo: Callable[[Record, str], bool] = lambda record, job: False) -> None:
        self._path = PathCache(resolve)
        self._own_jobs = frozenset(own_jobs)
        self._is_echo = is_echo
        self._max_files = max_files
        self._max_tallies = max_tallies
        self._max_files_per_tally = max_files_per_tally
        self._files: dict[Fid, _File] = {}
        self._closes = 0
        """Seen so far: where the changelog records opens and no closes, every file would seem to be open."""
        self._tallies: dict[tuple[str, str], _Tally] = {}
        self._movers: dict[str, deque[tuple[float, str]]] = {}
        """Directory to who gave files of it other layouts lately, and when: other movers."""
        self._directories: dict[str, set[str]] = {}
        """By job: the directories of its tallies."""
        self._places: dict[tuple[str, Fid], _Tally] = {}
        """By job and directory, while paths are what they were: what most records ask for."""
        self._changes = 0
        self.heard = 0
        """Records of the last call."""
        self.oldest = float("inf")
        """Time of the oldest of them."""

    def add(self, records: Iterable[Record]) -> None:
        """Take records in, in the order of one MDT's changelog. Our own (by job id) are not activity."""
        handlers = {
            RecordType.CREATE: self._create, RecordType.OPEN: self._open, RecordType.CLOSE: self._close,
            RecordType.UNLINK: self._unlink, RecordType.LAYOUT: self._layout, RecordType.RENAME: self._rename,
            RecordType.MKDIR: self._make_directory,
        }
        names: dict[bytes, str] = {}  # one string for all the files of a job
        own_jobs, is_echo = self._own_jobs, self._is_echo
        heard, oldest = 0, float("inf")
        try:
            for record in records:
                heard += 1
                time = record.time
                if time < oldest:  # noqa: PLR1730 -- of every record: min() takes twice as long
                    oldest = time
                handler = handlers.get(record.type)
                if handler is None:
                    continue
                job = names.get(record.job_id)
                if job is None:
                    job = names[record.job_id] = record.job_id.decode("utf-8", "replace")
                if job not in own_jobs and not is_echo(record, job):
                    handler(record, job)
        finally:
            self.heard, self.oldest = heard, oldest

    def places(self) -> list[str]:
        """Directories something is known of, the most recently active first."""
        latest: dict[str, float] = {}
        for (_, directory), tally in self._tallies.items():
            latest[directory] = max(latest.get(directory, 0.0), tally.last_time)
        return sorted(latest, key=lambda directory: (-latest[directory], directory))

    def forget_paths(self) -> None:
        """Records were missed: directories may have been renamed."""
        self._path.clear()

    def forget_directory(self, directory: str) -> None:
        """Nothing is known of it any more, nor of its files."""
        for key in [key for key in self._tallies if key[1] == directory]:
            for fid in self._forgotten(key).files:
                self._files.pop(fid, None)

    def reconcile(self, directory: str, found: Mapping[Fid, tuple[str, FileStatus]]) -> None:
        """Put right what is known of a directory, from the files that are there now.

        Files that are not there are forgotten, renamed ones get their names, new ones count for the job that was active
        there last. Who has them open is not known: whoever moves them will find out. Where none of the files that were
        known is left, it may be another directory of that name, and is forgotten.
        """
        tallies = [(tally.last_time, job, tally) for (job, place), tally in self._tallies.items() if place == directory]
        known = {fid for _, _, tally in tallies for fid in self._known(tally)}
        if not tallies or (known and not known & found.keys()):
            self.forget_directory(directory)
            return
        for fid in known:
            if fid in found:
                self._files[fid].name = found[fid][0].encode("utf-8", "surrogateescape")
                self._files[fid].open_count = 0
            else:
                self._files.pop(fid)
        _, _, latest = max(tallies, key=lambda each: each[:2])
        for fid, (name, status) in found.items():
            if fid not in known:
                self._remember(fid, _File(latest, directory, name.encode("utf-8", "surrogateescape"), created=True,
                                          created_at=status.mtime, closed_at=status.mtime))
                self._keep(latest, fid)

    def of_job(self, job: str, since: float) -> list[DirectoryActivity]:
        """Where the job has been active since then or still has files open, most files first."""
        mine = [(directory, self._tallies[job, directory]) for directory in self._directories.get(job, ())]
        found = [self._activity(job, directory, tally) for directory, tally in mine
                 if tally.last_time >= since or self._has_open(tally)]
        return sorted(found, key=lambda a: (-(a.creates + a.opens + a.closes), a.directory))

    def summaries(self, since: float) -> list[DirectoryActivity]:
        """All jobs and directories active since then, with their counts and without their files: cheap."""
        return [DirectoryActivity(job, directory, tally.creates, tally.opens, tally.closes, tally.unlinks,
                                  tally.outgrown)
                for (job, directory), tally in self._tallies.items() if tally.last_time >= since]

    def shared_files(self, least_openers: int) -> list[SharedFile]:
        """Files that so many have open at the same time, those with the most first; none where no close is recorded."""
        if not self._closes:
            return []
        found = [SharedFile(file.tally.job, file.path, file.open_count) for file in self._files.values()
                 if file.open_count >= least_openers and file.path]
        return sorted(found, key=lambda f: (-f.openers, f.path))

    def _create(self, record: Record, job: str) -> None:
        time = record.time
        tally = self._tally_in(job, record.parent, time)
        tally.creates += 1
        self._remember(record.target, _File(tally, tally.directory, record.name, True, 0, 0, time, time))
        self._keep(tally, record.target)

    def _make_directory(self, record: Record, job: str) -> None:
        above = self._path(record.parent)
        if above:
            self._path.learn(record.target, join(above, record.name.decode("utf-8", "surrogateescape")))

    def _open(self, record: Record, job: str) -> None:
        file = self._files.get(record.target)
        if file is None:
            path = self._path(record.target)
            directory = directory_of(path) if path else self._path.place(record.parent)
            tally = self._tally(job, directory, record.time)
            file = _File(tally, directory, path.rpartition("/")[2].encode("utf-8", "surrogateescape"))
            self._remember(record.target, file)
            self._keep(tally, record.target)
        else:
            tally = self._tally(job, file.directory, record.time)
            if file.tally is not tally:
                file.tally = tally
                self._keep(tally, record.target)
        file.open_count += 1
        if not (file.created and file.closed_at == file.created_at):
            tally.opens += 1  # else it is the open of the create, which was counted
            file.reopened += 1

    def _close(self, record: Record, job: str) -> None:
        file = self._files.get(record.target)
        if file is None:
            return
        self._closes += 1
        if file.open_count:
            file.open_count -= 1
        file.closed_at = record.time
        tally = file.tally
        if not tally.there or tally.directory is not file.directory:
            owner = tally.job if (tally.job, file.directory) in self._tallies else job
            tally = self._tally(owner, file.directory, record.time)
        elif record.time > tally.last_time:
            tally.last_time = record.time
        tally.closes += 1

    def _unlink(self, record: Record, job: str) -> None:
        file = self._files.pop(record.target, None)
        if file is None:
            tally = self._tally_in(job, record.parent, record.time)
        else:
            tally = self._tally_of(file, record.time)
        tally.unlinks += 1

    def _layout(self, record: Record, job: str) -> None:
        file = self._files.get(record.target)
        if job:  # a migration or a setstripe, not a file that grew
            path = file.path if file is not None else self._path(record.target)
            if not path:
                return  # nobody can say where it is: a file without a name, that a mover copies into
            directory = directory_of(path)
            if len(self._movers) > self._max_tallies:
                self._movers.clear()
            self._movers.setdefault(directory, deque(maxlen=_MOVES_OF_A_MOVER)).append((record.time, job))
        elif file is not None:
            self._tally_of(file, record.time).outgrown += 1

    def mover_in(self, directory: str, since: float) -> str:
        """Job that has moved several files of a directory since then, which is not ours; "" for none.

        One file is somebody with a setstripe; several are another mover at work.
        """
        moves = self._movers.get(directory)
        return moves[-1][1] if moves and len(moves) == _MOVES_OF_A_MOVER and moves[0][0] >= since else ""

    def _rename(self, record: Record, job: str) -> None:
        moved = record.source or record.target
        file = self._files.get(moved)
        if file is None:
            self._path.renamed(moved)
            return
        # written under a temporary name and renamed: common, and the new name is the one that lasts
        file.name = record.name
        file.directory = self._path.place(record.parent)

    def _remember(self, fid: Fid, file: _File) -> None:
        self._files[fid] = file
        if len(self._files) > self._max_files:
            for first in list(islice(self._files, few(self._max_files))):
                del self._files[first]

    def _tally_of(self, file: _File, time: float) -> _Tally:
        """Of the job of a file, where it lies now."""
        tally = file.tally
        if not tally.there or tally.directory is not file.directory:
            return self._tally(tally.job, file.directory, time)
        if time > tally.last_time:  # noqa: PLR1730 -- of every record: max() takes twice as long
            tally.last_time = time
        return tally

    def _tally_in(self, job: str, directory: Fid, time: float) -> _Tally:
        """Of a job in a directory by its FID."""
        if self._path.changes != self._changes or len(self._places) > 2 * self._max_tallies:
            self._places.clear()
            self._changes = self._path.changes
        key = job, directory
        tally = self._places.get(key)
        if tally is None or not tally.there:
            tally = self._places[key] = self._tally(job, self._path.place(directory), time)
        elif time > tally.last_time:
            tally.last_time = time
        return tally

    def _tally(self, job: str, directory: str, time: float) -> _Tally:
        key = job, directory
        tally = self._tallies.get(key)
        if tally is None:
            if len(self._tallies) >= self._max_tallies:
                for each in nsmallest(few(self._max_tallies), self._tallies, lambda key: self._tallies[key].last_time):
                    self._forgotten(each)
            tally = self._tallies[key] = _Tally(job, directory)
            self._directories.setdefault(job, set()).add(directory)
        if time > tally.last_time:  # noqa: PLR1730 -- of every record: max() takes twice as long
            tally.last_time = time
        return tally

    def _forgotten(self, key: tuple[str, str]) -> _Tally:
        """The tally, which is in the table no more."""
        tally = self._tallies.pop(key)
        tally.there = False
        mine = self._directories[tally.job]
        mine.discard(tally.directory)
        if not mine:
            del self._directories[tally.job]
        return tally

    def _keep(self, tally: _Tally, fid: Fid) -> None:
        tally.files.append(fid)
        if len(tally.files) > tally.swept + tally.swept // 2 + LEAST_SWEPT:
            tally.files = list(self._known(tally))
            tally.swept = len(tally.files)

    def _known(self, tally: _Tally) -> Sequence[Fid]:
        """Files of a tally that are there, in the order in which it came by them; no more than the bound, the last."""
        files = [fid for fid in dict.fromkeys(tally.files) if fid in self._files]
        return files[-self._max_files_per_tally:]

    def _has_open(self, tally: _Tally) -> bool:
        return any(fid in self._files and self._files[fid].open_count for fid in tally.files)

    def _activity(self, job: str, directory: str, tally: _Tally) -> DirectoryActivity:
        known = [(fid, self._files[fid]) for fid in self._known(tally)]
        return DirectoryActivity(
            job, directory, tally.creates, tally.opens, tally.closes, tally.unlinks, tally.outgrown,
            existing_files=tuple(OpenFile(fid, file.path) for fid, file in known if not file.created),
            candidates=tuple(Candidate(fid, file.path, file.closed_at, file.created_at, opens=file.reopened)
                             for fid, file in known if not file.open_count and file.path),
        )


def few(most: int) -> int:
    """So many fall out at a time where there may be so many: to look for the first of them takes as long for one."""
    return max(1, most // 32)
