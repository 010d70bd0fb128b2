"""Jobs of the usual form, quickly: a template for each set of counters instead of work for each counter.

What is shown is what ``exporter.jobs`` shows of the same block; a test compares. Whatever is unusual is left to it.
Where the package was built with a C compiler at hand, ``_job_lines.c`` does the same again in a quarter of the time
(decision 12).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from exporter.bounds import INFINITY
from exporter.counters import CLIPPED, operation
from exporter.jobs import IO_SIZE, OPERATIONS, READ_BYTES, SECONDS, WRITE_BYTES, Chunks, bounds_of
from exporter.read_outs import AnyKey
from exporter.rpcs import READ, WRITE
from exporter.text_format import escape, in_seconds
from lustre.formats.job_reader import Usual, usual
from lustre.formats.job_stats import buckets

compiled: Callable[[bytes, bytes, tuple[bytes, ...]], tuple[bytes, Chunks] | None] | None = None
"""The id as a label's value, and lines; given a block, label text and names of families. None: it was not built."""
try:
    from exporter import _job_lines
except ImportError:
    pass
else:
    compiled = _job_lines.lines

_LABELS = b"\0"
"""Stands in a template for fs, target and job."""
_BYTES = {b"read": (READ_BYTES, READ), b"write": (WRITE_BYTES, WRITE)}
_BUCKET = re.compile(rb"\d{1,20}[KMGT]?")
_AS_WORDS = bytes.maketrans(b":,", b"  ")
MOST_FORMS = 4096
_NAMES = tuple([family.name.encode() for family in (READ_BYTES, WRITE_BYTES, OPERATIONS, SECONDS, IO_SIZE)])


@dataclass(frozen=True, slots=True)
class _Form:
    """One set of counters: first those of bytes, then operations, all of them timed."""

    reads: bytes
    writes: bytes
    operations: bytes
    seconds: bytes
    keys: tuple[AnyKey, ...]
    """Sums of bytes, operations, seconds."""


class Renderer:
    """Keeps the templates of all jobs of a node."""

    def __init__(self) -> None:
        self._forms: dict[tuple[int, tuple[bytes, ...]], _Form | None] = {}
        self._sizes: dict[tuple[bytes, ...], bytes | None] = {}

    def block(self, text: bytes, labels: bytes) -> tuple[bytes, Chunks] | None:
        """The job's id as a label's value, and finished lines under these labels (fs and target) and the job's.

        None when something about the job is unusual.
        """
        if compiled is not None and (found := compiled(text, labels, _NAMES)) is not None:
            return found
        job = usual(text)
        if job is None:
            return None
        name = escape(job.job_id)
        chunks = self.lines(job, b'%b,jobid="%b"' % (labels, name))
        return None if chunks is None else (name, chunks)

    def lines(self, job: Usual, labels: bytes) -> Chunks | None:
        """Finished lines under these labels; None when something about the job is unusual after all."""
        form = self._form(job)
        if form is None:
            return None
        _, _, of_bytes, _, samples, sums = job
        reads = writes = sizes = b""
        for direction, total, hist in of_bytes:
            if direction == b"read":
                reads = form.reads % total
            else:
                writes = form.writes % total
            if b":" in hist:
                table = self._table(direction, hist, total)
                if table is None:
                    return None
                sizes += table
        return (
            reads and reads.replace(_LABELS, labels),
            writes and writes.replace(_LABELS, labels),
            (form.operations % samples).replace(_LABELS, labels),
            (form.seconds % (*in_seconds(sums),)).replace(_LABELS, labels),
            sizes and sizes.replace(_LABELS, labels),
        )

    def numbers(self, job: Usual) -> tuple[tuple[AnyKey, ...], tuple[int, ...]] | None:
        """The same in numbers, for sums over jobs."""
        form = self._form(job)
        if form is None:
            return None
        values = tuple(map(int, (*[total for _, total, _ in job.of_bytes], *job.samples, *job.sums)))
        keys = form.keys
        for direction, _, hist in job.of_bytes:
            if b":" in hist:
                bounds, counts = bounds_of(buckets(hist))
                keys += tuple([(IO_SIZE, _BYTES[direction][1], upper) for upper in bounds])
                values += counts
        return keys, values

    def _form(self, job: Usual) -> _Form | None:
        of_bytes = job.of_bytes
        shape = (*job.names, *[direction for direction, _, _ in of_bytes])
        try:
            form = self._forms[len(of_bytes), shape]
        except KeyError:
            if len(self._forms) >= MOST_FORMS:
                self._forms.clear()
            form = _form(shape[len(job.names) :], job.names)
            self._forms[len(of_bytes), shape] = form
        if form is None or CLIPPED in job.sums or [0 for _, total, _ in of_bytes if total == CLIPPED]:
            return None
        return form

    def _table(self, direction: bytes, hist: bytes, total: bytes) -> bytes | None:
        words = hist.translate(_AS_WORDS).split()
        sizes = (direction, *words[::2])
        try:
            template = self._sizes[sizes]
        except KeyError:
            if len(self._sizes) >= MOST_FORMS:
                self._sizes.clear()
            template = self._sizes.setdefault(sizes, _table(direction, hist, words))
        if template is None:
            return None
        try:
            counted = (*accumulate(map(int, words[1::2])),)
            return template % (*counted, counted[-1], total, counted[-1])
        except (ValueError, TypeError):  # no number, or no number for a bucket
            return None


def _form(of_bytes: tuple[bytes, ...], names: tuple[bytes, ...]) -> _Form | None:
    if len(set(names)) < len(names) or len(set(of_bytes)) < len(of_bytes) or {b"read_bytes", b"write_bytes"} & {*names}:
        return None
    extras = [operation(name) for name in names]
    return _Form(
        READ_BYTES.template(_LABELS),
        WRITE_BYTES.template(_LABELS),
        b"".join([OPERATIONS.template(_LABELS, extra) for extra in extras]),
        b"".join([SECONDS.template(_LABELS, extra) for extra in extras]),
        (
            *((_BYTES[direction][0], b"") for direction in of_bytes),
            *((OPERATIONS, extra) for extra in extras),
            *((SECONDS, extra) for extra in extras),
        ),
    )  # fmt: skip


def _table(direction: bytes, hist: bytes, words: list[bytes]) -> bytes | None:
    """The template of a histogram with sum and count; None when its buckets are not in order, each once."""
    read = buckets(hist)
    bounds, _ = bounds_of(read)
    if len(bounds) != len(read) or sorted(read) != list(read) or bounds[-1:] == (INFINITY,):
        return None
    if 2 * len(read) != len(words) or not all(map(_BUCKET.fullmatch, words[::2])):
        return None
    labels = _LABELS + _BYTES[direction][1]
    name = IO_SIZE.name.encode()
    total = b"%b_sum{%b} %%b\n%b_count{%b} %%d\n" % (name, labels, name, labels)
    return IO_SIZE.buckets_template(labels, bounds) + total
