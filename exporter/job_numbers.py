"""A job's block in numbers, for sums over jobs and for lines of the few that are shown.

``_job_lines.c`` does it where the package was built with a C compiler at hand (decision 12); whatever is unusual is
left to ``exporter.job_lines``, and what is unusual there to ``exporter.jobs``. All three give the same.
"""

from __future__ import annotations

from collections.abc import Callable

from exporter.counters import operation
from exporter.job_lines import MOST_FORMS, Renderer
from exporter.jobs import BYTES, IO_SIZE, OPERATIONS, READ_BYTES, SECONDS, WRITE_BYTES, read_block, sums_left_out
from exporter.jobs import numbers as numbers_of
from exporter.read_outs import AnyKey
from lustre.formats.job_reader import usual

Compiled = Callable[[bytes], tuple[bytes, bytes, int, tuple[int, ...]] | None]
compiled: Compiled | None = None
"""Since when it counts, what, how many operations, and how much of each; given a block. None: it was not built."""
try:
    from exporter._job_lines import numbers as _compiled_numbers
except ImportError:
    pass
else:
    compiled = _compiled_numbers

_ORDER = {READ_BYTES: 0, WRITE_BYTES: 0, OPERATIONS: 1, SECONDS: 2, IO_SIZE: 3}


Numbers = tuple[bytes, tuple[AnyKey, ...], tuple[int, ...], int, bool]
"""Since when a job counts, what, and how much; how many operations that is; whether the block has nothing else."""


class NumbersReader:
    """Keeps what the jobs of a node count."""

    def __init__(self, renderer: Renderer, quick: Compiled | None = compiled) -> None:
        self._renderer = renderer
        self._quick = quick
        self._keys: dict[tuple[AnyKey, ...], tuple[AnyKey, ...]] = {}
        self._shapes: dict[bytes, tuple[AnyKey, ...]] = {}
        """The same by what the compiled part says they are."""

    def read(self, block: bytes) -> tuple[Numbers, int]:
        """The job of a block, and how many lines were not understood, or only in part.

        Of jobs that count the same the keys are the same object.
        """
        if self._quick is not None and (found := self._quick(block)) is not None:
            start, shape, operations, values = found
            keys = self._shapes.get(shape)
            if keys is None:
                keys = self._shapes[shape] = self._same(_keys(shape))
            return (start, keys, values, operations, True), 0
        job = usual(block)
        quick = None if job is None else self._renderer.numbers(job)
        if job is not None and quick is not None:
            keys, values = quick
            return (job.start_time, self._same(keys), values, sum(map(int, job.samples)), True), 0
        return self._read_long(block)

    def _read_long(self, block: bytes) -> tuple[Numbers, int]:
        job = read_block(block)
        counted = sorted(numbers_of(job), key=lambda pair: _ORDER[pair[0][0]])
        keys = self._same(tuple([key for key, _ in counted]))
        values = tuple([value for _, value in counted])
        operations = sum([value for key, value in counted if key[0] is OPERATIONS])
        return (job.start_time, keys, values, operations, not job.skipped), job.skipped + sums_left_out(job)

    def _same(self, keys: tuple[AnyKey, ...]) -> tuple[AnyKey, ...]:
        if len(self._keys) >= MOST_FORMS and keys not in self._keys:
            self._keys.clear()
            self._shapes.clear()
        return self._keys.setdefault(keys, keys)


def _keys(shape: bytes) -> tuple[AnyKey, ...]:
    r"""What the values are that the compiled part gives.

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
