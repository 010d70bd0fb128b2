"""Tells tierd's own moves from those of others, in changelog records and in job statistics.

``lfs.0`` is the job id of any ``lfs migrate`` by root, so the job id alone does not tell. Where the node or an
environment variable names jobs, it tells nothing. In a changelog, records are tierd's where it has just moved that
file, on this node, as root; a LYOUT record only where tierd moved that file, whatever the job id. In job statistics,
what a job id of ours read and wrote beyond what the journal knows is another mover's. While tierd moves files itself,
another mover shows only by more than tierd can have done.

A job of others under which several files of a directory got another layout is another mover too:

>>> movers = OtherMovers(most=1000)
>>> for number in range(3):
...     movers.moved("/in", "lfs.1500", 20.0 + number)
>>> movers.at_work("/in", since=20.0), movers.at_work("/in", since=21.0), movers.at_work("/", since=0.0)
('lfs.1500', '', '')
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from tierd.model import Window

REMEMBER_SECONDS = 600.0
MAX_FILES = 100_000
_MOVE_RECORDS = {RecordType.OPEN, RecordType.CLOSE, RecordType.LAYOUT, RecordType.SETATTR, RecordType.MTIME,
           RecordType.ATIME, RecordType.CTIME}
"""Record types of a move. tierd never creates, renames or removes files."""
MovedSince = Callable[[Fid, float], bool]
"""Whether tierd began to move a file, or to undo that, since a time, by the journal, across restarts."""


class OwnMoves(Protocol):
    """Distinguishes records of tierd's own moves from others."""

    @property
    def tags(self) -> frozenset[str]:
        """Jobs whose records may be of tierd's own moves."""

    @property
    def files(self) -> Mapping[Fid, float]:
        """Files whose records may be of tierd's own moves, whatever the job. Other records need no check."""

    def __call__(self, record: Record, job: str) -> bool:
        """Whether a record is an echo."""


class NoOwnMoves:
    """Where nothing is moved."""

    tags: frozenset[str] = frozenset()
    files: Mapping[Fid, float] = {}

    def __call__(self, record: Record, job: str) -> bool:
        """Never."""
        return False


class OwnMoveFilter:
    """Recognises records of tierd's own moves."""

    def __init__(self, jobs: Collection[str], nids: Callable[[], Collection[str]], now: Callable[[], float],
                 ours: MovedSince) -> None:
        """``nids`` are this node's addresses; where they are not to be seen, file and user have to do."""
        self._ours = ours
        self.tags = frozenset(jobs)
        """Jobs whose records may be of tierd's own moves."""
        self._nids = nids
        self._now = now
        self.files: OrderedDict[Fid, float] = OrderedDict()
        """Files with a recent move and its time: their records may be of tierd's own moves, whatever the job."""

    def moved(self, fid: Fid) -> None:
        """Remember a file that a move was tried of."""
        self.files[fid] = self._now()
        self.files.move_to_end(fid)
        oldest = next(iter(self.files))
        if len(self.files) > MAX_FILES or self.files[oldest] < self._now() - REMEMBER_SECONDS:
            del self.files[oldest]

    def __call__(self, record: Record, job: str) -> bool:
        """Whether a record is an echo."""
        if job in self.tags:
            return record.type is not RecordType.LAYOUT or self._is_our_move(record)
        at = self.files.get(record.target) if self.files else None
        if at is None or record.type not in _MOVE_RECORDS or record.uid not in {0, None}:
            return False
        return self._now() - at <= REMEMBER_SECONDS and self._from_here(record)

    def _is_our_move(self, record: Record) -> bool:
        known = record.target in self.files or self._ours(record.target, self._now() - REMEMBER_SECONDS)
        return known and self._from_here(record)

    def _from_here(self, record: Record) -> bool:
        nids = self._nids()
        return not record.nid or not nids or record.nid in nids


BEFORE_SECONDS = 60.0
"""A move that ended so long before a window may still be in it: clocks differ, and caches are written late."""
PASSES = 4
"""A move reads a file, writes it and reads it back; some of that may be done again."""
FILE_BYTES = 256 << 10
"""More, for each file: transfers are of whole pages."""
MIN_BYTES = 4 << 20
"""Fewer in a window do not count as another mover: root also runs ``lfs`` on a file or two by hand."""
QUIET_SECONDS = 300.0
"""So long nothing more of another mover has to be seen until it counts as gone."""
MovedAmount = Callable[[float], tuple[int, int]]
"""Files and bytes that tierd moved, or moved back, since a time, by the journal, across restarts."""


@dataclass(frozen=True, slots=True)
class OwnJobsVerdict:
    """Whether the I/O under tierd's job ids was its own."""

    own_jobs: Collection[str]
    """Jobs to leave out of the window; empty when another mover uses their ids."""
    problem: str = ""
    """Which other mover moves files; "" when there is no other."""


class OwnJobs:
    """Looks at one window after the other."""

    def __init__(self, jobs: Iterable[str], moved: MovedAmount) -> None:
        self._jobs = frozenset(jobs)
        self._moved = moved
        self._problem = ""
        self._seen_at = float("-inf")

    def __call__(self, window: Window) -> OwnJobsVerdict:
        """Of one window. Loads without bytes are ours: all commands of ``lfs`` are called so, and most move nothing."""
        ours = [load for (_, job), load in window.loads.items() if job in self._jobs]
        done_bytes = sum(load.moved_bytes for load in ours)
        theirs = done_bytes > MIN_BYTES and self._beyond(done_bytes, window)
        if theirs:
            self._seen_at = window.end
            busiest = max(ours, key=lambda load: load.moved_bytes)
            self._problem = self._problem or (
                f"another mover: {busiest.job} read and wrote {done_bytes / 1e6:.0f} MB in {window.seconds:.0f} s, "
                "more than tierd can have; nothing is moved and no act begun until that has been over for "
                f"{QUIET_SECONDS / 60:.0f} minutes")
        elif not 0 <= window.end - self._seen_at < QUIET_SECONDS:
            self._problem = ""
        return OwnJobsVerdict(frozenset() if theirs else self._jobs, self._problem)

    def _beyond(self, done_bytes: float, window: Window) -> bool:
        files, size_bytes = self._moved(window.start - BEFORE_SECONDS)
        return done_bytes > MIN_BYTES + PASSES * size_bytes + FILE_BYTES * files


MIN_MOVES = 3
"""So many files that get another layout within a time are the work of a mover."""


class OtherMovers:
    """The last such files of each directory."""

    def __init__(self, most: int) -> None:
        """``most`` directories are remembered."""
        self._most = most
        self._moves: dict[str, deque[tuple[float, str]]] = {}

    def moved(self, directory: str, job: str, time: float) -> None:
        """A file of the directory was given another layout by somebody else."""
        if len(self._moves) > self._most:
            self._moves.clear()
        self._moves.setdefault(directory, deque(maxlen=MIN_MOVES)).append((time, job))

    def at_work(self, directory: str, since: float) -> str:
        """Job that has moved several files of a directory since then; "" for none.

        One file is somebody with a setstripe; several are another mover at work.
        """
        moves = self._moves.get(directory)
        return moves[-1][1] if moves and len(moves) == MIN_MOVES and moves[0][0] >= since else ""
