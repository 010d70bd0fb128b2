"""The jobs of one target from scrape to scrape, and which of them have another text than before.

A job idle since the last scrape has the same text, byte for byte, and keeps its lines. That is told by a hash, since
the texts themselves would be most of the exporter's memory; jobs that are idle side by side are told together. A job
whose time of last activity moved has changed for certain: its hash is not even made, until it is idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from exporter.jobs import Chunks
from lustre.text import job_stats
from lustre.text.job_stats import NEXT

RUN = 8
"""Jobs told together: one of them that works makes the others be told one by one."""
FEW = 8
"""Runs are made when fewer than one job in so many changed; when more do, they are only in the way."""
_TIME = b"  snapshot_time:   "
_TIME_BEGIN, _TIME_END = len(_TIME), len(_TIME) + 10


class Job:
    """A job as it was last seen."""

    __slots__ = ("active_at", "chunks", "first_line", "mark", "name", "skipped", "stale", "times")

    def __init__(self, first_line: bytes, mark: int) -> None:
        self.first_line = first_line
        self.times = b""
        """The second line, which says when it last did something."""
        self.mark: int | None = mark
        """Hash of the text; None when it changed at the last scrape, as it will at the next."""
        self.active_at = job_stats.UNKNOWN
        self.name = b""
        self.chunks: Chunks | None = None
        """The lines."""
        self.skipped = 0
        self.stale = True
        """The lines must be made anew from the text."""


class Run:
    """Jobs that stand one after the other, none of which is stale."""

    __slots__ = ("chunks", "jobs", "mark", "names", "newest", "oldest", "size", "skipped")

    def __init__(self, jobs: Sequence[Job], text: bytes) -> None:
        self.jobs = tuple(jobs)
        self.size = len(text)
        self.mark = hash(text)
        self.names = tuple([job.name for job in jobs])
        columns = zip(*[job.chunks for job in jobs if job.chunks is not None], strict=True)
        self.chunks = tuple([tuple(filter(None, column)) for column in columns])
        self.skipped = sum([job.skipped for job in jobs])
        times = [job.active_at for job in jobs]
        self.newest = max(times)
        self.oldest = -1 if job_stats.UNKNOWN in times else min(times)


Item = Run | tuple[Job, int, int]
"""Jobs without change; or one, and where its text begins and ends."""


class JobTexts:
    """The jobs of a target, by their first lines."""

    def __init__(self) -> None:
        self._jobs: dict[bytes, Job] = {}
        self._runs: dict[bytes, Run] = {}
        self._quiet = False

    def read(self, data: bytes) -> tuple[list[Item], int]:
        """All jobs in the order printed, and how many lines belong to none. Changed ones are stale."""
        begin, end, odd = job_stats.extent(data)
        items: list[Item] = []
        jobs, runs, find = self._jobs, self._runs, data.find
        count = changed = 0
        while begin < end:
            cut = find(b"\n", begin)
            first_line = data[begin:cut]
            run = runs.get(first_line) if runs else None
            if run is not None and _is_there(run, data, begin, end):
                items.append(run)
                count += len(run.jobs)
                begin += run.size
                continue
            following = find(NEXT, cut, end) + 1 or end
            times = data[cut + 1 : find(b"\n", cut + 1)]
            job = jobs.get(first_line)
            if job is None:
                job = jobs[first_line] = Job(first_line, hash(data[begin:following]))
            if job.times != times:
                changed += 1
                if job.times:
                    job.mark = None
                job.times, job.stale = times, True
                seconds = times[_TIME_BEGIN:_TIME_END]
                known = seconds.isdigit() and times[:_TIME_BEGIN] == _TIME and times[_TIME_END : _TIME_END + 1] == b"."
                job.active_at = int(seconds) if known else job_stats.active_at(data[begin:following])
            elif (mark := hash(data[begin:following])) != job.mark:
                job.mark, job.stale = mark, True
            items.append((job, begin, following))
            count += 1
            begin = following
        self._quiet = changed * FEW < count
        if count != len(jobs):
            self._jobs = {job.first_line: job for job in _every(items)}
        return items, odd

    def remember(self, data: bytes, items: Iterable[Item]) -> None:
        """Note which jobs stand side by side, if most of them are idle."""
        runs: dict[bytes, Run] = {}
        held: list[Job] = []
        begin = end = 0

        def close() -> None:
            if len(held) > 1:
                runs[held[0].first_line] = Run(held, data[begin:end])
            held.clear()

        for item in items if self._quiet else ():
            if isinstance(item, Run):
                close()
                runs[item.jobs[0].first_line] = item
                continue
            job, job_begin, job_end = item
            if job.stale or len(held) == RUN:
                close()
            if not job.stale:
                begin, end = begin if held else job_begin, job_end
                held.append(job)
        close()
        self._runs = runs if len(runs) * RUN < 4 * len(self._jobs) else {}

    def forget(self) -> None:
        """Take all jobs for new at the next reading."""
        self._jobs, self._runs = {}, {}


def _is_there(run: Run, data: bytes, begin: int, end: int) -> bool:
    following = begin + run.size
    return (following == end or data.startswith(job_stats.KEY, following)) and hash(data[begin:following]) == run.mark


def _every(items: Iterable[Item]) -> Iterable[Job]:
    for item in items:
        if isinstance(item, Run):
            yield from item.jobs
        else:
            yield item[0]
