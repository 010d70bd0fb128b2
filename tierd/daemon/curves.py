"""Curves: throughput of slowed streams, findings, waiting moves, use of the pools.

For reports, the journal gets one sample a minute, and one whenever a finding begins or ends. When a stream is found
slow, its throughput of the minutes before is sampled too, for comparison. For the page, memory has the throughput of
slowed streams in each window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from threading import Lock

from tierd.act.gate import Gate
from tierd.act.journal.writer import Journal
from tierd.daemon.loop import Daemon
from tierd.daemon.report import SAMPLE_SECONDS
from tierd.model import Capacity, Window
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

    def draw(self, daemon: Daemon, gate: Gate, now: float) -> None:
        """Add a point to each curve if one is due. Adds none while the file system does not answer."""
        holding = frozenset(f.key for f in daemon.findings if not f.advice_only)
        if now < self._drawn_at + SAMPLE_SECONDS and holding == self._holding:
            return
        try:
            drawn = curve_points(daemon, gate, self._room())
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


def curve_points(daemon: Daemon, gate: Gate, room: Capacity) -> dict[str, float]:
    """The present values by series."""
    found = {"findings": float(sum(not f.advice_only for f in daemon.findings)), "waiting moves": float(gate.waiting)}
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


Curve = tuple[tuple[float, float], ...]
"""Time and bytes per second of each window."""
Stream = tuple[str, frozenset[str]]
"""A job, and the targets on which its throughput counts."""
MAX_POINTS = 360
"""Windows of a curve in memory: half an hour at cycles of five seconds."""
MAX_STREAMS = 50


class StreamCurves:
    """Throughput of slowed streams in each window of the last minutes, in memory. Safe in any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._points: dict[Stream, deque[tuple[float, float]]] = {}
        self._curves: Mapping[Stream, Curve] = {}
        self._last = 0.0
        """End of the last window."""

    def updated(self, windows: Sequence[Window], streams: Collection[Stream]) -> Mapping[Stream, Curve]:
        """The curves of these streams, with the windows that are new. A new stream gets its past too."""
        kept = dict.fromkeys(list(streams)[:MAX_STREAMS])
        with self._lock:
            last = windows[-1].end if windows else 0.0
            if self._points.keys() == kept.keys() and last == self._last:
                return self._curves
            before, self._points = self._points, {}
            for stream in kept:
                points = self._points[stream] = before.get(stream, deque(maxlen=MAX_POINTS))
                since = self._last if points else float("-inf")
                points.extend((w.end, throughput_on(w, *stream)) for w in windows[-MAX_POINTS:] if w.end > since)
            self._last = last
            self._curves = {stream: tuple(points) for stream, points in self._points.items()}
            return self._curves


def throughput_on(window: Window, job: str, targets: Iterable[str]) -> float:
    """Bytes per second of a job in a window, on these targets."""
    loads = (window.loads.get((target, job)) for target in targets)
    return sum(load.moved_bytes / window.seconds_of(load.target) for load in loads if load is not None)
