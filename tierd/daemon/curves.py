"""What the journal records over time: curves of cases, and the rates of targets and jobs.

The curve of a case has more points than the rates of each minute, so that its chart outlives a restart.
"""

from __future__ import annotations

from collections.abc import Sequence

from tierd.act.journal.rates import JOBS, KEPT_SECONDS, MAX_JOBS, TARGETS
from tierd.act.journal.reader import CASE_SERIES, JournalReader
from tierd.act.journal.writer import Journal
from tierd.daemon.answers import Case
from tierd.daemon.loop import Daemon
from tierd.daemon.status import throughput_of, time_of_curve
from tierd.model import Window
from tierd.rates import mean_rates

CASE_SECONDS = 10.0
"""Time between two points of the curve of a case, in its first quarter of an hour. A choice: 60 rows in ten minutes."""
MAX_STREAMS = 50
"""Cases with a curve."""
MINUTE_SECONDS = min(KEPT_SECONDS)


class Sampler:
    """Writes points and rates into the journal, once a minute. For one thread."""

    def __init__(self, journal: Journal, reader: JournalReader) -> None:
        self._journal, self._reader = journal, reader
        self._last: dict[int, float] = {}
        """Time of the last stored point of the case with a number."""
        self._minute: float | None = None
        """Number of the minute that has not ended yet, since the epoch."""
        self._seen_until = 0.0
        """End of the last window that is part of a record."""

    def _stored(self, case: Case, windows: Sequence[Window]) -> float:
        """Store the newest points of a curve; charts have hardly more. Returns the time of the last one."""
        last = self._last.get(case.finding)
        if last is None:  # a new case, or one from before a restart
            stored = self._reader.curve(case.finding, *time_of_curve(case))
            last = stored[-1][0] if stored else 0.0
        for at, rate in throughput_of(case, windows, last):
            if at >= last + max(CASE_SECONDS, (at - case.since) / 90):
                self._journal.add_samples({f"{CASE_SERIES}{case.finding}": rate}, at)
                last = at
        return last

    def record(self, daemon: Daemon, cases: Sequence[Case], now: float) -> None:
        """Enter the minute that has just ended, and the points of curves until then; nothing until one has."""
        before, self._minute = self._minute, now // MINUTE_SECONDS
        if before in {None, self._minute}:
            return
        windows, always = daemon.windows, victims_of(daemon)
        with self._journal.transaction(durable=False):
            drawn = [case for case in cases if case.victim][:MAX_STREAMS]
            self._last = {case.finding: self._stored(case, windows) for case in drawn}
        since = self._seen_until if self._seen_until <= now else 0.0  # else the clock was set back
        new = [window for window in windows if max(since, now - 2 * MINUTE_SECONDS) < window.end <= now]
        if new:
            self._seen_until = new[-1].end
            self._journal.rates.add(int(self._minute * MINUTE_SECONDS), {
                TARGETS: mean_rates(new, 0), JOBS: mean_rates(new, 1).busiest(MAX_JOBS, always)})


def victims_of(daemon: Daemon) -> frozenset[str]:
    """Streams that are slowed, or were when something was done about it."""
    return frozenset({c.finding.victim for c in daemon.store}
                     | {f.victim for f in daemon.findings if not f.advice_only}) - {""}
