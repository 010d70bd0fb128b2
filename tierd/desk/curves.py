"""Points of curves for reports, one a minute: what streams get, findings that hold, what waits, how full pools are."""

from __future__ import annotations

from collections.abc import Callable

from tierd.act.gate import Gate
from tierd.act.journal import Journal
from tierd.cycle.loop import Daemon
from tierd.model import Room
from tierd.verify import throughput

EVERY_SECONDS = 60.0
KEPT_SECONDS = 90 * 86400.0


class Curves:
    """Writes points into the journal, and forgets the old ones once a day."""

    def __init__(self, journal: Journal, room: Callable[[], Room]) -> None:
        self._journal = journal
        self._room = room
        self._drawn_at = 0.0

    def draw(self, daemon: Daemon, gate: Gate, now: float) -> None:
        """A point of each curve, once a minute; without the file system there is none."""
        if now < self._drawn_at + EVERY_SECONDS:
            return
        try:
            self._journal.sample(points(daemon, gate, self._room()), now)
        except OSError:
            return
        if int(now // 86400) != int(self._drawn_at // 86400):
            self._journal.forget_samples(now - KEPT_SECONDS)
        self._drawn_at = now


def points(daemon: Daemon, gate: Gate, room: Room) -> dict[str, float]:
    """The values now, by series."""
    found = {"findings": float(sum(not f.advice_only for f in daemon.findings)), "waiting moves": float(gate.waiting)}
    for pool, size in room.size_bytes.items():
        if size:
            found[f"pool {pool}"] = 1 - room.avail_bytes[pool] / size
    if daemon.windows:
        victims = {c.finding.victim for c in daemon.cases} | {f.victim for f in daemon.findings if not f.advice_only}
        for victim in victims - {""}:
            rate = throughput(daemon.windows[-1], victim)
            if rate:
                found[f"victim {victim}"] = rate
    return found
