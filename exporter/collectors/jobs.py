"""What each job did to each target of this node: ``obdfilter.*.job_stats``, ``mdt.*.job_stats``.

Job ids are what the administrator chose (``jobid_var``), and may hold anything. A job idle since the last scrape has
the same block of text, byte for byte, and keeps its lines.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from exporter.collector import Collect, Collector, Context
from exporter.families import Family, Page, escape, label_text
from exporter.job_lines import Renderer
from exporter.jobs import FAMILIES, IDLE, JOBS, UNNAMED, Lines, read_block, render
from exporter.node import Node
from exporter.rest import OTHER, Rest
from lustre.text import header, job_stats

SHOWN: tuple[Family, ...] = FAMILIES[:5]


class _Shown(NamedTuple):
    """A job as it was rendered: its name, its lines, and when it last did something."""

    name: bytes
    lines: Lines
    active_at: int


class Shared:
    """What the jobs of all targets have in common."""

    def __init__(self, context: Context) -> None:
        self.limit = context.settings.jobs_limit
        self.idle_seconds = context.settings.jobs_idle_seconds
        self.wall = context.wall
        self.renderer = Renderer()
        self.zeros = job_stats.Zeros()


class TargetJobs:
    """The jobs of one target, from scrape to scrape."""

    def __init__(self, fs: str, target: str, shared: Shared) -> None:
        self._labels = label_text(fs=fs, target=target)
        self._shared = shared
        self._rest = Rest(shared.limit, self._labels, shared.renderer, shared.zeros) if shared.limit else None
        self._cache: dict[int, _Shown] = {}
        """By the hash of the block; the text itself would be most of the exporter's memory."""

    def collect(self, data: bytes, page: Page) -> int:
        """Put every job on the page; how many lines were not understood."""
        every = job_stats.split(data)
        blocks = self._awake(every) if self._shared.idle_seconds else every
        page.sample(JOBS, self._labels, len(every))
        page.sample(IDLE, self._labels, len(every) - len(blocks))
        skipped = odd_lines(data)
        if self._rest is not None:
            named, more = self._rest.divide(blocks, page)
            page.sample(UNNAMED, self._labels, len(blocks) - len(named))
            blocks, skipped = named, skipped + more
        return skipped + self._put(blocks, page)

    def _awake(self, blocks: list[bytes]) -> list[bytes]:
        """Jobs that did something lately, or do not say when.

        Idle is measured from the job active last, so that a recording shows the same at any time; but not from the
        future, where a server's clock may have been for a while.
        """
        cache = self._cache
        times = [cache[hash(b)].active_at if hash(b) in cache else job_stats.active_at(b) for b in blocks]
        newest = min(max(times, default=0), int(self._shared.wall()))
        since = newest - self._shared.idle_seconds
        return [block for block, at in zip(blocks, times, strict=True) if at >= since or at == job_stats.UNKNOWN]

    def _put(self, blocks: list[bytes], page: Page) -> int:
        kept: dict[int, _Shown] = {}
        taken: set[bytes] = {OTHER} if self._rest else set()
        reads, writes, operations, times, sizes = [page.chunks.setdefault(family, []) for family in SHOWN]
        skipped = 0
        cache = self._cache
        for block in blocks:
            key = hash(block)
            known = cache.get(key)
            if known is None or known.name in taken:
                known = self._render(block, taken)
            kept[key] = known
            taken.add(known.name)
            read, written, done, took, sized = known.lines.chunks
            skipped += known.lines.skipped
            if read:
                reads.append(read)
            if written:
                writes.append(written)
            operations.append(done)
            times.append(took)
            if sized:
                sizes.append(sized)
        self._cache = kept
        return skipped

    def _render(self, block: bytes, taken: set[bytes]) -> _Shown:
        active_at = job_stats.active_at(block)
        usual = self._shared.zeros.usual(block)
        if usual is not None:
            name = unlike(usual.job_id, taken)
            lines = self._shared.renderer.lines(usual, b'%b,job="%b"' % (self._labels, name))
            if lines is not None:
                return _Shown(name, lines, active_at)
        job = read_block(block)
        name = unlike(job.job_id, taken)
        return _Shown(name, render(job, b'%b,job="%b"' % (self._labels, name)), active_at)


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


def odd_lines(data: bytes) -> int:
    """Lines outside any job that are not the heading, and a last one cut short."""
    begin = data.find(b"- job_id:")
    while begin > 0 and data[begin - 1 : begin] != b"\n":
        begin = data.find(b"- job_id:", begin + 1)
    outside = data if begin < 0 else data[:begin]
    cut = begin >= 0 and not data.endswith(b"\n")
    return cut + header.skipped_lines(outside, outside.splitlines().count(b"job_stats:"))


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
