"""Answers made of the published view: status, findings, advice, and what ``tierctl top`` shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tierd.act.gate import Gate
from tierd.as_json import finding_json
from tierd.config import Settings
from tierd.cycle.loop import Daemon
from tierd.desk.board import View
from tierd.model import Finding
from tierd.reasons import REMEDIES, Refusal
from tierd.service.activities import ActivityState

STALLED_SECONDS = 60.0
"""Moves that wait without any that ends for so long are reported, with the reason."""


def status(view: View, gate: Gate, settings: Settings, orders: int, now: float) -> dict[str, Any]:
    """The state of the daemon."""
    acted_on = [f for f in view.findings if not f.advice_only]
    return {
        "time": now, "mode": settings.act.mode, "scopes": [{"path": s.path, "mode": s.mode} for s in settings.scopes],
        "dry_run": settings.act.dry_run, **stance(gate),
        "faults": dict(view.faults), "findings": [f.sentence for f in acted_on],
        "finding_ids": [view.numbers.get(f.key) for f in acted_on],
        "why_not": [[refusal_json(refusal) for refusal in view.why_not.get(f.key, ())] for f in acted_on],
        "advice": sum(f.advice_only for f in view.findings),
        "last_cycle": view.window.end if view.window else None, "windows": view.windows,
        "least_windows": settings.noisy_neighbour.least_windows,
        "looking_since": view.looking_since or None, "history_seconds": settings.history_seconds,
        "least_seconds": settings.noisy_neighbour.least_windows * settings.sense.cycle_seconds,
        "cycles": view.cycles, "cycle_seconds": view.cycle_seconds,
        "waiting_moves": gate.waiting, "waiting_bytes": gate.waiting_bytes, "waiting_orders": orders,
        "under_way_moves": gate.under_way, "waiting_defaults": gate.waiting_defaults, "waits_for": gate.waits_for,
        "left_over_moves": gate.left_over, "not_kept_moves": gate.not_kept, "not_taken_up": dict(gate.not_taken_up),
        "moved_bytes": gate.endings.moved_bytes,
        "outcomes": {" ".join(key): count for key, count in tuple(gate.endings.counts.items())},
        "cases": [{"finding": c.number, "aggressor": c.aggressor, "victim": c.victim, "since": c.begun_at,
                   "judged": c.judged, "verdict": c.verdict, "directories": list(c.directories),
                   "waiting_defaults": c.waiting_defaults, "waiting_moves": c.waiting_moves,
                   "moves_held": c.moves_held, "taking_back": c.taking_back} for c in view.cases],
    }


def refusal_json(refusal: Refusal) -> dict[str, str]:
    """Why something is not done, and what would change that."""
    return {"reason": str(refusal.reason), "sentence": refusal.sentence, "remedy": REMEDIES.get(refusal.reason, "")}


def stalled(daemon: Daemon, gate: Gate, activities: Sequence[ActivityState], now: float) -> list[str]:
    """What goes on no more, or is late, and why: a sentence each."""
    found = []
    if daemon.stale_for:
        found.append(f"the last look at the counters is {daemon.stale_for:.0f} s old: nothing is begun until the next")
    moving = next((state for state in activities if state.name == "move"), None)
    idle = now - max(gate.last_move_at, gate.waiting_since)
    if gate.waiting and idle > STALLED_SECONDS:
        why = gate.stance.held or next(iter(daemon.hindrances), "") or gate.waits_for
        if not why and moving is not None and moving.begun_at:
            why = moving.waits_for or f"{moving.doing} has taken {now - moving.begun_at:.0f} s so far"
        why = why or "the reason is not known"
        found.append(f"no move has ended for {idle:.0f} s while {gate.waiting} wait: {why}")
    return found


def stance(gate: Gate) -> dict[str, str]:
    """What holds acts back, in words; "" for what does not."""
    return {"paused": gate.stance.paused, "held": gate.stance.held, "draining": gate.stance.draining}


def findings(view: View, *, advice: bool | None = None) -> dict[str, Any]:
    """What holds now; advice alone, or all but advice, if asked for."""
    return {"findings": [finding_answer(view, f) for f in view.findings if advice is None or f.advice_only is advice],
            "looked": view.window is not None}


def finding_answer(view: View, finding: Finding) -> dict[str, Any]:
    """One finding, with its number and what may be done about it."""
    return finding_json(finding) | {"id": view.numbers.get(finding.key)}
