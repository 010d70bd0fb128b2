"""Job ids as they stand in records, and the tallies of each by directory: one look-up for each of most records.

What is remembered of a directory holds while paths are what they were.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from lustre.fid import Fid
from tierd.sense.paths import PathCache
from tierd.sense.tallies import Tallies, Tally


@dataclass(slots=True, eq=False)
class Job:
    """What is the same for all records of a job."""

    name: str
    tagged: bool
    """Whether its records may be our own."""
    places: dict[Fid, Tally] = field(default_factory=dict)
    """Its tallies by directory; some may have fallen out of the table."""


class JobPlaces:
    """No more of them than there may be tallies, or twice as many places."""

    def __init__(self, known: Tallies, path: PathCache, tags: Collection[str]) -> None:
        self._known = known
        self._path = path
        self._tags = tags
        self.by_id: dict[bytes, Job] = {}
        self._places = 0
        """Of all of them together."""
        self.changes = 0
        """Of paths, when places were forgotten last: with others they hold no more."""

    def anew(self, job_id: bytes) -> Job:
        """A job that was not heard of lately."""
        if len(self.by_id) >= self._known.max_tallies:
            self.by_id.clear()
            self._places = 0
        name = job_id.decode("utf-8", "replace")
        job = self.by_id[job_id] = Job(name, name in self._tags)
        return job

    def tally_in(self, job: Job, directory: Fid, time: float) -> Tally:
        """Of a job in a directory by its FID, which is remembered."""
        if self._path.changes != self.changes or self._places >= 2 * self._known.max_tallies:
            for each in self.by_id.values():
                each.places.clear()
            self.changes, self._places = self._path.changes, 0
        tally = job.places[directory] = self._known.tally(job.name, self._path.place(directory), time)
        self._places += 1
        return tally
