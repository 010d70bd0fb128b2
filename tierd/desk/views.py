"""Answers made of what hangs on the board: status, findings, advice, and what ``tierctl top`` shows."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tierd.act.gate import Gate
from tierd.config import Settings
from tierd.desk.board import Board, View
from tierd.model import Finding, Window
from tierd.replay import finding_json


def status(board: Board, gate: Gate, settings: Settings, orders: int, now: float) -> dict[str, Any]:
    """The state of the daemon."""
    view = board.view
    return {
        "time": now, "mode": settings.act.mode, "scopes": [{"path": s.path, "mode": s.mode} for s in settings.scopes],
        "dry_run": settings.act.dry_run, "paused": gate.paused, "held": gate.held, "draining": gate.draining,
        "faults": dict(view.faults), "findings": [f.sentence for f in view.findings if not f.advice_only],
        "advice": sum(f.advice_only for f in view.findings),
        "last_cycle": view.window.end if view.window else None, "windows": view.windows,
        "least_windows": settings.noisy_neighbour.least_windows,
        "cycle_under_way_seconds": max(0.0, now - board.cycle_begun_at) if board.cycle_begun_at else 0.0,
        "waiting_moves": view.waiting, "waiting_bytes": view.waiting_bytes, "waiting_orders": orders,
        "left_over_moves": view.left_over, "not_kept_moves": view.not_kept, "not_taken_up": dict(view.not_taken_up),
        "moved_bytes": view.moved_bytes,
        "outcomes": {" ".join(key): count for key, count in view.outcomes.items()},
        "cases": [{"finding": c.number, "aggressor": c.aggressor, "victim": c.victim, "since": c.begun_at,
                   "judged": c.judged, "verdict": c.verdict, "directories": list(c.directories)} for c in view.cases],
    }


def findings(view: View, *, advice: bool | None = None) -> dict[str, Any]:
    """What holds now; advice alone, or all but advice, if asked for."""
    return {"findings": [finding_answer(view, f) for f in view.findings if advice is None or f.advice_only is advice],
            "looked": view.window is not None}


def finding_answer(view: View, finding: Finding) -> dict[str, Any]:
    """One finding, with its number and what may be done about it."""
    return finding_json(finding) | {
        "id": view.numbers.get(finding.key), "subject": finding.subject,
        "advice": [{"command": a.command, "where": a.where, "effect": a.effect} for a in finding.advice]}


def top(view: View, most: int) -> dict[str, Any]:
    """Targets and jobs of the last window, the busiest first. Rates per second."""
    window = view.window
    if window is None:
        return {"seconds": 0.0, "targets": [], "jobs": [], "findings": []}
    role = {f.victim: "slowed" for f in view.findings if f.victim and not f.advice_only}
    role |= {f.aggressor: "noise" for f in view.findings if f.aggressor and not f.advice_only}
    return {
        "seconds": window.seconds,
        "targets": targets(window, view.findings)[:most], "all_targets": len({t for t, _ in window.loads}),
        "jobs": jobs(window, role)[:most], "all_jobs": len(window.jobs | set(window.namespace)),
        "findings": findings(view)["findings"],
    }


def targets(window: Window, found: tuple[Finding, ...]) -> list[dict[str, Any]]:
    """What each target does, and how slow its streams are."""
    slowdown: dict[str, float] = {}
    for finding in found:
        for target in finding.targets:
            if not finding.advice_only:
                slowdown[target] = max(slowdown.get(target, 0.0), finding.evidence.get("slowdown", 0.0))
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0] * 4)
    for (target, _), load in window.loads.items():
        row = sums[target]
        row[0] += load.read_bytes
        row[1] += load.write_bytes
        row[2] += load.operations
        row[3] += 1
    for target in window.conditions:
        sums[target]
    rows = [{"target": target, "read_bytes": read / window.seconds, "write_bytes": write / window.seconds,
             "operations": operations / window.seconds, "jobs": int(count), "slowdown": slowdown.get(target),
             "condition": window.conditions.get(target, "")}
            for target, (read, write, operations, count) in sums.items()]
    return sorted(rows, key=lambda r: (-(r["slowdown"] or 0), not r["condition"], -r["operations"], r["target"]))


def jobs(window: Window, role: dict[str, str]) -> list[dict[str, Any]]:
    """What each job does."""
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0] * 5)
    for (_, job), load in window.loads.items():
        row = sums[job]
        row[0] += load.read_bytes
        row[1] += load.write_bytes
        row[2] += load.operations
        row[4] += 1
    for job, names in window.namespace.items():
        sums[job][3] += names.creates
    rows = [{"job": job, "read_bytes": read / window.seconds, "write_bytes": write / window.seconds,
             "operations": operations / window.seconds, "creates": creates / window.seconds, "targets": int(count),
             "role": role.get(job, "")}
            for job, (read, write, operations, creates, count) in sums.items()]
    return sorted(rows, key=lambda r: (not r["role"], -r["operations"], r["job"]))
