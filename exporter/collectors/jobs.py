"""What each job did to each target of this node: ``obdfilter.*.job_stats``, ``mdt.*.job_stats``.

Job ids are what the administrator chose (``jobid_var``), and may hold anything. A job idle since the last scrape has
the same block of text, byte for byte, and keeps its lines.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from exporter.collector import Collect, Collector, Context
from exporter.families import Family, Page, escape, label_text
from exporter.job_lines import Renderer
from exporter.job_texts import Item, Job, JobTexts, Run
from exporter.jobs import FAMILIES, IDLE, JOBS, UNNAMED, Chunks, read_block, render
from exporter.node import Node
from exporter.rest import OTHER, Rest
from lustre.text import job_stats

Read = Callable[[Callable[[bytes], None]], bool]
"""Reads the file through, and hands its pieces to what it is given; False when there is none."""
SHOWN: tuple[Family, ...] = FAMILIES[:5]


@dataclass(slots=True)
class Columns:
    """Finished lines of jobs, family by family in the order of ``SHOWN``."""

    chunks: tuple[list[bytes], ...]
    skipped: int
    jobs: int = 0

    def add_one(self, name: bytes, chunks: Chunks, skipped: int, taken: set[bytes]) -> None:
        """Put the lines of a job, whose name is taken from now on."""
        taken.add(name)
        for column, chunk in zip(self.chunks, chunks, strict=True):
            column.append(chunk)
        self.skipped += skipped
        self.jobs += 1

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
        self._shown: dict[int, tuple[bytes, Chunks, int]] = {}
        """With a limit, what the busiest showed, by the hash of their text."""
        self._texts = JobTexts(self._show)
        self._since = 0
        """Jobs that have done nothing since then are idle."""

    def collect(self, read: Read, page: Page) -> int | None:
        """Put every job on the page; how many lines were not understood, or None when the file is not there."""
        if self._rest is not None:
            return self._collect_some(read, self._rest, page)
        self._texts.begin(self._since)
        if not read(self._texts.take):
            return None
        items, skipped = self._texts.end()
        columns = self._columns(self._awake(items))
        if columns is None:
            return self._collect_apart(read, page)
        self._put(page, count(items), columns)
        return skipped + columns.skipped

    def _collect_apart(self, read: Read, page: Page) -> int | None:
        """The same from a second reading, when ids look alike, a job is listed twice, or one has no lines yet."""
        whole = _whole(read)
        if whole is None:
            return None
        self._texts.forget()
        columns = Columns(([], [], [], [], []), 0)
        taken: set[bytes] = set()
        _, _, skipped = job_stats.extent(whole)
        texts = job_stats.split(whole)
        for text in self._awake_texts(texts):
            columns.add_one(*self._render(text, taken), taken)
        self._put(page, len(texts), columns)
        return skipped + columns.skipped

    def _collect_some(self, read: Read, rest: Rest, page: Page) -> int | None:
        """The same of the busiest, the others summed."""
        whole = _whole(read)
        if whole is None:
            return None
        _, _, skipped = job_stats.extent(whole)
        texts = job_stats.split(whole)
        awake = self._awake_texts(texts)
        named, more = rest.divide(awake, page)
        columns = Columns(([], [], [], [], []), 0)
        taken = {OTHER}
        shown: dict[int, tuple[bytes, Chunks, int]] = {}
        for text in [awake[number] for number in named]:
            known = self._shown.get(hash(text))
            if known is None or known[0] in taken:
                known = self._render(text, taken)
            shown[hash(text)] = known
            columns.add_one(*known, taken)
        self._shown = shown
        self._put(page, len(texts), columns, len(awake))
        page.sample(UNNAMED, self._labels, len(awake) - len(named))
        return skipped + more + columns.skipped

    def _put(self, page: Page, jobs: int, columns: Columns, awake: int | None = None) -> None:
        page.sample(JOBS, self._labels, jobs)
        page.sample(IDLE, self._labels, jobs - (columns.jobs if awake is None else awake))
        for family, column in zip(SHOWN, columns.chunks, strict=True):
            page.chunks.setdefault(family, []).extend(column)

    def _awake(self, items: list[Item]) -> list[Item]:
        """Jobs that did something lately, or do not say when.

        Idle is measured from the job active last, so that a recording shows the same at any time; but not from the
        future, where a server's clock may have been for a while.
        """
        if not self._shared.idle_seconds:
            return items
        self._since = self._idle_since([item.newest if isinstance(item, Run) else item.active_at for item in items])
        awake: list[Item] = []
        for item in items:
            if isinstance(item, Run) and item.oldest < self._since:
                awake += [job for job in item.jobs if _is_awake(job.active_at, self._since)]
            elif isinstance(item, Run) or _is_awake(item.active_at, self._since):
                awake.append(item)
        return awake

    def _awake_texts(self, texts: list[bytes]) -> list[bytes]:
        """The same of texts."""
        if not self._shared.idle_seconds:
            return texts
        times = list(map(job_stats.active_at, texts))
        since = self._idle_since(times)
        return [text for text, at in zip(texts, times, strict=True) if _is_awake(at, since)]

    def _idle_since(self, times: Iterable[int]) -> int:
        return min(max(times, default=0), int(self._shared.wall())) - self._shared.idle_seconds

    def _columns(self, items: Sequence[Item]) -> Columns | None:
        """Lines of these jobs; None when two of them have the same name, or one has no lines."""
        columns = Columns(([], [], [], [], []), 0)
        names: list[bytes] = []
        reads, writes, operations, seconds, sizes = columns.chunks
        for item in items:
            if isinstance(item, Run):
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
        """Make a job's lines."""
        job.name, job.chunks, job.skipped = self._render(text)
        job.stale = False

    def _render(self, text: bytes, taken: Container[bytes] = ()) -> tuple[bytes, Chunks, int]:
        """The job's name and lines, and how many lines of its text were not understood."""
        found = self._shared.renderer.block(text, self._labels)
        if found is not None and found[0] not in taken:
            return *found, 0
        other = read_block(text)
        name = unlike(other.job_id, taken)
        return name, *render(other, b'%b,job="%b"' % (self._labels, name))


def count(items: Iterable[Item]) -> int:
    """How many jobs these are."""
    return sum([len(item.jobs) if isinstance(item, Run) else 1 for item in items])


def _is_awake(active_at: int, since: int) -> bool:
    return active_at >= since or active_at == job_stats.UNKNOWN


def _whole(read: Read) -> bytes | None:
    pieces: list[bytes] = []
    return b"".join(pieces) if read(pieces.append) else None


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
            if name not in targets:
                targets[name] = TargetJobs(device.fsname, device.target, shared)
            skipped = targets[name].collect(partial(node.read_through, kind, name, "job_stats"), page)
            node.skipped(kind, "job_stats", skipped or 0)

    return collect


COLLECTOR = Collector("jobs", "what each job did to each target of this node", FAMILIES, start)
