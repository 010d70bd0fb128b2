"""Operations of each job on each target of this node: ``obdfilter.*.job_stats``, ``mdt.*.job_stats``.

Job ids are what the administrator chose (``jobid_var``), and may hold any bytes. A job that was idle since the last
scrape has the same block of text, byte for byte, and keeps its lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from exporter.collector import Collect, Collector, Context
from exporter.exposition import Family, MetricsPage, label_text
from exporter.jobs.idle import IdleFilter
from exporter.jobs.limit import LimitedJobs
from exporter.jobs.lines import lines_of
from exporter.jobs.numbers import NumbersReader
from exporter.jobs.statistics import FAMILIES, IDLE, JOBS, Chunks, Read
from exporter.jobs.texts import IdleRun, Item, Job, JobTexts
from exporter.node import Node
from lustre.formats import job_stats

SHOWN: tuple[Family, ...] = FAMILIES[:5]


@dataclass(slots=True)
class Columns:
    """Finished lines of jobs, family by family in the order of ``SHOWN``."""

    chunks: tuple[list[bytes], ...]
    skipped: int
    jobs: int = 0

    def add_one(self, name: bytes, chunks: Chunks, skipped: int, taken: set[bytes]) -> None:
        """Add the lines of a job, and reserve its name."""
        taken.add(name)
        for column, chunk in zip(self.chunks, chunks, strict=True):
            column.append(chunk)
        self.skipped += skipped
        self.jobs += 1

    def add(self, run: IdleRun) -> None:
        """Add the lines of unchanged jobs."""
        for column, chunks in zip(self.chunks, run.chunks, strict=True):
            column.extend(chunks)
        self.skipped += run.skipped


class JobOptions:
    """State that all targets share."""

    def __init__(self, context: Context) -> None:
        self.limit = context.settings.jobs_limit
        self.idle = IdleFilter(context.settings.jobs_idle_seconds, context.wall)
        self.numbers = NumbersReader()

    def jobs(self, fs: str, target: str) -> TargetJobs | LimitedJobs:
        """The jobs of a target."""
        labels = label_text(fs=fs, target=target)
        return LimitedJobs(labels, self.limit, self.idle, self.numbers) if self.limit else TargetJobs(labels, self)


class TargetJobs:
    """The jobs of one target between scrapes, each with its own series."""

    def __init__(self, labels: bytes, shared: JobOptions) -> None:
        self._labels = labels
        self._shared = shared
        self._texts = JobTexts(self._show)
        self._since = 0
        """Jobs that were not active since then are idle."""

    def collect(self, read: Read, page: MetricsPage) -> int | None:
        """Show every job; return the number of skipped lines, None without a file."""
        self._texts.begin(self._since)
        if not read(self._texts.take):
            return None
        items, skipped = self._texts.end()
        active, self._since = self._shared.idle.active(items)
        columns = self._columns(active)
        if columns is None:
            return self._collect_apart(read, page)
        self._put(page, count(items), columns)
        return skipped + columns.skipped

    def _collect_apart(self, read: Read, page: MetricsPage) -> int | None:
        """Show them after a second reading: names are equal, a job is listed twice, or one has no lines yet."""
        whole = _whole(read)
        if whole is None:
            return None
        self._texts.forget()
        columns = Columns(([], [], [], [], []), 0)
        taken: set[bytes] = set()
        _, _, skipped = job_stats.extent(whole)
        texts = job_stats.split(whole)
        for text in self._shared.idle.active_texts(texts):
            columns.add_one(*lines_of(text, self._labels, taken), taken)
        self._put(page, len(texts), columns)
        return skipped + columns.skipped

    def _put(self, page: MetricsPage, jobs: int, columns: Columns) -> None:
        page.sample(JOBS, self._labels, jobs)
        page.sample(IDLE, self._labels, jobs - columns.jobs)
        for family, column in zip(SHOWN, columns.chunks, strict=True):
            page.chunks.setdefault(family, []).extend(column)

    def _columns(self, items: Sequence[Item]) -> Columns | None:
        """Lines of these jobs; None if two of them have equal names, or one has no lines."""
        columns = Columns(([], [], [], [], []), 0)
        names: list[bytes] = []
        reads, writes, operations, seconds, sizes = columns.chunks
        for item in items:
            if isinstance(item, IdleRun):
                columns.add(item)
                names += item.names
                continue
            if item.stale:
                return None
            read, written, done, took, sized = item.chunks
            names.append(item.name)
            if read:
                reads.append(read)
            if written:
                writes.append(written)
            operations.append(done)
            seconds.append(took)
            if sized:
                sizes.append(sized)
            columns.skipped += item.skipped
        columns.jobs = len(names)
        return columns if len({*names}) == columns.jobs else None

    def _show(self, job: Job, text: bytes) -> None:
        """Render the lines of a job."""
        job.name, job.chunks, job.skipped = lines_of(text, self._labels)
        job.stale = False


def count(items: Iterable[Item]) -> int:
    """The number of jobs in these items."""
    return sum([len(item.jobs) if isinstance(item, IdleRun) else 1 for item in items])


def _whole(read: Read) -> bytes | None:
    pieces: list[bytes] = []
    return b"".join(pieces) if read(pieces.append) else None


def start(context: Context) -> Collect:
    """Start without earlier readings."""
    targets: dict[str, TargetJobs | LimitedJobs] = {}
    shared = JobOptions(context)

    def collect(node: Node, page: MetricsPage) -> None:
        present = [(kind, name, device) for kind in ("obdfilter", "mdt") for name, device in node.targets(kind)]
        for gone in targets.keys() - {name for _, name, _ in present}:
            del targets[gone]
        for kind, name, device in present:
            if name not in targets:
                targets[name] = shared.jobs(device.fsname, device.target)
            skipped = targets[name].collect(partial(node.read_through, kind, name, "job_stats"), page)
            node.skipped(kind, "job_stats", skipped or 0)

    return collect


COLLECTOR = Collector("jobs", "operations and bytes of each job on each target of this node", FAMILIES, start)
