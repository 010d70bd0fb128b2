"""What each job did to each target of this node: ``obdfilter.*.job_stats``, ``mdt.*.job_stats``.

Job ids are what the administrator chose (``jobid_var``), and may hold anything. A job idle since the last scrape has
the same block of text, byte for byte, and keeps its lines.
"""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.families import Family, Page, escape, label_text
from exporter.jobs import FAMILIES, JOBS, UNNAMED, Lines, read_block, render
from exporter.node import Node
from exporter.rest import OTHER, Rest
from lustre.text import header, job_stats

SHOWN: tuple[Family, ...] = FAMILIES[:5]


class TargetJobs:
    """The jobs of one target, from scrape to scrape."""

    def __init__(self, fs: str, target: str, limit: int) -> None:
        self._labels = label_text(fs=fs, target=target)
        self._rest = Rest(limit, self._labels) if limit else None
        self._cache: dict[int, tuple[bytes, Lines]] = {}
        """By the hash of the block; the text itself would be most of the exporter's memory."""

    def collect(self, data: bytes, page: Page) -> int:
        """Put every job on the page; how many lines were not understood."""
        blocks = job_stats.split(data)
        page.sample(JOBS, self._labels, len(blocks))
        skipped = odd_lines(data)
        if self._rest is not None:
            named, more = self._rest.divide(blocks, page)
            page.sample(UNNAMED, self._labels, len(blocks) - len(named))
            blocks, skipped = named, skipped + more
        return skipped + self._put(blocks, page)

    def _put(self, blocks: list[bytes], page: Page) -> int:
        kept: dict[int, tuple[bytes, Lines]] = {}
        taken: set[bytes] = {OTHER} if self._rest else set()
        lists = [page.chunks.setdefault(family, []) for family in SHOWN]
        skipped = 0
        for block in blocks:
            key = hash(block)
            known = self._cache.get(key)
            if known is None or known[0] in taken:
                known = self._render(block, taken)
            kept[key] = known
            taken.add(known[0])
            skipped += known[1].skipped
            for chunks, chunk in zip(lists, known[1].chunks, strict=True):
                if chunk:
                    chunks.append(chunk)
        self._cache = kept
        return skipped

    def _render(self, block: bytes, taken: set[bytes]) -> tuple[bytes, Lines]:
        job = read_block(block)
        name = unlike(job.job_id, taken)
        return name, render(job, b'%b,job="%b"' % (self._labels, name))


def unlike(job_id: bytes, taken: set[bytes]) -> bytes:
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

    def collect(node: Node, page: Page) -> None:
        present = [(kind, name, device) for kind in ("obdfilter", "mdt") for name, device in node.targets(kind)]
        for gone in targets.keys() - {name for _, name, _ in present}:
            del targets[gone]
        for kind, name, device in present:
            data = node.read(kind, name, "job_stats", may_be_empty=True)
            if data is None:
                continue
            if name not in targets:
                targets[name] = TargetJobs(device.fsname, device.target, context.settings.jobs_limit)
            node.skipped(kind, "job_stats", targets[name].collect(data, page))

    return collect


COLLECTOR = Collector("jobs", "what each job did to each target of this node", FAMILIES, start)
