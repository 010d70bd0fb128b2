"""What the daemon listens to: readings from one kind of source, and the changelogs. Each states how old it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Protocol

from lustre.changelog.record import Record
from lustre.parameters import Tree
from tierd.clock import Clock
from tierd.sense import local
from tierd.sense.access import Access
from tierd.sense.ages import SourceAge
from tierd.sense.follow import ChangelogError
from tierd.sense.http import Client
from tierd.sense.readings import Reading
from tierd.sense.recording import Recording
from tierd.sense.scrape import Exporters

_time = attrgetter("time")


class Records(Protocol):
    """A follower of changelogs, or what stands in for one."""

    def batches(self) -> Iterable[Sequence[Record]]:
        """Records since the last call, so many at a time. Raises OSError at the end when some could not be had."""


class LiveSource:
    """A way to read counters, and a follower of changelogs."""

    def __init__(self, read: Callable[[], Reading], follower: Records, recording: Recording | None = None) -> None:
        self._read = read
        self.follower = follower
        self._recording = recording

    def reading(self) -> Reading:
        """Counters now. Raises OSError when they cannot be had."""
        reading = self._read()
        if self._recording is not None:
            self._recording.shown(reading.changelogs)
        return reading

    def records(self) -> Iterator[Record]:
        """Records since the last call. Raises OSError at the end when some could not be had."""
        return chain.from_iterable(self.follower.batches())


class AgedRecords:
    """Records of a follower that must not come from the future, and when they were last had."""

    def __init__(self, name: str, follower: Records, clock: Clock, stale_seconds: float, skew_seconds: float,
                 note: Callable[[], str] = str) -> None:
        """``note`` says what else is to be known of the source."""
        self._name = name
        self._note = note
        self._follower = follower
        self._clock = clock
        self._stale_seconds = stale_seconds
        self._skew_seconds = skew_seconds
        self._read_at: float | None = None
        self._trouble = ""

    def batches(self) -> Iterator[Sequence[Record]]:
        """Records since the last call. Raises OSError at the end when some could not be had or cannot be."""
        ahead = 0.0
        try:
            for batch in self._follower.batches():
                ahead = max(ahead, max(map(_time, batch), default=0.0) - self._clock.now())
                yield batch
            if ahead > self._skew_seconds:
                raise ChangelogError(f"{self._name}: records from {ahead:.0f} s ahead of our clock: mend the time "
                                     "service; how long files have been closed cannot be told")
        except OSError as error:
            self._trouble = str(error)
            raise
        self._trouble, self._read_at = "", self._clock.now()

    @property
    def age(self) -> SourceAge:
        """The source, as it stands."""
        return SourceAge(self._name, self._read_at, self._stale_seconds, self._trouble, self._note())


def scraping(urls: Sequence[str], clock: Clock, timeout_seconds: float) -> Exporters:
    """Readings over HTTP from a fixed list. Half a view is none: one exporter that does not answer is an error."""
    def fixed() -> Sequence[str]:
        return urls

    return Exporters(fixed, Client(Access(), timeout_seconds), clock, timeout_seconds, float("inf"))


def local_files(tree: Tree, clock: Clock) -> Callable[[], Reading]:
    """Readings from the parameter files of this node."""
    return lambda: local.reading(tree, clock.now())
