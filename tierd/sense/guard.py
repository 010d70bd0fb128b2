"""Whether a reading may be believed: recent, of all targets, by a clock that goes forward. Keeps the source's age."""

from __future__ import annotations

from collections.abc import Callable

from tierd.clock import Clock
from tierd.sense.access import SourceError
from tierd.sense.ages import SourceAge
from tierd.sense.readings import Reading

FORGET_SECONDS = 3600.0
"""A target that was not seen for so long is gone for good: no history of it is compared with any more."""


class Guard:
    """Between a source of counters and whoever believes them."""

    def __init__(self, name: str, read: Callable[[], Reading], clock: Clock, stale_seconds: float,
                 skew_seconds: float) -> None:
        self._name = name
        self._read = read
        self._clock = clock
        self._stale_seconds = stale_seconds
        self._skew_seconds = skew_seconds
        self._seen: dict[str, float] = {}
        """Target to when it was seen last, by our clock."""
        self._last: float | None = None
        self._trouble = ""
        self.jobs: frozenset[str] = frozenset()
        """Jobs of the last reading."""

    def __call__(self) -> Reading:
        """A reading that may be believed. Raises OSError with what is wrong."""
        try:
            reading = self._read()
            self._check(reading)
        except OSError as error:
            self._trouble = str(error)
            raise
        self._trouble = ""
        self._last = reading.time
        self.jobs = frozenset(job for _, job in reading.jobs)
        return reading

    @property
    def age(self) -> SourceAge:
        """The source, as it stands."""
        return SourceAge(self._name, self._last, self._stale_seconds, self._trouble)

    def _check(self, reading: Reading) -> None:
        now = self._clock.now()
        if not reading.targets:
            raise SourceError(f"{self._name}: no target is seen at all: is this a server's node, or the right "
                              "exporters, or the right file system name?")
        if reading.time > now + self._skew_seconds:
            raise SourceError(f"{self._name}: its samples are {reading.time - now:.0f} s ahead of our clock")
        if now - reading.time > self._stale_seconds:
            raise SourceError(f"{self._name}: stale: its samples are {now - reading.time:.0f} s old, and may be "
                              f"{self._stale_seconds:g} s old")
        self._forward(reading.time)
        self._complete(reading, now)

    def _forward(self, time: float) -> None:
        """Time must not go back: after a little it is waited for, after much everything is learnt anew."""
        back = (self._last or time) - time
        if back > self._stale_seconds:
            self._last = None
            self._seen.clear()
            raise SourceError(f"{self._name}: time went back by {back:.0f} s; what was learnt is of no use now")
        if back > 0:
            raise SourceError(f"{self._name}: its samples are {back:.0f} s older than those before: later ones are "
                              "waited for")

    def _complete(self, reading: Reading, now: float) -> None:
        self._seen.update(dict.fromkeys(reading.targets, now))
        missing = sorted(self._seen.keys() - reading.targets)
        for target in [t for t in missing if self._seen[t] < now - FORGET_SECONDS]:
            missing.remove(target)
            del self._seen[target]
        if missing:
            names = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
            raise SourceError(f"{self._name}: {names} not to be seen for {now - self._seen[missing[0]]:.0f} s: "
                              "half a view is none. A target that was removed for good is forgotten after an hour, or "
                              "at a restart")
