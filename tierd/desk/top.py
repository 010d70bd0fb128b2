"""Targets and jobs of the last window, the busiest first: what ``tierctl top`` shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from tierd.desk import views
from tierd.desk.board import View
from tierd.model import Finding, Window

NOTHING: Mapping[str, float] = {"read_bytes": 0.0, "write_bytes": 0.0, "operations": 0.0}


def top(view: View, most: int) -> dict[str, Any]:
    """Targets and jobs, so many of each at the most. Rates per second."""
    window = view.window
    if window is None:
        return {"seconds": 0.0, "targets": [], "all_targets": 0, "jobs": [], "all_jobs": 0, "findings": []}
    role = {f.victim: "slowed" for f in view.findings if f.victim and not f.advice_only}
    role |= {f.aggressor: "noise" for f in view.findings if f.aggressor and not f.advice_only}
    return {
        "seconds": window.seconds,
        "targets": targets(window, view.findings)[:most], "all_targets": len({t for t, _ in window.loads}),
        "jobs": jobs(window, role)[:most], "all_jobs": len(window.jobs | set(window.namespace)),
        "findings": views.findings(view)["findings"],
    }


def targets(window: Window, found: tuple[Finding, ...]) -> list[dict[str, Any]]:
    """What each target does, and how slow its streams are."""
    slowdown: dict[str, float] = {}
    for finding in found:
        for target in finding.targets:
            if not finding.advice_only:
                slowdown[target] = max(slowdown.get(target, 0.0), finding.evidence.get("slowdown", 0.0))
    done, counts = rates(window, 0)
    rows = [{"target": target, **done.get(target, NOTHING), "jobs": counts.get(target, 0),
             "slowdown": slowdown.get(target), "condition": window.conditions.get(target, "")}
            for target in dict.fromkeys((*done, *window.conditions))]
    return sorted(rows, key=lambda r: (-(r["slowdown"] or 0), not r["condition"], -r["operations"], r["target"]))


def jobs(window: Window, role: Mapping[str, str]) -> list[dict[str, Any]]:
    """What each job does."""
    done, counts = rates(window, 1)
    creates = {job: load.creates / window.seconds for job, load in window.namespace.items()}
    rows = [{"job": job, **done.get(job, NOTHING), "creates": creates.get(job, 0.0), "targets": counts.get(job, 0),
             "role": role.get(job, "")}
            for job in dict.fromkeys((*done, *window.namespace))]
    return sorted(rows, key=lambda r: (not r["role"], -r["operations"], r["job"]))


def rates(window: Window, place: int) -> tuple[dict[str, dict[str, float]], dict[str, int]]:
    """Bytes and operations per second by target (``place`` 0) or by job (1), and how many loads these are."""
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    counts: defaultdict[str, int] = defaultdict(int)
    for key, load in window.loads.items():
        row = sums[key[place]]
        row[0] += load.read_bytes
        row[1] += load.write_bytes
        row[2] += load.operations
        counts[key[place]] += 1
    return {name: dict(zip(NOTHING, (value / window.seconds for value in row), strict=True))
            for name, row in sums.items()}, counts
