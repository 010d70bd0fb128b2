"""What each job got, second by second, as the application itself would log it."""

from __future__ import annotations

from collections import defaultdict


class Throughput:
    """Bytes per job and second.

    >>> log = Throughput()
    >>> log.add("ior.1002", 0.5, 4_000_000); log.add("ior.1002", 2.1, 1_000_000)
    >>> log.per_second("ior.1002", 0, 3)
    [4.0, 0.0, 1.0]
    """

    def __init__(self) -> None:
        self._bytes: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))

    def add(self, job_id: str, now: float, size_bytes: int) -> None:
        """A call of the application returned."""
        self._bytes[job_id][int(now)] += size_bytes

    def jobs(self) -> tuple[str, ...]:
        """Everybody who moved a byte."""
        return tuple(self._bytes)

    def per_second(self, job_id: str, since: float, until: float) -> list[float]:
        """MB/s (10^6 bytes) in each whole second from ``since`` up to ``until``."""
        seconds = self._bytes.get(job_id, {})
        return [seconds.get(second, 0) / 1e6 for second in range(int(since), int(until))]

    def mean(self, job_id: str, since: float, until: float) -> float:
        """MB/s over an interval."""
        samples = self.per_second(job_id, since, until)
        return sum(samples) / len(samples) if samples else 0.0
