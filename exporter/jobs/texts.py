"""Detects which jobs of a target have changed since the last scrape.

A job that was idle since the last scrape has the same text, so its lines are reused. Texts are compared by a hash
(mark), because the texts themselves would take most of the exporter's memory. Adjacent idle jobs share a hash. If the
time of a job's last activity differs, the job has changed; its hash is not computed until it is idle.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Sequence

from exporter.jobs.numbers import JobCounts
from exporter.jobs.statistics import Chunks
from lustre.formats import job_stats
from lustre.formats.compiled import mark
from lustre.formats.job_stats import NEXT

RUN_JOBS = 8
"""Number of jobs with a common hash. If one job is active, the others are compared one by one."""
JOBS_PER_CHANGE = 8
"""Runs are built if fewer than one in this many jobs changed. With more changes, runs cost more than they save."""
MAX_JOB_BYTES = 4 << 20
"""Size limit of the text before the first job and of the text of one job: thousands of times the usual size."""
_TIME = b"  snapshot_time:   "
_TIME_BEGIN, _TIME_END = len(_TIME), len(_TIME) + 10


class Job:
    """A job at the last scrape."""

    __slots__ = ("active_at", "chunks", "counted", "first_line", "mark", "name", "skipped", "stale", "times")

    def __init__(self, first_line: bytes, marked: int) -> None:
        self.first_line = first_line
        self.times = b""
        """The second line, with the time of the last activity."""
        self.mark: int | None = marked
        """Hash of the text; None if the text changed at the last scrape, because it will probably change again."""
        self.active_at = job_stats.UNKNOWN
        self.name = b""
        self.chunks: Chunks = (b"", b"", b"", b"", b"", b"")
        self.counted: JobCounts | None = None
        """The counters of the job if a limit is set; it then has no lines."""
        self.skipped = 0
        self.stale = True
        """Whether the lines or counters are out of date."""


class IdleRun:
    """Adjacent jobs that are not stale."""

    __slots__ = ("chunks", "jobs", "mark", "names", "newest", "oldest", "size", "skipped")

    def __init__(self, jobs: Sequence[Job], text: bytes) -> None:
        self.jobs = tuple(jobs)
        self.size = len(text)
        self.mark = mark(text, 0, len(text))
        self.names = tuple([job.name for job in jobs])
        columns = zip(*[job.chunks for job in jobs], strict=True)
        self.chunks = tuple([tuple(filter(None, column)) for column in columns])
        self.skipped = sum([job.skipped for job in jobs])
        times = [job.active_at for job in jobs]
        self.newest = max(times)
        self.oldest = -1 if job_stats.UNKNOWN in times else min(times)


Item = IdleRun | Job
ReadJobs = Callable[[bytes, int, int, bool], int]
"""Reads the whole jobs between two positions of a text; the last one may end with the text. Returns the position of the
rest."""


class RunBuilder:
    """Collects adjacent jobs for a run."""

    def __init__(self, runs: dict[bytes, IdleRun], data: bytes, *, wanted: bool) -> None:
        self._runs = runs
        self._wanted = wanted
        self._data = data
        self._jobs: list[Job] = []
        self._begin = self._end = 0

    def add(self, job: Job, begin: int, end: int) -> None:
        """Add the next job, with the position of its text."""
        if job.stale or len(self._jobs) == RUN_JOBS:
            self.close()
        if self._wanted and not job.stale:
            if not self._jobs:
                self._begin = begin
            self._jobs.append(job)
            self._end = end

    def close(self) -> None:
        if len(self._jobs) > 1:  # a run of one saves nothing
            self._runs[self._jobs[0].first_line] = IdleRun(self._jobs, self._data[self._begin : self._end])
        self._jobs = []


def is_unchanged(run: IdleRun, data: bytes, begin: int, end: int) -> bool:
    """Whether the text of a run is unchanged and is followed by a job or the end."""
    following = begin + run.size
    return (following == end or data.startswith(job_stats.KEY, following)) and mark(data, begin, following) == run.mark


def every_job(items: Iterable[Item]) -> Iterator[Job]:
    for item in items:
        if isinstance(item, IdleRun):
            yield from item.jobs
        else:
            yield item


class JobPieces:
    """Divides the pieces of a file into a preamble, whole jobs, and the incomplete text of a job."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._left = b""
        self._inside = False
        self._odd = 0

    def take(self, piece: bytes, read: ReadJobs) -> None:
        """Process the next piece of the file. Raises OSError if the text is too long to be that of a job."""
        data = self._left + piece if self._left else piece
        at = 0
        if not self._inside:
            at = job_stats.first(data)
            if at < 0:
                self._keep_rest(data)
                return
            self._inside = True
            self._odd = job_stats.odd_lines(data[:at])
        self._keep_rest(data[read(data, at, len(data), False) :])

    def _keep_rest(self, left: bytes) -> None:
        if len(left) > MAX_JOB_BYTES:
            raise OSError(errno.EBADMSG, "no jobs")
        self._left = left

    def end(self, read: ReadJobs) -> int:
        """Process the last job. Returns the number of lines outside jobs."""
        data, self._left = self._left, b""
        end = data.rfind(b"\n") + 1
        if self._inside:
            read(data, 0, end, True)
        else:
            self._odd = job_stats.odd_lines(data[:end])
        return self._odd + (end != len(data))


class JobTexts:
    """The jobs of a target, by their first lines. The file is read in pieces."""

    def __init__(self, render: Callable[[Job, bytes], None]) -> None:
        self._render = render
        """Makes the lines of a job from its text."""
        self.twice = False
        """Whether the last reading listed a job twice."""
        self._pieces = JobPieces()
        self._jobs: dict[bytes, Job] = {}
        self._runs: dict[bytes, IdleRun] = {}
        self._quiet = False
        self.begin(0)

    def begin(self, since: int) -> None:
        """Start a new reading. Jobs that were not active since then stay stale."""
        self._since = since
        self._pieces.restart()
        self._count = self._changed = 0
        self._items: list[Item] = []
        self._made: dict[bytes, IdleRun] = {}

    def take(self, piece: bytes) -> None:
        """Process the next piece of the file. Raises OSError if the text is too long to be that of a job."""
        self._pieces.take(piece, self._read)

    def end(self) -> tuple[list[Item], int]:
        """Return all jobs in the order of the file, and the number of lines outside jobs."""
        odd = self._pieces.end(self._read)
        items, made, count = self._items, self._made, self._count
        self._runs = made if len(made) * RUN_JOBS < 4 * count else {}  # short ones cost more than they save
        self._quiet = self._changed * JOBS_PER_CHANGE < count  # otherwise runs would not last
        if count != len(self._jobs):  # some have gone
            self._jobs = {job.first_line: job for job in every_job(items)}
        self.twice = count != len({*every_job(items)})
        return items, odd

    def _read(self, data: bytes, begin: int, end: int, last: bool) -> int:
        items, runs, jobs, find = self._items, self._runs, self._jobs, data.find
        held = RunBuilder(self._made, data, wanted=self._quiet)
        before = len(items)
        while begin < end:
            cut = find(b"\n", begin, end)
            if cut < 0:
                break
            first_line = data[begin:cut]
            run = runs.get(first_line) if runs else None
            if run is not None:
                if not last and begin + run.size + len(job_stats.KEY) > end:  # what follows it is in the next piece
                    break
                if is_unchanged(run, data, begin, end):
                    self._keep(run, held)
                    begin += run.size
                    continue
            following = find(NEXT, cut, end) + 1 or (end if last else 0)
            if not following:
                break
            times = data[cut + 1 : find(b"\n", cut + 1, following) + 1]
            job = jobs.get(first_line)
            if job is None:
                job = jobs[first_line] = Job(first_line, mark(data, begin, following))
            if job.times != times:
                self._changed += 1
                job.mark = None if job.times else job.mark
                job.times, job.stale, job.active_at = times, True, active_at(times)
            elif (now := mark(data, begin, following)) != job.mark:
                job.mark, job.stale = now, True
            if job.stale and (job.active_at >= self._since or job.active_at == job_stats.UNKNOWN):
                self._render(job, data[begin:following])
            held.add(job, begin, following)
            items.append(job)
            begin = following
        held.close()
        self._count += len(items) - before
        return begin

    def _keep(self, run: IdleRun, held: RunBuilder) -> None:
        held.close()
        self._made[run.jobs[0].first_line] = run
        self._items.append(run)
        self._count += len(run.jobs) - 1

    def forget(self) -> None:
        """Treat all jobs as new at the next reading."""
        self._jobs, self._runs = {}, {}


def active_at(times: bytes) -> int:
    """Return the time of last activity in whole seconds since 1970, or ``UNKNOWN``."""
    seconds = times[_TIME_BEGIN:_TIME_END]
    if seconds.isdigit() and times[:_TIME_BEGIN] == _TIME and times[_TIME_END : _TIME_END + 1] == b".":
        return int(seconds)
    return job_stats.active_at(b"\n" + times)  # active_at searches after the first line
