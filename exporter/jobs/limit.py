"""The busiest jobs of a target keep series of their own, the others are summed: ``--jobs.limit``.

The sum of the others only grows: what a job did while it was shown by itself never enters it, and what it did before
stays in. Idle jobs are part of it too, so that they do not count anew when they work again. Nothing is done for a job
whose text is what it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from exporter.exposition import Family, MetricsPage
from exporter.jobs.busiest import Busiest
from exporter.jobs.idle import IdleFilter
from exporter.jobs.lines import is_own, unlike
from exporter.jobs.numbers import OTHER, JobCounts, NumbersReader
from exporter.jobs.statistics import BEYOND_LIMIT, IDLE, JOBS, OPERATIONS, SECONDS, SUMS, Read
from exporter.jobs.texts import Job, JobTexts, every_job
from exporter.ledger import SPARE, Ledger
from exporter.totals import SeriesKey, put_totals

_REST: Final = "rest"
REMEMBERED_PASSES = 20
"""A job that is not listed for longer has ended. Should one of that name come back, its counts begin anew."""


class LimitedJobs:
    """From scrape to scrape."""

    def __init__(self, labels: bytes, limit: int, idle: IdleFilter, reader: NumbersReader) -> None:
        self._labels = labels
        self._idle = idle
        self._rest = OtherJobs(limit, labels, reader)
        self._texts = JobTexts(self._rest.read)
        self._jobs: list[Job] = []
        self._twice = 0
        """Listed once more than they should be."""

    def collect(self, read: Read, page: MetricsPage) -> int | None:
        """Put the busiest, and the sum of the others; how many lines were not understood, None if there is no file."""
        self._rest.begin()
        self._texts.begin(0)
        if not read(self._texts.take):
            return None
        items, skipped = self._texts.end()
        awake, _ = self._idle.awake(items)
        jobs = [*every_job(items)]
        working = jobs if awake is items else [*every_job(awake)]
        shown = self._rest.divide(jobs, working, page)
        page.sample(JOBS, self._labels, len(jobs))
        page.sample(IDLE, self._labels, len(jobs) - len(working))
        page.sample(BEYOND_LIMIT, self._labels, len(working) - shown)
        if jobs != self._jobs:
            self._jobs, self._twice = jobs, len(jobs) - len(set(jobs))
        return skipped + self._twice + sum([item.skipped for item in awake])


class OtherJobs:
    """Divides a target's jobs into those shown and the rest."""

    def __init__(self, limit: int, labels: bytes, reader: NumbersReader) -> None:
        self._reader = reader
        self._busiest: Busiest[JobCounts] = Busiest(limit)
        self._ledger: Ledger[str, SeriesKey] = Ledger()
        self._labels = b'%b,jobid="%b"' % (labels, OTHER)
        self._lines = ShownJobs(labels)
        self._pass = 0
        self._changed: list[JobCounts] = []
        """Read, but not in the sum yet: their file may have gone away before its end."""
        self._jobs: list[Job] = []
        self._awake: list[Job] = []
        self._members: dict[str, str | None] = {}
        self._eligible: dict[JobCounts, None] = {}
        self._shown: set[JobCounts] = set()
        self._gone: dict[bytes, tuple[JobCounts, int]] = {}
        """Jobs that are not listed any more, since which pass."""

    def begin(self) -> None:
        """A new reading of the file."""
        self._pass += 1
        self._busiest.begin(self._every)

    def read(self, job: Job, text: bytes) -> None:
        """The job has another text than at the last reading."""
        one = job.counted
        if one is None:
            before, _ = self._gone.pop(job.first_line, (None, 0))
            one = job.counted = before or JobCounts(job.first_line)
        if one.read_at == self._pass:
            return  # listed twice: the first counts, and since the job stays stale, at the next reading too
        one.read_at = self._pass
        numbers, job.skipped = self._reader.read(text)
        job.stale = False
        self._busiest.credit(one, one.take(numbers))
        self._changed.append(one)

    def divide(self, jobs: list[Job], awake: list[Job], page: MetricsPage) -> int:
        """Put the lines of the busiest that are awake, and the sum of all others; how many are shown."""
        changed, self._changed = self._changed, []
        shown = self._choose(changed, awake)
        self._regroup(jobs, set(shown))
        for one in changed:
            if one.name in self._members:
                self._ledger.credit(one.name, one.start, one.keys, one.values, whole=one.whole)
        put_totals(page, self._labels, self._ledger.totals(_REST), SUMS)
        self._lines.put(page, shown)
        return len(shown)

    def _choose(self, changed: list[JobCounts], awake: list[Job]) -> Sequence[JobCounts]:
        if awake == self._awake:
            return self._busiest.choose([one for one in changed if one in self._eligible], self._eligible)
        before, self._awake = self._eligible, awake
        self._eligible = dict.fromkeys([one for one in _counted(awake) if not one.unnamed])
        risen = [one for one in (*changed, *self._eligible.keys() - before.keys()) if one in self._eligible]
        return self._busiest.choose(risen, self._eligible, anew=not self._eligible.keys() >= self._shown)

    def _regroup(self, jobs: list[Job], shown: set[JobCounts]) -> None:
        """Tell the ledger who is there, and who is shown by itself from now on."""
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
        """Keep those that are not listed any more for a while: one that a reading left out is no new one after that."""
        before, self._jobs = self._jobs, jobs
        present = set(jobs)
        for job in before:
            if job not in present and job.counted is not None:
                self._gone.pop(job.first_line, None)
                self._gone[job.first_line] = job.counted, self._pass
        most = len(jobs) + SPARE
        for first_line, (one, since) in [*self._gone.items()]:
            if len(self._gone) <= most and since > self._pass - REMEMBERED_PASSES:
                break
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
        """Those that the lines show."""
        self.lines: tuple[tuple[Family, bytes], ...] = ()


class ShownJobs:
    """Keeps the lines of those that did nothing, and the name of each as long as it is shown."""

    def __init__(self, labels: bytes) -> None:
        self._labels = labels
        """Of the target."""
        self._shown: dict[JobCounts, _Shown] = {}

    def put(self, page: MetricsPage, jobs: Collection[JobCounts]) -> None:
        """These, and no others, are shown."""
        if len(jobs) != len(self._shown) or not all(map(self._shown.__contains__, jobs)):
            self._name(jobs)
        for job, shown in self._shown.items():
            if shown.values is not job.values:
                shown.values = job.values
                own = MetricsPage()
                put_totals(own, shown.labels, dict(zip(job.keys, job.values, strict=True)), SUMS)
                shown.lines = own.lines()
                if is_own(shown.name, b"".join([line for family, line in shown.lines if family is OPERATIONS]),
                          b"".join([line for family, line in shown.lines if family not in {OPERATIONS, SECONDS}])):
                    shown.lines = ()
            page.extend(shown.lines)

    def _name(self, jobs: Collection[JobCounts]) -> None:
        kept = {job: self._shown[job] for job in jobs if job in self._shown}
        taken = {OTHER, *[shown.name for shown in kept.values()]}
        for job in jobs:
            if job not in kept:
                name = unlike(job.job_id(), taken)
                taken.add(name)
                kept[job] = _Shown(name, b'%b,jobid="%b"' % (self._labels, name))
        self._shown = kept
