"""Reads a job's block of ``job_stats`` as numbers, for sums over jobs and for jobs with their own series.

``_lines.c`` reads blocks of the usual form (decision 12). ``exporter.jobs.statistics`` reads all other blocks, and all
blocks if the package was built without a C compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from exporter.counters import operation
from exporter.jobs.busiest import Scored
from exporter.jobs.statistics import (
    BYTES,
    IO_SIZE,
    OPERATIONS,
    READ_BYTES,
    SECONDS,
    WRITE_BYTES,
    invalid_sums,
    numbers,
    read_block,
)
from exporter.totals import SeriesKey
from lustre.formats import job_stats

Compiled = Callable[[bytes], tuple[bytes, bytes, int, tuple[int, ...]] | None]
compiled: Compiled | None = None
"""Start time, shape, number of operations and values of a block. None without the C module."""
try:
    from exporter.jobs import _lines
except ImportError:
    pass
else:
    compiled = _lines.numbers

MAX_SHAPES = 4096
OTHER = b"other"
"""The job id of the sum over jobs without their own series. No job is shown under this name."""
_ORDER = {READ_BYTES: 0, WRITE_BYTES: 0, OPERATIONS: 1, SECONDS: 2, IO_SIZE: 3}


Numbers = tuple[bytes, tuple[SeriesKey, ...], tuple[int, ...], int, bool]
"""Start time, keys, values, number of operations, and whether the whole block was understood."""


class NumbersReader:
    """Reads blocks. Jobs with equal keys share one keys object."""

    def __init__(self, quick: Compiled | None = compiled) -> None:
        self._quick = quick
        self._keys: dict[tuple[SeriesKey, ...], tuple[SeriesKey, ...]] = {}
        self._shapes: dict[bytes, tuple[SeriesKey, ...]] = {}
        """Keys by the shape that the C module returns."""

    def read(self, block: bytes) -> tuple[Numbers, int]:
        """Return the counters of a block, and the number of lines that were not fully understood."""
        if self._quick is not None and (found := self._quick(block)) is not None:
            start, shape, operations, values = found
            keys = self._shapes.get(shape)
            if keys is None:
                keys = self._shapes[shape] = self._same(_keys(shape))
            return (start, keys, values, operations, True), 0
        job = read_block(block)
        counted = sorted(numbers(job), key=lambda pair: _ORDER[pair[0][0]])
        keys = self._same(tuple([key for key, _ in counted]))
        values = tuple([value for _, value in counted])
        operations = sum([value for key, value in counted if key[0] is OPERATIONS])
        return (job.start_time, keys, values, operations, not job.skipped), job.skipped + invalid_sums(job)

    def _same(self, keys: tuple[SeriesKey, ...]) -> tuple[SeriesKey, ...]:
        if len(self._keys) >= MAX_SHAPES and keys not in self._keys:
            self._keys.clear()
            self._shapes.clear()
        return self._keys.setdefault(keys, keys)


def _keys(shape: bytes) -> tuple[SeriesKey, ...]:
    r"""Return the keys of the values that the C module returns.

    >>> for key in _keys(b"read_bytes 4096 65536\npunch"): print(key[0].name, *key[1:])
    lustre_job_read_bytes_total b''
    lustre_job_operations_total b',operation="punch"'
    lustre_job_operation_seconds_total b',operation="punch"'
    lustre_job_io_size_bytes b',direction="read"' 4096
    lustre_job_io_size_bytes b',direction="read"' 65536
    """
    *of_bytes, names = shape.split(b"\n")
    tables = [line.split(b" ") for line in of_bytes]
    extras = [operation(name) for name in names.split()]
    return (
        *[(BYTES[name][0], b"") for name, *_ in tables],
        *[(OPERATIONS, extra) for extra in extras],
        *[(SECONDS, extra) for extra in extras],
        *[(IO_SIZE, BYTES[name][2], int(upper)) for name, *bounds in tables for upper in bounds],
    )


class JobCounts(Scored):
    """The counters of a job. ``name`` is the first line of the job's text, which may contain any bytes."""

    __slots__ = ("keys", "operations", "read_at", "start", "unnamed", "values", "whole")

    def __init__(self, first_line: bytes) -> None:
        super().__init__(first_line.decode("latin-1"))
        self.unnamed = (OTHER in first_line or b"\\" in first_line) and self.job_id() == OTHER
        """Whether the job never has its own series."""
        self.read_at = 0
        """The pass in which the job's text last changed."""
        self.start = b""
        self.keys: Sequence[SeriesKey] = ()
        self.values: tuple[int, ...] = ()
        self.whole = True
        self.operations = 0

    def job_id(self) -> bytes:
        return job_stats.job_id(self.name.encode("latin-1"))

    def take(self, numbers: Numbers) -> int:
        """Store new numbers. Returns the number of operations since the previous numbers."""
        before = self.operations
        self.start, self.keys, self.values, self.operations, self.whole = numbers
        return self.operations - before if self.operations >= before else self.operations
