"""Shows the busiest jobs of a target with their own series, and sums the others (``--jobs.limit``).

The sum only grows. It does not include the activity of a job while the job has its own series, and it keeps the job's
earlier activity. Idle jobs are part of the sum, so that their counters are not added again when they become active. A
job whose text has not changed costs no time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from exporter.exposition import Family, MetricsPage
from exporter.jobs.busiest import Busiest
from exporter.jobs.idle import IdleFilter
from exporter.jobs.lines import is_exporter, unique_name
from exporter.jobs.numbers import OTHER, JobCounts, NumbersReader
from exporter.jobs.statistics import BEYOND_LIMIT, IDLE, JOBS, OPERATIONS, SECONDS, STARTED, SUMS, Read, started
from exporter.jobs.texts import Job, JobTexts, every_job
from exporter.ledger import SPARE, Ledger
from exporter.totals import SeriesKey, put_totals

_REST: Final = "rest"
REMEMBERED_PASSES = 20
"""Passes after which a job that is no longer listed has ended. A later job of that name counts as new."""


class LimitedJobs:
    """The jobs of one target between scrapes, if a limit is set."""

    def __init__(self, labels: bytes, limit: int, idle: IdleFilter, reader: NumbersReader) -> None:
        self._labels = labels
        self._idle = idle
        self._rest = OtherJobs(limit, labels, reader)
        self._texts = JobTexts(self._rest.read)
        self._jobs: list[Job] = []
        self._twice = 0
        """Number of jobs that the file lists twice."""

    def collect(self, read: Read, page: MetricsPage) -> int | None:
        """Show the busiest jobs and the sum of the others. Returns the number of skipped lines; None without a file."""
        self._rest.begin()
        self._texts.begin(0)
        if not read(self._texts.take):
            return None
        items, skipped = self._texts.end()
        active, _ = self._idle.active(items)
        jobs = [*every_job(items)]
        working = jobs if active is items else [*every_job(active)]
        shown = self._rest.divide(jobs, working, page)
        page.sample(JOBS, self._labels, len(jobs))
        page.sample(IDLE, self._labels, len(jobs) - len(working))
        page.sample(BEYOND_LIMIT, self._labels, len(working) - shown)
        if jobs != self._jobs:
            self._jobs, self._twice = jobs, len(jobs) - len(set(jobs))
        return skipped + self._twice + sum([item.skipped for item in active])


class OtherJobs:
    """Divides the jobs of a target into shown jobs and other jobs, and sums the other jobs."""

    def __init__(self, limit: int, labels: bytes, reader: NumbersReader) -> None:
        self._reader = reader
        self._busiest: Busiest[JobCounts] = Busiest(limit)
        self._ledger: Ledger[str, SeriesKey] = Ledger()
        self._labels = b'%b,jobid="%b"' % (labels, OTHER)
        self._lines = ShownJobs(labels)
        self._pass = 0
        self._changed: list[JobCounts] = []
        """Jobs that were read but are not in the sum yet: the read of the file may still fail, or it failed, and the
        next one missed the job."""
        self._jobs: list[Job] = []
        self._active: list[Job] = []
        self._members: dict[str, str | None] = {}
        self._eligible: dict[JobCounts, None] = {}
        self._shown: set[JobCounts] = set()
        self._gone: dict[bytes, tuple[JobCounts, int]] = {}
        """Jobs that are no longer listed, with the pass in which they disappeared."""

    def begin(self) -> None:
        self._pass += 1
        self._busiest.begin(self._every)

    def read(self, job: Job, text: bytes) -> None:
        one = job.counted
        if one is None:
            before, _ = self._gone.pop(job.first_line, (None, 0))
            one = job.counted = before or JobCounts(job.first_line)
        if one.read_at == self._pass:
            return  # listed twice: the first entry counts; the job stays stale, even at the next reading
        one.read_at = self._pass
        numbers, job.skipped = self._reader.read(text)
        job.stale = False
        self._busiest.credit(one, one.take(numbers))
        self._changed.append(one)

    def divide(self, jobs: list[Job], active: list[Job], page: MetricsPage) -> int:
        """Show the busiest active jobs and the sum of all other jobs. Returns the number of shown jobs."""
        changed, self._changed = self._changed, []
        shown = self._choose(changed, active)
        self._regroup(jobs, set(shown))
        late = any(one.read_at != self._pass for one in changed)
        present = set(_counted(jobs)) if late else set()
        for one in changed:
            if one.name in self._members and (one.read_at == self._pass or one in present):
                self._ledger.credit(one.name, one.start, one.keys, one.values, whole=one.whole)
            elif one.read_at > self._pass - REMEMBERED_PASSES:
                self._changed.append(one)
        put_totals(page, self._labels, self._ledger.totals(_REST), SUMS)
        self._lines.put(page, shown)
        return len(shown)

    def _choose(self, changed: list[JobCounts], active: list[Job]) -> Sequence[JobCounts]:
        if active == self._active:
            return self._busiest.choose([one for one in changed if one in self._eligible], self._eligible)
        before, self._active = self._eligible, active
        self._eligible = dict.fromkeys([one for one in _counted(active) if not one.unnamed])
        risen = [one for one in (*changed, *self._eligible.keys() - before.keys()) if one in self._eligible]
        return self._busiest.choose(risen, self._eligible, rechoose=not self._eligible.keys() >= self._shown)

    def _regroup(self, jobs: list[Job], shown: set[JobCounts]) -> None:
        moved = shown ^ self._shown
        self._shown = shown
        if jobs != self._jobs:
            self._members = {one.name: None if one in shown else _REST for one in _counted(jobs)}
            self._ledger.begin(self._members)
            self._remember(jobs)
            return
        self._ledger.begin(self._members)
        for one in moved:
            self._members[one.name] = group = None if one in shown else _REST
            self._ledger.move(one.name, group)

    def _remember(self, jobs: list[Job]) -> None:
        """Remember unlisted jobs for some passes, so that a job that one reading missed does not count as new."""
        before, self._jobs = self._jobs, jobs
        present = set(jobs)
        for job in before:
            if job not in present and job.counted is not None:
                self._gone.pop(job.first_line, None)  # put in again: those that went first are first
                self._gone[job.first_line] = job.counted, self._pass
        most = len(jobs) + SPARE
        for first_line, (one, since) in [*self._gone.items()]:
            if len(self._gone) <= most and since > self._pass - REMEMBERED_PASSES:
                break  # the jobs behind it went later
            del self._gone[first_line]
            self._ledger.forget(one.name)

    def _every(self) -> Iterable[JobCounts]:
        return {*_counted(self._jobs), *[one for one, _ in self._gone.values()], *self._changed}


def _counted(jobs: Iterable[Job]) -> Iterator[JobCounts]:
    return (job.counted for job in jobs if job.counted is not None)


class _Shown:
    __slots__ = ("labels", "lines", "name", "values")

    def __init__(self, name: bytes, labels: bytes) -> None:
        self.name = name
        self.labels = labels
        self.values: tuple[int, ...] | None = None
        """The values in the lines."""
        self.lines: tuple[tuple[Family, bytes], ...] = ()


class ShownJobs:
    """The shown jobs. Each keeps its name, and the lines of an unchanged job are reused."""

    def __init__(self, labels: bytes) -> None:
        self._labels = labels
        """Label text of the target."""
        self._shown: dict[JobCounts, _Shown] = {}

    def put(self, page: MetricsPage, jobs: Collection[JobCounts]) -> None:
        if len(jobs) != len(self._shown) or not all(map(self._shown.__contains__, jobs)):
            self._name(jobs)
        for job, shown in self._shown.items():
            if shown.values is not job.values:
                shown.values = job.values
                own = MetricsPage()
                put_totals(own, shown.labels, dict(zip(job.keys, job.values, strict=True)), SUMS)
                own.add(STARTED, started(shown.labels, job.start) if job.keys else b"")
                shown.lines = own.lines()
                others = [line for family, line in shown.lines if family not in {OPERATIONS, SECONDS, STARTED}]
                if is_exporter(shown.name, b"".join([line for family, line in shown.lines if family is OPERATIONS]),
                               b"".join(others)):
                    shown.lines = ()
            page.extend(shown.lines)

    def _name(self, jobs: Collection[JobCounts]) -> None:
        kept = {job: self._shown[job] for job in jobs if job in self._shown}
        taken = {OTHER, *[shown.name for shown in kept.values()]}
        for job in jobs:
            if job not in kept:
                name = unique_name(job.job_id(), taken)
                taken.add(name)
                kept[job] = _Shown(name, b'%b,jobid="%b"' % (self._labels, name))
        self._shown = kept
