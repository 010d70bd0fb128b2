"""Operations of each job on each target of this node: ``obdfilter.*.job_stats``, ``mdt.*.job_stats``.

The administrator chooses the form of job ids (``jobid_var``); an id may contain any bytes. A job that was idle since
the last scrape has the same block of text, byte for byte, so the exporter reuses its lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from exporter.collector import Collect, Collector, Context
from exporter.exposition import MetricsPage, label_text
from exporter.jobs.idle import NEVER_IDLE, IdleFilter
from exporter.jobs.limit import LimitedJobs
from exporter.jobs.lines import NAMES, compiled_table, lines_of
from exporter.jobs.numbers import NumbersReader
from exporter.jobs.statistics import FAMILIES, IDLE, JOBS, OF_ONE_JOB, READ_AT, Chunks, Read
from exporter.jobs.texts import IdleRun, Item, Job, JobPieces, JobTexts, active_at
from exporter.node import Node
from lustre.formats import job_stats

if TYPE_CHECKING:
    from exporter.jobs._lines import Table


@dataclass(slots=True)
class Columns:
    """Finished lines of jobs, family by family in the order of ``OF_ONE_JOB``."""

    chunks: tuple[list[bytes], ...] = field(default_factory=lambda: tuple([list[bytes]() for _ in OF_ONE_JOB]))
    names: set[bytes] = field(default_factory=set)
    skipped: int = 0
    jobs: int = 0

    def add_one(self, name: bytes, chunks: Chunks, skipped: int) -> None:
        self.names.add(name)
        for column, chunk in zip(self.chunks, chunks, strict=True):
            if chunk:
                column.append(chunk)
        self.skipped += skipped
        self.jobs += 1

    def add(self, run: IdleRun) -> None:
        self.names.update(run.names)
        for column, chunks in zip(self.chunks, run.chunks, strict=True):
            column.extend(chunks)
        self.skipped += run.skipped
        self.jobs += len(run.names)


class TargetState(Protocol):
    """The jobs of one target between scrapes."""

    def collect(self, read: Read, page: MetricsPage) -> int | None:
        """Show the jobs. Returns the number of skipped lines; None if there is no file."""


class JobOptions:
    """State that all targets share."""

    def __init__(self, context: Context, table: Callable[..., Table] | None = compiled_table) -> None:
        self._table = table
        self.limit = context.settings.jobs_limit
        self.idle = IdleFilter(context.settings.jobs_idle_seconds, context.wall)
        self.numbers = NumbersReader()

    def jobs(self, fs: str, target: str) -> TargetState:
        labels = label_text(fs=fs, target=target)
        if self.limit:
            return LimitedJobs(labels, self.limit, self.idle, self.numbers)
        return TargetJobs(labels, self) if self._table is None else CompiledJobs(labels, self, self._table)


class CompiledJobs:
    """The jobs of one target between scrapes, each with its own series, kept by the C module (decision 12)."""

    def __init__(self, labels: bytes, shared: JobOptions, table: Callable[..., Table]) -> None:
        self._labels = labels
        self._idle = shared.idle
        self._pieces = JobPieces()
        self._table = table(labels, NAMES, partial(lines_of, labels=labels, quick=None), active_at)
        self._since = NEVER_IDLE
        """Jobs that were not active since then are idle."""

    def collect(self, read: Read, page: MetricsPage) -> int | None:
        self._pieces.restart()
        self._table.begin(self._since)
        if not read(lambda piece: self._pieces.take(piece, self._table.read)):
            return None
        odd = self._pieces.end(self._table.read)
        self._since = self._idle.since(self._table.newest())
        found = self._table.end(self._since)
        if found is None:
            self._table.forget()
            return collect_apart(read, page, self._labels, self._idle)
        jobs, shown, skipped, groups, reused, columns = found
        page.count_chunks(groups, reused)
        put_jobs(page, self._labels, jobs, shown, columns)
        return odd + skipped


def collect_apart(read: Read, page: MetricsPage, labels: bytes, idle: IdleFilter) -> int | None:
    """Show the jobs after a second reading: names are equal, a job is listed twice, or a job has no lines yet."""
    pieces: list[bytes] = []
    if not read(pieces.append):
        return None
    whole = b"".join(pieces)
    columns = Columns()
    _, _, skipped = job_stats.extent(whole)
    texts = job_stats.split(whole)
    active = idle.active_texts(texts)
    once = {text.partition(b"\n")[0]: text for text in reversed(active)}  # of a job listed twice, the first counts
    for text in reversed(once.values()):
        columns.add_one(*lines_of(text, labels, columns.names))
    twice = len(active) - len(once)
    put_jobs(page, labels, len(texts) - twice, columns.jobs, columns.chunks)
    return skipped + columns.skipped + twice


def put_jobs(page: MetricsPage, labels: bytes, jobs: int, shown: int, columns: tuple[list[bytes], ...]) -> None:
    """Show finished lines, family by family in the order of ``OF_ONE_JOB``, and the number of jobs."""
    page.sample(JOBS, labels, jobs)
    page.sample(IDLE, labels, jobs - shown)
    for family, column in zip(OF_ONE_JOB, columns, strict=True):
        page.chunks.setdefault(family, []).extend(column)


class TargetJobs:
    """The jobs of one target between scrapes, each with its own series, without the C module."""

    def __init__(self, labels: bytes, shared: JobOptions) -> None:
        self._labels = labels
        self._shared = shared
        self._texts = JobTexts(self._show)
        self._since = 0
        """Jobs that were not active since then are idle."""

    def collect(self, read: Read, page: MetricsPage) -> int | None:
        self._texts.begin(self._since)
        if not read(self._texts.take):
            return None
        items, skipped = self._texts.end()
        active, self._since = self._shared.idle.active(items)
        columns = None if self._texts.twice else self._columns(active)
        if columns is None:
            self._texts.forget()
            return collect_apart(read, page, self._labels, self._shared.idle)
        page.count_chunks(len(items), sum([isinstance(item, IdleRun) for item in items]))
        put_jobs(page, self._labels, count(items), columns.jobs, columns.chunks)
        return skipped + columns.skipped

    def _columns(self, items: Sequence[Item]) -> Columns | None:
        """Return the lines of these jobs; None if two jobs have equal names or a job has no lines."""
        columns = Columns()
        for item in items:
            if isinstance(item, IdleRun):
                columns.add(item)
            elif item.stale:
                return None
            else:
                columns.add_one(item.name, item.chunks, item.skipped)
        return columns if len(columns.names) == columns.jobs else None

    def _show(self, job: Job, text: bytes) -> None:
        job.name, job.chunks, job.skipped = lines_of(text, self._labels)
        job.stale = False


def count(items: Iterable[Item]) -> int:
    return sum([len(item.jobs) if isinstance(item, IdleRun) else 1 for item in items])


def start(context: Context) -> Collect:
    targets: dict[str, TargetState] = {}
    shared = JobOptions(context)

    def collect(node: Node, page: MetricsPage) -> None:
        present = [(kind, name, device) for kind in ("obdfilter", "mdt") for name, device in node.targets(kind)]
        for gone in targets.keys() - {name for _, name, _ in present}:
            del targets[gone]
        for kind, name, device in present:
            if name not in targets:
                targets[name] = shared.jobs(device.fsname, device.target)
            begun = context.wall()
            skipped = targets[name].collect(partial(node.read_through, kind, name, "job_stats"), page)
            if skipped is not None:  # the middle: the kernel prints job after job while the file is read
                read_at = b"%.3f" % ((begun + context.wall()) / 2)
                page.sample(READ_AT, label_text(fs=device.fsname, target=device.target), read_at)
            node.skipped(kind, "job_stats", skipped or 0)

    return collect


COLLECTOR = Collector("jobs", "operations and bytes of each job on each target of this node", FAMILIES, start)
