"""Jobs as they were last seen, and runs of them: those that are idle side by side are told together, by one mark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from exporter.counted import Counted
from exporter.jobs import Chunks
from lustre.formats import job_stats
from lustre.formats.compiled import mark

RUN = 8
"""Jobs told together: one of them that works makes the others be told one by one."""


class Job:
    """A job as it was last seen."""

    __slots__ = ("active_at", "chunks", "counted", "first_line", "mark", "name", "skipped", "stale", "times")

    def __init__(self, first_line: bytes, marked: int) -> None:
        self.first_line = first_line
        self.times = b""
        """The second line, which says when it last did something."""
        self.mark: int | None = marked
        """Of the text; None when it changed at the last scrape, as it will at the next."""
        self.active_at = job_stats.UNKNOWN
        self.name = b""
        self.chunks: Chunks = (b"", b"", b"", b"", b"")
        self.counted: Counted | None = None
        """The job in numbers, when a limit is set; it has no lines then."""
        self.skipped = 0
        self.stale = True
        """The lines, or numbers, must be made anew from the text."""


class Run:
    """Jobs that stand one after the other, none of which is stale."""

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


Item = Run | Job


class Held:
    """Jobs side by side that may become a run."""

    def __init__(self, runs: dict[bytes, Run], data: bytes, *, wanted: bool) -> None:
        self._runs = runs
        self._wanted = wanted
        self._data = data
        self._jobs: list[Job] = []
        self._begin = self._end = 0

    def add(self, job: Job, begin: int, end: int) -> None:
        """The next job, and where its text is."""
        if job.stale or len(self._jobs) == RUN:
            self.close()
        if self._wanted and not job.stale:
            if not self._jobs:
                self._begin = begin
            self._jobs.append(job)
            self._end = end

    def close(self) -> None:
        """What comes next is no part of the run."""
        if len(self._jobs) > 1:
            self._runs[self._jobs[0].first_line] = Run(self._jobs, self._data[self._begin : self._end])
        self._jobs = []


def is_there(run: Run, data: bytes, begin: int, end: int) -> bool:
    """Whether its text stands there again, and nothing but a job or the end comes after it."""
    following = begin + run.size
    return (following == end or data.startswith(job_stats.KEY, following)) and mark(data, begin, following) == run.mark


def every(items: Iterable[Item]) -> Iterator[Job]:
    """One by one, those of runs too."""
    for item in items:
        if isinstance(item, Run):
            yield from item.jobs
        else:
            yield item
