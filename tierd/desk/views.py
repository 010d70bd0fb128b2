"""Answers made of what hangs on the board: status, findings, advice, and what ``tierctl top`` shows."""

from __future__ import annotations

from typing import Any

from tierd.act.gate import Gate
from tierd.as_json import finding_json
from tierd.config import Settings
from tierd.desk.board import Board, View
from tierd.model import Finding


def status(board: Board, gate: Gate, settings: Settings, orders: int, now: float) -> dict[str, Any]:
    """The state of the daemon."""
    view = board.view
    return {
        "time": now, "mode": settings.act.mode, "scopes": [{"path": s.path, "mode": s.mode} for s in settings.scopes],
        "dry_run": settings.act.dry_run, **stance(gate),
        "faults": dict(view.faults), "findings": [f.sentence for f in view.findings if not f.advice_only],
        "finding_ids": [view.numbers.get(f.key) for f in view.findings if not f.advice_only],
        "advice": sum(f.advice_only for f in view.findings),
        "last_cycle": view.window.end if view.window else None, "windows": view.windows,
        "least_windows": settings.noisy_neighbour.least_windows,
        "looking_since": view.looking_since or None, "history_seconds": settings.history_seconds,
        "least_seconds": settings.noisy_neighbour.least_windows * settings.sense.cycle_seconds,
        "cycle_under_way_seconds": max(0.0, now - board.cycle_begun_at) if board.cycle_begun_at else 0.0,
        "cycle_waits_for": board.waits_for,
        "waiting_moves": view.waiting, "waiting_bytes": view.waiting_bytes, "waiting_orders": orders,
        "waits_for": view.waits_for,
        "left_over_moves": view.left_over, "not_kept_moves": view.not_kept, "not_taken_up": dict(view.not_taken_up),
        "moved_bytes": view.moved_bytes,
        "outcomes": {" ".join(key): count for key, count in view.outcomes.items()},
        "cases": [{"finding": c.number, "aggressor": c.aggressor, "victim": c.victim, "since": c.begun_at,
                   "judged": c.judged, "verdict": c.verdict, "directories": list(c.directories)} for c in view.cases],
    }


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
