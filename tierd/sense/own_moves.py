"""Distinguishes tierd's own moves from moves of other movers, in changelog records and in job statistics.

The job id alone is not enough: ``lfs.0`` is the job id of any ``lfs migrate`` by root, and if the node or an
environment variable names jobs, the id is unrelated to the program. A changelog record is tierd's own if tierd has just
moved that file, on this node or that of a mover, as root. For a LYOUT record the job id does not count: tierd must have
moved the file. In job statistics, I/O under tierd's job ids beyond the moves in the journal belongs to another mover.
While tierd moves files itself, it detects another mover only by more I/O than its own moves can cause.

Another job is a mover too if several files of a directory get another layout under its id:

>>> movers = OtherMovers(most=1000)
>>> for number in range(3):
...     movers.moved("/in", "lfs.1500", 20.0 + number)
>>> movers.at_work("/in", since=20.0), movers.at_work("/in", since=21.0), movers.at_work("/", since=0.0)
('lfs.1500', '', '')
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from tierd.loads import Loads
from tierd.model import Window
from tierd.text import bytes_text

REMEMBER_SECONDS = 600.0
MAX_FILES = 100_000
_MOVE_RECORDS = {RecordType.OPEN, RecordType.CLOSE, RecordType.LAYOUT, RecordType.SETATTR, RecordType.MTIME,
           RecordType.ATIME, RecordType.CTIME}
"""Record types of a move. tierd never creates, renames or removes files."""
MovedSince = Callable[[Fid, float], bool]
"""Whether tierd began a move of a file, or its undo, since a time. The journal knows it across restarts."""


def nids_of_moves(here: Collection[str], movers: Collection[str] | None) -> Collection[str]:
    """NIDs from which tierd moves files: those of this node, and of movers on others. Empty if any is unknown.

    >>> sorted(nids_of_moves({"10.0.0.5@tcp"}, ["10.0.0.6@tcp"])), nids_of_moves({"10.0.0.5@tcp"}, None)
    (['10.0.0.5@tcp', '10.0.0.6@tcp'], ())
    """
    return {*here, *movers} if here and movers is not None else ()


class OwnMoves:
    """Recognises records of tierd's own moves by file, user and node. A reader on another node knows job ids alone:
    which files tierd moves is known to the leader, to which LYOUT records are left.
    """

    def __init__(self, jobs: Collection[str] = (), nids: Callable[[], Collection[str]] = tuple,
                 now: Callable[[], float] = float, ours: MovedSince = lambda *_: False) -> None:
        """``nids`` returns the NIDs from which tierd moves files. If unknown, only file and user are compared."""
        self.tags = frozenset(jobs)
        """Jobs whose records may be of tierd's own moves."""
        self.files: OrderedDict[Fid, float] = OrderedDict()
        """Files with a recent move and its time: their records may be of tierd's own moves, whatever the job."""
        self._ours = ours
        self._nids = nids
        self._now = now

    def moved(self, fid: Fid) -> None:
        """Remember a file that tierd tries to move."""
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
"""I/O of a move that ended this long before a window may be in the window: clocks differ, caches are written late."""
PASSES = 4
"""I/O of a move as a multiple of the file size: it reads, writes and reads back, and parts may be repeated."""
FILE_BYTES = 256 << 10
"""Additional I/O for each file: transfers have whole pages."""
MIN_BYTES = 4 << 20
"""Less I/O in a window does not count as another mover: root may run ``lfs`` on a file or two by hand."""
QUIET_SECONDS = 300.0
"""Time without I/O of another mover after which it counts as finished."""
MovedAmount = Callable[[float], tuple[int, int]]
"""Files and bytes that tierd moved or moved back since a time. The journal knows them across restarts."""


class OwnJobs:
    """Checks window by window whether the I/O under tierd's job ids is tierd's own."""

    def __init__(self, jobs: Iterable[str], moved: MovedAmount) -> None:
        self._jobs = frozenset(jobs)
        self._moved = moved
        self.problem = ""
        """Text about another mover, or ""."""
        self._seen_at = float("-inf")

    def __call__(self, window: Window) -> Collection[str]:
        """Check one window. Returns the jobs to remove from it; none while another mover uses their ids. Loads without
        bytes count as own: all commands of ``lfs`` have this job id.
        """
        loads = Loads.of(window.loads)
        own = list(loads.rows(loads.jobs_among(self._jobs)).values())
        done_bytes = sum(load.moved_bytes for load in own)
        is_other = done_bytes > MIN_BYTES and self._beyond(done_bytes, window)
        if is_other:
            self._seen_at = window.end
            busiest = max(own, key=lambda load: load.moved_bytes)
            self.problem = self.problem or (
                f"another mover: {busiest.job} read and wrote {bytes_text(done_bytes)} in {window.seconds:.0f} s, "
                "more than tierd's own moves; tierd moves nothing and starts no acts until this has been over for "
                f"{QUIET_SECONDS / 60:.0f} minutes")
        elif not 0 <= window.end - self._seen_at < QUIET_SECONDS:
            self.problem = ""
        return frozenset() if is_other else self._jobs

    def _beyond(self, done_bytes: float, window: Window) -> bool:
        files, size_bytes = self._moved(window.end - max(window.seconds, *window.spans.values(), 0.0) - BEFORE_SECONDS)
        return done_bytes > MIN_BYTES + PASSES * size_bytes + FILE_BYTES * files


MIN_MOVES = 3
"""Number of files with a new layout, in one directory, that shows a mover."""


class OtherMovers:
    """The last layout changes by other jobs in each directory."""

    def __init__(self, most: int) -> None:
        """``most`` is the maximum number of directories."""
        self._most = most
        self._moves: dict[str, deque[tuple[float, str]]] = {}

    def moved(self, directory: str, job: str, time: float) -> None:
        """Record that another job changed the layout of a file in the directory."""
        if len(self._moves) > self._most:
            self._moves.clear()
        self._moves.setdefault(directory, deque(maxlen=MIN_MOVES)).append((time, job))

    def at_work(self, directory: str, since: float) -> str:
        """Job that changed the layouts of several files of a directory since a time; "" for none. A single file may be
        a setstripe by hand.
        """
        moves = self._moves.get(directory)
        return moves[-1][1] if moves and len(moves) == MIN_MOVES and moves[0][0] >= since else ""
