"""Curves: throughput of slowed streams, findings, waiting moves, use of the pools.

For reports, the journal gets one sample a minute, and one whenever a finding begins or ends. When a stream is found
slow, its throughput of the minutes before is sampled too, for comparison. A case has its own curve besides, with more
points, so that its chart outlives a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tierd.act.journal.reader import CASE_SERIES
from tierd.act.journal.writer import Journal
from tierd.daemon.answers import Case
from tierd.daemon.loop import Daemon
from tierd.daemon.report import SAMPLE_SECONDS
from tierd.model import Capacity
from tierd.verify.judgement import throughput

BEFORE_SECONDS = 300.0
"""Part of a stream's past that is sampled when the stream is found slow."""
CASE_SECONDS = 10.0
"""Time between two points of the curve of a case, in its first quarter of an hour. A choice: 60 rows in ten minutes."""


class CurveSampler:
    """Writes points into the journal."""

    def __init__(self, journal: Journal, room: Callable[[], Capacity]) -> None:
        self._journal = journal
        self._room = room
        self._drawn_at = 0.0
        self._holding: frozenset[tuple[str, str, str]] = frozenset()
        self._victims: frozenset[str] = frozenset()
        self._last: dict[int, float] = {}
        """Time of the last stored point of each case."""

    def draw(self, daemon: Daemon, cases: Sequence[Case], now: float) -> None:
        holding = frozenset(f.key for f in daemon.findings if not f.advice_only)
        if now < self._drawn_at + SAMPLE_SECONDS and holding == self._holding:
            return
        try:
            drawn = curve_points(daemon, self._room())
        except OSError:
            return
        victims = victims_of(daemon)
        with self._journal.transaction():
            for victim in victims - self._victims:
                for at, rate in points_before(daemon, victim, now):
                    self._journal.add_samples({f"victim {victim}": rate}, at)
            self._journal.add_samples(drawn, now)
            last = {}
            for case in cases:
                number = case.finding or 0
                last[number] = self._last.get(number, 0.0)
                for at, rate in lacking_points(case, last[number]):
                    self._journal.add_samples({f"{CASE_SERIES}{number}": rate}, at)
                    last[number] = at
        self._last = last
        self._holding, self._victims = holding, victims
        self._drawn_at = now


def curve_points(daemon: Daemon, room: Capacity) -> dict[str, float]:
    found = {"findings": float(sum(not f.advice_only for f in daemon.findings)),
             "waiting moves": float(daemon.parts.gate.waiting)}
    for pool, size in room.size_bytes.items():
        if size:
            found[f"pool {pool}"] = 1 - room.avail_bytes[pool] / size
    if daemon.windows:
        for victim in victims_of(daemon):
            rate = throughput(daemon.windows[-1], victim)
            if rate:
                found[f"victim {victim}"] = rate
    return found


def lacking_points(case: Case, since: float) -> Iterator[tuple[float, float]]:
    """The points of its curve that are to be stored, after a time."""
    for at, rate in case.curve:
        if at >= since + max(CASE_SECONDS, (at - case.since) / 90):  # charts have hardly more points
            yield at, rate
            since = at


def victims_of(daemon: Daemon) -> frozenset[str]:
    """Streams that are slowed, or were when something was done about it."""
    return frozenset({c.finding.victim for c in daemon.cases}
                     | {f.victim for f in daemon.findings if not f.advice_only}) - {""}


def points_before(daemon: Daemon, victim: str, now: float) -> list[tuple[float, float]]:
    """When it got how much in the last minutes; the present window is left out."""
    lately = [window for window in daemon.windows[:-1] if now - BEFORE_SECONDS <= window.end < now]
    return [(window.end, rate) for window in lately if (rate := throughput(window, victim))]
