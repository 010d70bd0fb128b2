"""Jobs of the usual form, quickly: a template for each set of counters instead of work for each counter.

What is shown is what ``exporter.jobs`` shows of the same block; a test compares. Whatever is unusual is left to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from exporter.counters import CLIPPED, operation
from exporter.families import INFINITY, Histogram, seconds
from exporter.jobs import IO_SIZE, OPERATIONS, READ_BYTES, SECONDS, WRITE_BYTES, Lines, bounds_of
from exporter.rpcs import READ, WRITE
from exporter.totals import AnyKey
from lustre.text.job_stats import Usual, bucket_rows, buckets

_LABELS = b"\0"
"""Stands in a template for fs, target and job."""
_BYTES = {b"read_bytes": (READ_BYTES, READ), b"write_bytes": (WRITE_BYTES, WRITE)}
MOST_FORMS = 4096


@dataclass(frozen=True, slots=True)
class _Form:
    """One set of counters: first those of bytes, then operations, all of them timed."""

    of_bytes: tuple[tuple[bool, bytes, bytes], ...]
    """Of each counter of bytes: whether it is of reads, the template of its line, its direction."""
    operations: bytes
    seconds: bytes
    keys: tuple[AnyKey, ...]
    """Sums of bytes, operations, seconds."""


class Renderer:
    """Keeps the templates of all jobs of a node."""

    def __init__(self) -> None:
        self._forms: dict[tuple[tuple[bytes, ...], tuple[bytes, ...]], _Form | None] = {}
        self._sizes: dict[tuple[bytes, tuple[bytes, ...], tuple[bytes, ...]], bytes | None] = {}

    def lines(self, job: Usual, labels: bytes) -> Lines | None:
        """Finished lines under these labels; None when something about the job is unusual after all."""
        form = self._form(job)
        if form is None:
            return None
        reads = writes = sizes = b""
        for (is_read, template, direction), total, text in zip(form.of_bytes, job.sums, job.histograms, strict=False):
            line = template % total
            reads, writes = (line, writes) if is_read else (reads, line)
            if b":" in text:
                table = self._table(direction, text, total)
                if table is None:
                    return None
                sizes += table
        skip = len(form.of_bytes)
        operations = form.operations % job.samples[skip:]
        times = form.seconds % tuple(map(seconds, job.sums[skip:]))
        return Lines(
            (
                reads.replace(_LABELS, labels),
                writes.replace(_LABELS, labels),
                operations.replace(_LABELS, labels),
                times.replace(_LABELS, labels),
                sizes.replace(_LABELS, labels),
            ),
            0,
        )

    def numbers(self, job: Usual) -> tuple[tuple[AnyKey, ...], tuple[int, ...]] | None:
        """The same in numbers, for sums over jobs."""
        form = self._form(job)
        if form is None:
            return None
        skip = len(form.of_bytes)
        values = [*map(int, job.sums[:skip]), *map(int, job.samples[skip:]), *map(int, job.sums[skip:])]
        keys = form.keys
        for (_, _, direction), text in zip(form.of_bytes, job.histograms, strict=False):
            if b":" in text:
                bounds, counts = bounds_of(buckets(text))
                keys += tuple([(IO_SIZE, direction, upper) for upper in bounds])
                values += counts
        return keys, tuple(values)

    def _form(self, job: Usual) -> _Form | None:
        if CLIPPED in job.sums:
            return None
        shape = job.names, job.units
        try:
            return self._forms[shape]
        except KeyError:
            if len(self._forms) >= MOST_FORMS:
                self._forms.clear()
            return self._forms.setdefault(shape, _form(*shape))

    def _table(self, direction: bytes, text: bytes, total: bytes) -> bytes | None:
        rows = bucket_rows(text)
        if not rows:
            return None
        sizes, scales, counts = zip(*rows, strict=True)
        shape = direction, sizes, scales
        try:
            template = self._sizes[shape]
        except KeyError:
            if len(self._sizes) >= MOST_FORMS:
                self._sizes.clear()
            template = self._sizes.setdefault(shape, _table(direction, text))
        if template is None:
            return None
        counted = tuple(accumulate(map(int, counts)))
        return template % (*counted, counted[-1], total, counted[-1])


def _form(names: tuple[bytes, ...], units: tuple[bytes, ...]) -> _Form | None:
    skip = units.count(b"bytes")
    operations = names[skip:]
    if b"bytes" in units[skip:] or len(set(names)) < len(names) or _BYTES.keys() & set(operations):
        return None
    if not all(name in _BYTES for name in names[:skip]):
        return None
    of_bytes = tuple([
        (name == b"read_bytes", family.template(_LABELS), direction)
        for name in names[:skip]
        for family, direction in (_BYTES[name],)
    ])  # fmt: skip
    return _Form(
        of_bytes,
        b"".join([OPERATIONS.template(_LABELS, operation(name)) for name in operations]),
        b"".join([SECONDS.template(_LABELS, operation(name)) for name in operations]),
        (
            *((_BYTES[name][0], b"") for name in names[:skip]),
            *((OPERATIONS, operation(name)) for name in operations),
            *((SECONDS, operation(name)) for name in operations),
        ),
    )


def _table(direction: bytes, text: bytes) -> bytes | None:
    """The template of a histogram with sum and count; None when its buckets are not in order, each once."""
    read = buckets(text)
    bounds, _ = bounds_of(read)
    if len(bounds) != len(read) or sorted(read) != list(read) or bounds[-1] == INFINITY:
        return None
    return _with_sum(IO_SIZE, _LABELS + direction, bounds)


def _with_sum(family: Histogram, labels: bytes, bounds: tuple[float, ...]) -> bytes:
    name = family.name.encode()
    total = b"%b_sum{%b} %%b\n%b_count{%b} %%d\n" % (name, labels, name, labels)
    return family.buckets_template(labels, bounds) + total
