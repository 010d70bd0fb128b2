"""Reads the counters of one cycle and the changelog records since the last; reports what cannot be seen or believed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from lustre.changelog.record import Record
from tierd.clock import Clock
from tierd.cycle.tally import Tally
from tierd.cycle.telling import Telling
from tierd.model import Window
from tierd.sense.ears import Ears
from tierd.sense.readings import IMPLAUSIBLE, UNKNOWN_RECOVERY, Reading, is_ost, window
from tierd.text import quoted, some

LONG_CYCLES, LONG_SECONDS = 10.0, 60.0
"""A window longer than both is no ordinary one."""


FEW, SAMPLE = 4, 100
"""Counters of jobs: of no more than the first, all may end at once; so many are looked at."""


class Source(Protocol):
    """Where readings come from."""

    def reading(self) -> Reading:
        """Counters now. Raises OSError when they cannot be had: then nothing is known and nothing is done."""

    def records(self) -> Iterable[Record]:
        """Changelog records since the last call."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look, of sources that answer."""

    time: float
    window: Window | None
    """None where nothing was counted anew since the last look."""


class Looking:
    """Holds the last reading, which the next is compared with.

    Of two readings the older is let go before anybody thinks: on a large file system each takes as much memory as all
    of the history.
    """

    def __init__(self, source: Source, ears: Ears, telling: Telling, clock: Clock, tally: Tally,
                 cycle_seconds: float, unnamed: Callable[[], str] = str) -> None:
        """``unnamed`` says why jobs have no names, where that is known."""
        self._source = source
        self._ears = ears
        self._telling = telling
        self._clock = clock
        self._tally = tally
        self._cycle_seconds = cycle_seconds
        self._unnamed = unnamed
        self._last: Reading | None = None
        self.blind = False
        """Whether the last look saw nothing at all."""

    def look(self) -> Seen | None:
        """One look at the counters; None when there is nothing to compare with."""
        try:
            reading = self._source.reading()
        except OSError as error:
            self._last, self.blind = None, True  # what happens meanwhile will not be guessed
            self._telling.fault("blind", f"blind: {error}; nothing is done until it can be seen again")
            return None
        self.blind = False
        self._telling.fault("blind", "")
        self._tell_what_is_hidden(reading)
        last, self._last = self._last, reading
        if last is None:
            return None
        self._tell_jump(reading.time - last.time)
        if reading.time < last.time:
            return None
        if reading.time == last.time:  # Prometheus has not scraped again: nothing new, but what waits goes on
            return Seen(reading.time, None)
        self._telling.fault("jobs", "hardly any job of the last look is left, by its name: what comes and goes is "
                            "compared with nothing" if few_left(last, reading) else "")
        seen = window(last, reading)
        lying = sorted(t for t, condition in seen.conditions.items() if condition == IMPLAUSIBLE)
        self._telling.fault("counters", f"{len(lying)} targets ({', '.join(map(quoted, lying[:3]))}, …): their "
                            "counters make no sense; nothing is found on them" if lying else "")
        return Seen(reading.time, seen)

    def take_in_records(self, until: float) -> None:
        """Take in the changelog records since the last call; catch up with missed ones until that time."""
        now = self._clock.now()
        missed = self._ears.listen(self._source.records(), until)
        self._tally.records += self._ears.heard
        self._tally.changelog_lag_seconds = max(0.0, now - self._ears.oldest)
        self._telling.fault("changelog", missed and f"{missed}; findings are told, nothing new is done about them")
        if self._ears.caught_up:
            self._telling.say(self._ears.caught_up)

    def _tell_what_is_hidden(self, reading: Reading) -> None:
        """Say which targets tell nothing, and what no target tells."""
        self._telling.fault("names", "" if reading.jobs else self._unnamed())
        self._telling.fault("metadata", "" if not all(map(is_ost, reading.targets)) else
                            "no metadata target is seen: who works on small files is not known. The sources must show "
                            "the metadata servers too")
        unseen = sorted(t for t, condition in reading.conditions.items() if condition == UNKNOWN_RECOVERY)
        self._telling.fault("recovery", f"{len(unseen)} targets ({', '.join(unseen[:3])}, …): whether they recover "
                            "is not to be seen; nothing is found on them" if unseen else "")
        ill = {t: why for t, why in reading.conditions.items() if why != UNKNOWN_RECOVERY}
        self._telling.fault("targets", f"{some(sorted(ill))}: {', '.join(sorted(set(ill.values())))}; nothing is found "
                            "there" if ill else "")

    def _tell_jump(self, passed: float) -> None:
        """Say it when time did not pass as it should: detectors then have nothing, or little, to compare with."""
        if passed < -self._cycle_seconds:
            what = f"the clock went back by {-passed:.0f} s"
        elif passed > max(LONG_CYCLES * self._cycle_seconds, LONG_SECONDS):
            what = f"{passed:.0f} s lie between two looks: a clock was set, or a cycle took long"
        else:
            return
        self._telling.say(f"{what}. What streams usually get may have to be learnt anew: a neighbour that comes "
                          "before that is found only after it has been away")


def few_left(before: Reading, now: Reading) -> bool:
    """Whether less than a quarter of the counters there were are there now: an exporter that loses or renames them."""
    sample = list(islice(before.jobs, 0, None, max(1, len(before.jobs) // SAMPLE)))
    return len(sample) > FEW and sum(key in now.jobs for key in sample) < len(sample) / 4
