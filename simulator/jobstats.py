"""``job_stats`` of one target: who did what there. A job that is idle for the cleanup interval is forgotten."""

from __future__ import annotations

from simulator.tally import Histogram, Shape, Stats

CLEANUP_SECONDS = 600.0
JOB_ID_BYTES_MAX = 31


class JobEntry:
    """One job on one target."""

    __slots__ = ("histograms", "job_id", "latest", "stats")

    def __init__(self, job_id: str, shape: Shape, now: float) -> None:
        self.job_id = job_id
        self.stats = Stats(shape, now)
        self.latest = now
        self.histograms = {name: Histogram() for name, unit, _ in shape if unit == "bytes"}


class JobStats:
    """Entries in the order in which the jobs came."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._entries: dict[str, JobEntry] = {}

    def tally(self, job_id: str, name: str, value: int, now: float) -> None:
        """One operation of a job; none is kept for an empty job id."""
        self.bulk(job_id, name, 1, value, now)

    def bulk(self, job_id: str, name: str, samples: int, value: int, now: float) -> None:
        """Several operations of a job, all of the same size."""
        if not job_id or samples <= 0:
            return
        entry = self._entries.get(job_id)
        if entry is None or now - entry.latest > CLEANUP_SECONDS:
            self._entries.pop(job_id, None)
            entry = self._entries[job_id] = JobEntry(job_id[:JOB_ID_BYTES_MAX], self._shape, now)
        entry.latest = now
        entry.stats[name].bulk(samples, value)
        if name in entry.histograms:
            entry.histograms[name].tally_log2(value, samples)

    def entries(self, now: float) -> tuple[JobEntry, ...]:
        """What the file shows; forgets what is due."""
        for job_id in [job_id for job_id, entry in self._entries.items() if now - entry.latest > CLEANUP_SECONDS]:
            del self._entries[job_id]
        return tuple(self._entries.values())
