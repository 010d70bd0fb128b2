"""Throughput of targets and jobs over thirty days, in the journal: each minute, and means over longer times with age.

A record has all targets, or the busiest jobs, of one minute: two compressed columns in one row. So a file system with
4,000 targets costs two rows a minute. The names are JSON, because names of jobs may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tierd.act.journal.connection import Row, SharedConnection
from tierd.rates import Point, Rates, mean, names_in, numbers_at

KEPT_SECONDS = {60: 6 * 3600, 300: 86400, 1800: 7 * 86400, 7200: 30 * 86400}
"""How long the records of each length (in seconds) are kept. A choice: 300 to 400 points for each range of the page."""
TARGETS, JOBS = "targets", "jobs"
MAX_JOBS = 500
"""Jobs in a record: those with the most bytes, and those with the most operations."""
Query = Callable[..., Sequence[Row]]
"""Runs a query of the journal, with its values."""


class RateRecords:
    """Writes and removes records."""

    def __init__(self, db: SharedConnection) -> None:
        self._db = db

    def add(self, time: int, rates: Mapping[str, Rates]) -> None:
        """Enter the records of the minute that ends at a time, and those of longer times that have ended with it."""
        with self._db.transaction(durable=False):
            for kind, found in rates.items():
                self._put(min(KEPT_SECONDS), kind, time, found)
                for finer, step in pairwise(KEPT_SECONDS):
                    self._sum_up(kind, finer, step, time // step * step)

    def _sum_up(self, kind: str, finer: int, step: int, end: int) -> None:
        if self._db.execute("SELECT 1 FROM rates WHERE step = ? AND kind = ? AND time = ?", (step, kind, end)):
            return
        parts = [Rates.unpacked(*row) for row in self._db.execute(
            "SELECT names, numbers FROM rates WHERE step = ? AND kind = ? AND time > ? AND time <= ?",
            (finer, kind, end - step, end))]
        if parts:
            found = mean(parts)
            self._put(step, kind, end, found.busiest(MAX_JOBS) if kind == JOBS else found)

    def _put(self, step: int, kind: str, time: int, rates: Rates) -> None:
        self._db.execute("INSERT OR REPLACE INTO rates VALUES (?, ?, ?, ?, ?)", (step, kind, time, *rates.packed()))

    def remove_old(self, now: float, most: int) -> bool:
        """Remove some of the records that are too old; whether there were any."""
        # any() ends at the first length with old records: one portion for each call
        return any(self._db.execute(
            "DELETE FROM rates WHERE rowid IN (SELECT rowid FROM rates WHERE step = ? AND time < ? LIMIT ?)",
            (step, now - kept, most)).rowcount > 0 for step, kept in KEPT_SECONDS.items())


@dataclass(frozen=True, slots=True)
class Moment:
    """The records of one time."""

    time: float
    seconds: float
    """Length of the period that ends at that time."""
    rates: Mapping[str, Rates]
    earlier: float | None
    """Time of the records before; None if there are none."""
    later: float | None


def step_of(age_seconds: float) -> int:
    """Length of the finest records that are kept for this age; beyond every age, of the longest.

    >>> [step_of(hours * 3600) for hours in (1, 6, 24, 7 * 24, 30 * 24, 1e5)]
    [60, 60, 300, 1800, 7200, 7200]
    """
    return next((step for step, kept in KEPT_SECONDS.items() if kept >= age_seconds), max(KEPT_SECONDS))


class RateReader:
    """Queries of the records."""

    def __init__(self, query: Query) -> None:
        self._query = query

    def of_name(self, kind: str, name: str, since: float, until: float, now: float) -> list[Point]:
        """The points of one target or job, oldest first, without times in which its rates are not known. The newest
        records are not yet part of means over longer times.
        """
        steps = [step for step in sorted(KEPT_SECONDS, reverse=True) if step <= step_of(now - since)]
        found: list[Point] = []
        last, names, place, whole = since, b"", -1, True
        # finer ones only from where the longer ones end
        for step in steps:
            for time, packed, numbers in self._query(
                    "SELECT time, names, numbers FROM rates WHERE step = ? AND kind = ? AND time > ? AND time <= ? "
                    "ORDER BY time", step, kind, last, until):
                if packed != names:
                    names, every = packed, names_in(packed)
                    place, whole = every.index(name) if name in every else -1, kind == TARGETS or len(every) < MAX_JOBS
                if place >= 0:
                    found.append((time, *numbers_at(numbers, place)))
                elif whole:
                    found.append((time, 0.0, 0.0, 0.0, 0.0))
                last = time
        return found

    def knows(self, kind: str, name: str) -> bool:
        return any(name in names_in(names) for names, in self._query(
            "SELECT DISTINCT names FROM rates WHERE kind = ?", kind))

    def at(self, time: float) -> Moment | None:
        """The records of a time; else the last before it, else the first. None without any."""
        rows = self._query("SELECT step, time FROM rates WHERE time - step < ? AND time >= ? ORDER BY step LIMIT 1",
                           time, time) or self._query(
            "SELECT step, time FROM rates WHERE time < ? ORDER BY time DESC, step LIMIT 1", time) or self._query(
            "SELECT step, time FROM rates ORDER BY time, step LIMIT 1")
        if not rows:
            return None
        (step, at), = rows
        (earlier, later), = self._query("SELECT (SELECT max(time) FROM rates WHERE time <= ?), "
                                        "(SELECT min(time) FROM rates WHERE time > ?)", at - step, at)
        found = self._query("SELECT kind, names, numbers FROM rates WHERE step = ? AND time = ?", step, at)
        return Moment(at, step, {kind: Rates.unpacked(*row) for kind, *row in found}, earlier, later)
