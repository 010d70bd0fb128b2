"""Curves: throughput of slowed streams, findings, waiting moves, use of the pools.

For reports, the journal gets one sample a minute, and one whenever a finding begins or ends. When a stream is found
slow, its throughput of the minutes before is sampled too, for comparison.
"""

from __future__ import annotations

from collections.abc import Callable

from tierd.act.journal.writer import Journal
from tierd.daemon.loop import Daemon
from tierd.daemon.report import SAMPLE_SECONDS
from tierd.model import Capacity
from tierd.verify.judgement import throughput

BEFORE_SECONDS = 300.0
"""Part of a stream's past that is sampled when the stream is found slow."""


class CurveSampler:
    """Writes points into the journal."""

    def __init__(self, journal: Journal, room: Callable[[], Capacity]) -> None:
        self._journal = journal
        self._room = room
        self._drawn_at = 0.0
        self._holding: frozenset[tuple[str, str, str]] = frozenset()
        self._victims: frozenset[str] = frozenset()

    def draw(self, daemon: Daemon, now: float) -> None:
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


def victims_of(daemon: Daemon) -> frozenset[str]:
    """Streams that are slowed, or were when something was done about it."""
    return frozenset({c.finding.victim for c in daemon.cases}
                     | {f.victim for f in daemon.findings if not f.advice_only}) - {""}


def points_before(daemon: Daemon, victim: str, now: float) -> list[tuple[float, float]]:
    """When it got how much in the last minutes; the present window is left out."""
    lately = [window for window in daemon.windows[:-1] if now - BEFORE_SECONDS <= window.end < now]
    return [(window.end, rate) for window in lately if (rate := throughput(window, victim))]
