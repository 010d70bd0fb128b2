"""The busiest jobs of a target keep series of their own, the others are summed: ``--jobs.limit``.

Busy is what a job does now: every scrape halves what earlier ones counted for it. The sum of the others only grows:
what a job did while it was shown by itself never enters it, and what it did before stays in.
"""

from __future__ import annotations

from dataclasses import dataclass

from exporter.families import Page
from exporter.job_lines import Renderer
from exporter.jobs import OPERATIONS, SUMS, numbers, read_block
from exporter.ledger import Ledger
from exporter.totals import AnyKey, put_totals
from lustre.text.job_reader import usual

OTHER = b"other"
_GROUP = "other"
"""Also the job of that name: its series is taken."""
MOST_SHAPES = 4096


@dataclass(frozen=True, slots=True)
class _Seen:
    """A job's block, in numbers."""

    member: str
    start: bytes
    keys: tuple[AnyKey, ...]
    values: tuple[int, ...]
    operations: int
    skipped: int


class Rest:
    """Divides a target's jobs into those shown and the rest."""

    def __init__(self, limit: int, labels: bytes, renderer: Renderer) -> None:
        self._renderer = renderer
        self._limit = limit
        self._labels = b'%b,job="%b"' % (labels, OTHER)
        self._ledger: Ledger[str, AnyKey] = Ledger()
        self._seen: dict[int, _Seen] = {}
        """By the hash of the block; the text itself would be most of the exporter's memory."""
        self._keys: dict[tuple[AnyKey, ...], tuple[AnyKey, ...]] = {}
        self._busy: dict[str, tuple[float, int]] = {}
        """How busy a job is, and its operations at the last scrape."""

    def divide(self, blocks: list[bytes], page: Page) -> tuple[list[int], int]:
        """Which of the blocks to show, in order, and lines not understood in the rest, which is put on the page."""
        seen: dict[int, _Seen] = {}
        text: dict[str, int] = {}
        for number, block in enumerate(blocks):
            mark = hash(block)
            job = self._seen.get(mark) or self._read(block)
            if job.member not in text:  # a job listed twice would look like one that starts anew all the time
                seen[mark], text[job.member] = job, number
        self._rank(list(seen.values()))
        busiest = sorted(text.keys() - {_GROUP}, key=lambda member: (*self._busy[member], member))
        shown = set(busiest[-self._limit :])
        self._ledger.begin({member: None if member in shown else _GROUP for member in text})
        for key, job in seen.items():
            if key not in self._seen:
                self._ledger.credit(job.member, job.start, job.keys, job.values, whole=not job.skipped)
        self._seen = seen
        put_totals(page, self._labels, self._ledger.totals(_GROUP), SUMS)
        skipped = sum([job.skipped for job in seen.values() if job.member not in shown])
        return [number for member, number in text.items() if member in shown], skipped + len(blocks) - len(text)

    def _read(self, block: bytes) -> _Seen:
        job = usual(block)
        quick = None if job is None else self._renderer.numbers(job)
        if job is not None and quick is not None:
            return self._of(job.job_id, job.start_time, *quick, 0)
        return self._read_long(block)

    def _read_long(self, block: bytes) -> _Seen:
        job = read_block(block)
        counted = list(numbers(job))
        keys = tuple([key for key, _ in counted])
        return self._of(job.job_id, job.start_time, keys, tuple([value for _, value in counted]), job.skipped)

    def _of(
        self, job_id: bytes, start: bytes, keys: tuple[AnyKey, ...], values: tuple[int, ...], skipped: int
    ) -> _Seen:
        if len(self._keys) > MOST_SHAPES:
            self._keys.clear()
        operations = sum([value for key, value in zip(keys, values, strict=True) if key[0] is OPERATIONS])
        member = job_id.decode("utf-8", "surrogateescape")
        return _Seen(member, start, self._keys.setdefault(keys, keys), values, operations, skipped)

    def _rank(self, jobs: list[_Seen]) -> None:
        busy: dict[str, tuple[float, int]] = {}
        for job in jobs:
            score, before = self._busy.get(job.member, (0.0, 0))
            growth = job.operations - before if job.operations >= before else job.operations
            busy[job.member] = (score / 2 + growth, job.operations)
        self._busy = busy
