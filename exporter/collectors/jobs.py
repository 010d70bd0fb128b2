"""What each job did to each target of this node: ``obdfilter.*.job_stats``, ``mdt.*.job_stats``.

Job ids are what the administrator chose (``jobid_var``), and may hold anything. A job idle since the last scrape has
the same block of text, byte for byte, and keeps its lines.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from exporter.collector import Collect, Collector, Context
from exporter.families import Family, Page, escape, label_text
from exporter.job_lines import Renderer
from exporter.job_texts import Item, Job, JobTexts, Run
from exporter.jobs import FAMILIES, IDLE, JOBS, UNNAMED, Chunks, read_block, render
from exporter.node import Node
from exporter.rest import OTHER, Rest
from lustre.text import job_stats
from lustre.text.job_reader import usual

SHOWN: tuple[Family, ...] = FAMILIES[:5]


@dataclass(slots=True)
class Columns:
    """Finished lines of jobs, family by family in the order of ``SHOWN``."""

    chunks: tuple[list[bytes], ...]
    skipped: int

    def add(self, run: Run) -> None:
        """Put the lines of jobs that did nothing."""
        for column, chunks in zip(self.chunks, run.chunks, strict=True):
            column.extend(chunks)
        self.skipped += run.skipped


class Shared:
    """What the jobs of all targets have in common."""

    def __init__(self, context: Context) -> None:
        self.limit = context.settings.jobs_limit
        self.idle_seconds = context.settings.jobs_idle_seconds
        self.wall = context.wall
        self.renderer = Renderer()


class TargetJobs:
    """The jobs of one target, from scrape to scrape."""

    def __init__(self, fs: str, target: str, shared: Shared) -> None:
        self._labels = label_text(fs=fs, target=target)
        self._shared = shared
        self._rest = Rest(shared.limit, self._labels, shared.renderer) if shared.limit else None
        self._texts = JobTexts()

    def collect(self, data: bytes, page: Page) -> int:
        """Put every job on the page; how many lines were not understood."""
        items, skipped = self._texts.read(data)
        shown = self._awake(items)
        jobs, awake = count(items), count(shown)
        page.sample(JOBS, self._labels, jobs)
        page.sample(IDLE, self._labels, jobs - awake)
        if self._rest is not None:
            texts = [item for item in shown if not isinstance(item, Run)]
            named, more = self._rest.divide([data[begin:end] for _, begin, end in texts], page)
            page.sample(UNNAMED, self._labels, awake - len(named))
            shown, skipped = [texts[number] for number in named], skipped + more
        columns = self._columns(data, shown)
        if columns is None:
            columns = self._columns_apart(data, shown if self._rest else self._afresh(data))
        elif self._rest is None:
            self._texts.remember(data, items)
        for family, column in zip(SHOWN, columns.chunks, strict=True):
            page.chunks.setdefault(family, []).extend(column)
        return skipped + columns.skipped

    def _awake(self, items: list[Item]) -> list[Item]:
        """Jobs that did something lately, or do not say when.

        Idle is measured from the job active last, so that a recording shows the same at any time; but not from the
        future, where a server's clock may have been for a while.
        """
        if not self._shared.idle_seconds:
            return items
        newest = max([item.newest if isinstance(item, Run) else item[0].active_at for item in items], default=0)
        since = min(newest, int(self._shared.wall())) - self._shared.idle_seconds
        awake: list[Item] = []
        for item in items:
            if isinstance(item, Run) and item.oldest < since:
                awake += [(job, 0, 0) for job in item.jobs if _is_awake(job, since)]
            elif isinstance(item, Run) or _is_awake(item[0], since):
                awake.append(item)
        return awake

    def _columns(self, data: bytes, items: Sequence[Item]) -> Columns | None:
        """Lines of these jobs, made anew where there are none; None when two of them have the same name."""
        columns = Columns(([], [], [], [], []), 0)
        names: list[bytes] = [OTHER] if self._rest else []
        reads, writes, operations, seconds, sizes = columns.chunks
        for item in items:
            if isinstance(item, Run):
                columns.add(item)
                names += item.names
                continue
            job, begin, end = item
            chunks = job.chunks
            if job.stale or chunks is None:
                job.name, chunks, job.skipped = self._render(data[begin:end])
                job.chunks, job.stale = chunks, False
            read, written, done, took, sized = chunks
            names.append(job.name)
            if read:
                reads.append(read)
            if written:
                writes.append(written)
            operations.append(done)
            seconds.append(took)
            if sized:
                sizes.append(sized)
            columns.skipped += job.skipped
        return columns if len({*names}) == len(names) else None

    def _afresh(self, data: bytes) -> list[Item]:
        """The jobs to show as if there had been no scrape before, and would be none after."""
        self._texts.forget()
        items, _ = self._texts.read(data)
        self._texts.forget()
        return self._awake(items)

    def _columns_apart(self, data: bytes, items: Iterable[Item]) -> Columns:
        """The same of jobs whose ids look alike, or that are listed twice."""
        columns = Columns(([], [], [], [], []), 0)
        taken = {OTHER} if self._rest else set()
        for item in items:
            assert not isinstance(item, Run)
            _, begin, end = item
            name, chunks, skipped = self._render(data[begin:end], taken)
            taken.add(name)
            for column, chunk in zip(columns.chunks, chunks, strict=True):
                column.append(chunk)
            columns.skipped += skipped
        return columns

    def _render(self, text: bytes, taken: Container[bytes] = ()) -> tuple[bytes, Chunks, int]:
        """The job's name and lines, and how many lines of its text were not understood."""
        job = usual(text)
        if job is not None:
            name = unlike(job.job_id, taken)
            chunks = self._shared.renderer.lines(job, b'%b,job="%b"' % (self._labels, name))
            if chunks is not None:
                return name, chunks, 0
        other = read_block(text)
        name = unlike(other.job_id, taken)
        return name, *render(other, b'%b,job="%b"' % (self._labels, name))


def count(items: Sequence[Item]) -> int:
    """How many jobs these are."""
    return sum([len(item.jobs) if isinstance(item, Run) else 1 for item in items])


def _is_awake(job: Job, since: int) -> bool:
    return job.active_at >= since or job.active_at == job_stats.UNKNOWN


def unlike(job_id: bytes, taken: Container[bytes]) -> bytes:
    r"""The id as a label's value, different from those that are taken.

    Ids that are no UTF-8 may look alike once they are. A series must not come twice, so such an id shows its bytes.

    >>> unlike(b"a\xff", set()).decode(), unlike(b"a\xff", {escape(b"a\xfe")}).decode()
    ('a�', 'a\\\\xff')
    """
    name = escape(job_id)
    if name in taken:
        name = escape(job_id.decode("utf-8", "backslashreplace"))
    number = 2
    while name in taken:
        name = escape(job_id.decode("utf-8", "backslashreplace") + f"~{number}")
        number += 1
    return name


def start(context: Context) -> Collect:
    """Begin with nothing read."""
    targets: dict[str, TargetJobs] = {}
    shared = Shared(context)

    def collect(node: Node, page: Page) -> None:
        present = [(kind, name, device) for kind in ("obdfilter", "mdt") for name, device in node.targets(kind)]
        for gone in targets.keys() - {name for _, name, _ in present}:
            del targets[gone]
        for kind, name, device in present:
            data = node.read(kind, name, "job_stats", may_be_empty=True)
            if data is None:
                continue
            if name not in targets:
                targets[name] = TargetJobs(device.fsname, device.target, shared)
            node.skipped(kind, "job_stats", targets[name].collect(data, page))

    return collect


COLLECTOR = Collector("jobs", "what each job did to each target of this node", FAMILIES, start)
