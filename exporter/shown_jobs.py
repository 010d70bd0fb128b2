"""Lines of the jobs that are shown by themselves, made from their numbers."""

from __future__ import annotations

from collections.abc import Collection

from exporter.counted import OTHER, Counted
from exporter.families import Family
from exporter.job_names import is_own, unlike
from exporter.jobs import OPERATIONS, SECONDS, SUMS
from exporter.page import Page
from exporter.totals import put_totals


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
        self._shown: dict[Counted, _Shown] = {}

    def put(self, page: Page, jobs: Collection[Counted]) -> None:
        """These, and no others, are shown."""
        if len(jobs) != len(self._shown) or not all(map(self._shown.__contains__, jobs)):
            self._name(jobs)
        for job, shown in self._shown.items():
            if shown.values is not job.values:
                shown.values = job.values
                own = Page()
                put_totals(own, shown.labels, dict(zip(job.keys, job.values, strict=True)), SUMS)
                shown.lines = own.lines()
                if is_own(shown.name, b"".join([line for family, line in shown.lines if family is OPERATIONS]),
                          b"".join([line for family, line in shown.lines if family not in {OPERATIONS, SECONDS}])):
                    shown.lines = ()
            page.extend(shown.lines)

    def _name(self, jobs: Collection[Counted]) -> None:
        kept = {job: self._shown[job] for job in jobs if job in self._shown}
        taken = {OTHER, *[shown.name for shown in kept.values()]}
        for job in jobs:
            if job not in kept:
                name = unlike(job.job_id(), taken)
                taken.add(name)
                kept[job] = _Shown(name, b'%b,jobid="%b"' % (self._labels, name))
        self._shown = kept
