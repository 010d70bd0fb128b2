"""A job in numbers, as long as the target has statistics of it."""

from __future__ import annotations

from collections.abc import Sequence

from exporter.busiest import Scored
from exporter.job_numbers import Numbers
from exporter.read_outs import AnyKey
from lustre.formats import job_stats

OTHER = b"other"
"""What the sum of the jobs that are not shown by themselves is called; no job is shown under that name."""


class Counted(Scored):
    """What a job's text last said. Its name is the first line of the text, whatever bytes that holds."""

    __slots__ = ("keys", "operations", "read_at", "start", "unnamed", "values", "whole")

    def __init__(self, first_line: bytes) -> None:
        super().__init__(first_line.decode("latin-1"))
        self.unnamed = (OTHER in first_line or b"\\" in first_line) and self.job_id() == OTHER
        """Never shown by itself."""
        self.read_at = 0
        """The pass in which its text was another than before."""
        self.start = b""
        self.keys: Sequence[AnyKey] = ()
        self.values: tuple[int, ...] = ()
        self.whole = True
        self.operations = 0

    def job_id(self) -> bytes:
        """As the application set it."""
        return job_stats.job_id(self.name.encode("latin-1"))

    def take(self, numbers: Numbers) -> int:
        """The job is as these numbers say; how many operations it did since."""
        before = self.operations
        self.start, self.keys, self.values, self.operations, self.whole = numbers
        return self.operations - before if self.operations >= before else self.operations
