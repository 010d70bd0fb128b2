"""Points of curves for reports, one a minute: what streams get, findings that hold, what waits, how full pools are."""

from __future__ import annotations

from tierd.act.gate import Gate
from tierd.loop import Daemon
from tierd.model import Room
from tierd.verify import throughput

EVERY_SECONDS = 60.0
KEPT_SECONDS = 90 * 86400.0


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
