"""The jobs of one target with ``--jobs.limit``: the busiest by themselves, the others summed."""

from __future__ import annotations

from exporter.awake import Idle
from exporter.job_numbers import NumbersReader
from exporter.job_runs import Job, every
from exporter.job_texts import JobTexts
from exporter.jobs import IDLE, JOBS, UNNAMED, Read
from exporter.page import Page
from exporter.rest import Rest


class LimitedJobs:
    """From scrape to scrape."""

    def __init__(self, labels: bytes, limit: int, idle: Idle, reader: NumbersReader) -> None:
        self._labels = labels
        self._idle = idle
        self._rest = Rest(limit, labels, reader)
        self._texts = JobTexts(self._rest.read)
        self._jobs: list[Job] = []
        self._twice = 0
        """Listed once more than they should be."""

    def collect(self, read: Read, page: Page) -> int | None:
        """Put the busiest, and the sum of the others; how many lines were not understood, None if there is no file."""
        self._rest.begin()
        self._texts.begin(0)
        if not read(self._texts.take):
            return None
        items, skipped = self._texts.end()
        awake, _ = self._idle.awake(items)
        jobs = [*every(items)]
        working = jobs if awake is items else [*every(awake)]
        shown = self._rest.divide(jobs, working, page)
        page.sample(JOBS, self._labels, len(jobs))
        page.sample(IDLE, self._labels, len(jobs) - len(working))
        page.sample(UNNAMED, self._labels, len(working) - shown)
        if jobs != self._jobs:
            self._jobs, self._twice = jobs, len(jobs) - len(set(jobs))
        return skipped + self._twice + sum([item.skipped for item in awake])
