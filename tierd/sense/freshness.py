"""Checks whether a source may be used: its data must be recent, and its clock must be right.

tierd does not act on a source that is stale, nor on targets that a reading lacks.

>>> SourceAge("prometheus", 980.0, 90.0, now=1000.0).state
'20 s old'
>>> SourceAge("prometheus", 800.0, 90.0, now=1000.0).state
'200 s old, and must be no older than 90 s'
>>> SourceAge("prometheus", 980.0, 90.0, now=1000.0, problem="connection refused").state
'20 s old: connection refused'
>>> SourceAge("robinhood", None, 90.0, now=1000.0).state
'nothing yet'
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Generic, Protocol, TypeVar

from tierd.clock import Clock
from tierd.model import UNSEEN
from tierd.sense.changelogs.follow import ChangelogError
from tierd.sense.changelogs.packed import Records
from tierd.sense.changelogs.tallies import Tally
from tierd.sense.http_client import SourceError
from tierd.sense.readings import Reading
from tierd.text import first_names, utc_text


@dataclass(frozen=True, slots=True)
class SourceAge:
    """The time of the last data of one source, and its problem, as of one moment."""

    name: str
    """``exporters``, ``prometheus``, ``changelog MDT0000``, …: few and fixed, because it is a label of metrics."""
    seen_at: float | None
    """Time of its last data, by its own clock where it gives one; epoch seconds. None: no data yet."""
    limit_seconds: float
    now: float
    """The moment."""
    problem: str = ""
    """The present problem, or ""."""
    note: str = ""
    """A remark for status."""

    @property
    def age_seconds(self) -> float:
        """Age of the last data; infinite without data. A source ahead of this node's clock is 0 s old."""
        return inf if self.seen_at is None else max(0.0, self.now - self.seen_at)

    @property
    def stale(self) -> bool:
        """Whether tierd must not act on the source."""
        return bool(self.problem) or self.age_seconds > self.limit_seconds

    @property
    def state(self) -> str:
        """Text for status."""
        age = self.age_seconds
        old = "nothing yet" if age == inf else f"{age:.0f} s old"
        limit = f", and must be no older than {self.limit_seconds:g} s" if self.limit_seconds < age < inf else ""
        return old + (f": {self.problem}" if self.problem else limit) + (f"; {self.note}" if self.note else "")


Source = TypeVar("Source")


class Checked(Generic[Source]):
    """A source whose data are checked before they are used."""

    def __init__(self, name: str, source: Source, clock: Clock, stale_seconds: float, skew_seconds: float,
                 note: Callable[[], str] = str) -> None:
        """``note`` adds a remark to the state of the source."""
        self._name = name
        self._source = source
        self._clock = clock
        self._stale_seconds = stale_seconds
        self._skew_seconds = skew_seconds
        self._note = note
        self._last: float | None = None
        """Time of its last data."""
        self._problem = ""

    @property
    def age(self) -> SourceAge:
        """The source with the time of its last data and its present problem."""
        return SourceAge(self._name, self._last, self._stale_seconds, self._clock.now(), self._problem,
                         note=self._note())


FORGET_SECONDS = 3600.0
"""A target missing for this long counts as removed."""


class CheckedReadings(Checked[Callable[[], Reading]]):
    """Checks that counters are recent and plausible before they are used, and marks targets that are missing."""

    def __init__(self, name: str, read: Callable[[], Reading], clock: Clock, stale_seconds: float,
                 skew_seconds: float, note: Callable[[], str] = str) -> None:
        super().__init__(name, read, clock, stale_seconds, skew_seconds,
                         note=lambda: "; ".join(filter(None, (self._missing, note()))))
        self._missing = ""
        self._seen: dict[str, float] = {}
        """Time of the last reading of each target, by this node's clock."""
        self._entries: Collection[tuple[str, str]] = ()
        """Targets and jobs of the last reading."""

    def __call__(self) -> Reading:
        """A checked reading. Missing targets have the condition ``UNSEEN``. Raises OSError with the problem."""
        try:
            reading = self._source()
            missing = self._check(reading)
        except OSError as error:
            self._problem = str(error)
            raise
        self._problem, self._last = "", reading.time
        self._entries = reading.jobs.keys()
        return replace(reading, conditions={**reading.conditions, **dict.fromkeys(missing, UNSEEN)})

    @property
    def jobs(self) -> frozenset[str]:
        return frozenset(job for _, job in self._entries)

    def _check(self, reading: Reading) -> list[str]:
        now = self._clock.now()
        if not reading.targets:
            raise SourceError(f"{self._name}: no target is seen at all: check that the servers are scraped, or that "
                              "this node is one, and the name of the file system")
        if (ahead := reading.time - now) > self._skew_seconds:
            raise SourceError(f"{self._name}: {ahead:.0f} s ahead of this node's clock: repair the time service")
        if now - reading.time > self._stale_seconds:
            raise SourceError(f"{self._name}: stale: its samples are {now - reading.time:.0f} s old, and must "
                              f"be no older than {self._stale_seconds:g} s")
        self._forward(reading.time)
        return self._missing_from(reading, now)

    def _forward(self, time: float) -> None:
        """Reject samples older than the last. A large step back resets the checks, as the clock was changed."""
        back = (self._last or time) - time
        if back > self._stale_seconds:
            self._last = None
            self._seen.clear()
            raise SourceError(f"{self._name}: time went back by {back:.0f} s: the history of streams can no longer be "
                              "used")
        if back > 0:
            raise SourceError(f"{self._name}: its samples are {back:.0f} s older than the samples before: waiting "
                              "for newer ones")

    def _missing_from(self, reading: Reading, now: float) -> list[str]:
        """Targets of earlier readings that this one lacks, without those that are forgotten."""
        self._seen.update(dict.fromkeys(reading.targets, now))
        self._seen = {target: at for target, at in self._seen.items() if at >= now - FORGET_SECONDS}
        missing = sorted(self._seen.keys() - reading.targets)
        self._missing = (f"without {first_names(missing)}, not seen since {utc_text(self._seen[missing[0]])}: tierd "
                         "finds nothing there, and forgets a removed target after an hour or at a restart"
                         if missing else "")
        return missing


class RecordSource(Protocol):
    """A source of changelog records: a follower of changelogs, its replacement in single-client mode, or readers."""

    def batches(self) -> Iterable[Records | Tally]:
        """Records since the last call, in batches. Raises OSError at the end if some could not be read."""


class CheckedRecords(Checked[RecordSource]):
    """Checks that records are not from the future, and keeps the time of the last complete read."""

    _ahead_seconds, _ahead_at = 0.0, -inf
    """How far the first records from the future were ahead of this node's clock, and when the last ones came."""

    def batches(self) -> Iterator[Records | Tally]:
        """Records since the last call. Raises OSError at the end if some were unreadable, or lately from the future."""
        try:
            for batch in self._source.batches():
                if (ahead := batch.newest_time - self._clock.now()) > self._skew_seconds:
                    self._ahead_seconds, self._ahead_at = self._ahead_seconds or ahead, self._clock.now()
                yield batch
                del batch  # its memory is used for the next one
            # after all of them: records count in any case, and acts wait; a read without records proves no clock
            if 0 <= self._clock.now() - self._ahead_at < self._stale_seconds:
                raise ChangelogError(f"{self._name}: records from {self._ahead_seconds:.0f} s ahead of this node's "
                                     "clock: repair the time service; how long files have been closed is unknown")
            self._ahead_seconds = 0.0
        except OSError as error:
            self._problem = str(error)
            raise
        self._problem, self._last = "", self._clock.now()
