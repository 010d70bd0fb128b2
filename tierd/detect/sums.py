"""Loads of one job on one target, added up window by window."""

from __future__ import annotations

from tierd.model import JobLoad


class Sum:
    """Growing sums."""

    __slots__ = ("_first", "_numbers", "_sizes")

    def __init__(self) -> None:
        self._first: JobLoad | None = None
        """While there is no other: most have one, and it is the sum."""
        self._numbers: list[float] = []
        self._sizes: dict[int, float] = {}

    def add(self, load: JobLoad) -> None:
        """One more."""
        numbers = self._numbers
        if not numbers:
            if self._first is None:
                self._first = load
                return
            self._begin(self._first)
            numbers = self._numbers
        numbers[0] += load.read_bytes
        numbers[1] += load.write_bytes
        numbers[2] += load.reads
        numbers[3] += load.writes
        numbers[4] += load.other_operations
        numbers[5] += load.busy_usec
        sizes = self._sizes
        for upper, count in load.sizes.items():
            sizes[upper] = sizes.get(upper, 0.0) + count

    def _begin(self, load: JobLoad) -> None:
        self._numbers = [load.read_bytes, load.write_bytes, load.reads, load.writes, load.other_operations,
                         load.busy_usec]
        self._sizes = dict(load.sizes)

    def load(self, target: str, job: str) -> JobLoad:
        """All of them together."""
        if self._first is not None and not self._numbers:
            return self._first
        read_bytes, write_bytes, reads, writes, others, busy_usec = self._numbers
        return JobLoad(target, job, read_bytes, write_bytes, reads, writes, others, busy_usec, self._sizes)
