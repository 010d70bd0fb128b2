"""The status of the daemon: a snapshot, published after each step of an activity, and the answers made of it.

Readers of the snapshot wait for no activity. ``tierctl status``, ``findings``, ``advise`` and ``top`` show these
answers; the sentence about each cycle goes to the log and to ``systemctl status``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any

from tierd.act.gate import Gate
from tierd.acts import Verdict
from tierd.config.settings import Settings
from tierd.daemon.activities import ActivityState
from tierd.daemon.answers import finding_json, refusal_json
from tierd.daemon.loop import Daemon
from tierd.detect.device_time import TargetTime
from tierd.model import Finding, SlowdownEvidence, Window
from tierd.refusal import Refusal
from tierd.text import count_of


@dataclass(frozen=True, slots=True)
class RemediationSnapshot:
    """A finding that was acted on."""

    number: int
    aggressor: str
    victim: str
    directories: tuple[str, ...]
    begun_at: float
    judged: bool
    verdict: Verdict
    """Empty until it is judged."""
    waiting_defaults: int = 0
    """Default layouts that wait to be set."""
    waiting_moves: int = 0
    moves_held: bool = False
    """Whether its moves wait, so that the act is measured without them."""
    undo_reason: str = ""
    """Why its default layouts are being taken back."""


@dataclass(frozen=True, slots=True)
class StatusSnapshot:
    """What the daemon knew when a step ended last."""

    window: Window | None = None
    windows: int = 0
    findings: tuple[Finding, ...] = ()
    numbers: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """Of findings, in the journal."""
    cases: tuple[RemediationSnapshot, ...] = ()
    why_not: Mapping[tuple[str, str, str], tuple[Refusal, ...]] = field(default_factory=dict)
    """What keeps more from being done about a finding, as of its last plan."""
    faults: Mapping[str, str] = field(default_factory=dict)
    waiting: int = 0
    """Moves in the queue."""
    cycles: int = 0
    cycle_seconds: float = 0.0
    looking_since: float = 0.0
    """Beginning of the history, where we saw all of it ourselves; 0 where somebody else told of what was before."""
    device_time: Mapping[str, TargetTime] = field(default_factory=dict)
    """Of targets whose costs of service are known."""


class StatusPublisher:
    """The present view. Published by the activities, read by all."""

    def __init__(self) -> None:
        self.view = StatusSnapshot()

    def publish(self, daemon: Daemon, gate: Gate) -> None:
        """Put up how things are now."""
        windows, tally, findings = daemon.windows, daemon.tally, daemon.findings
        waiting = gate.waiting_by_finding()
        with daemon.lock:
            cases = tuple(
                RemediationSnapshot(
                    c.number,
                    c.finding.aggressor,
                    c.finding.victim,
                    c.finding.directories,
                    c.begun_at,
                    c.judged,
                    c.verdict,
                    gate.defaults_waiting_for(c.finding.key),
                    waiting[c.finding.key],
                    c.moves_held,
                    c.undo_reason,
                )
                for c in daemon.cases
            )
        self.view = StatusSnapshot(
            windows[-1] if windows else None, len(windows), findings, {f.key: daemon.number(f) for f in findings},
            cases, {f.key: daemon.why_not(f) for f in findings},
            daemon.faults, waiting.total(), tally.cycles, tally.cycle_seconds,
            looking_since=windows[0].start if windows and not windows[0].learnt else 0.0,
            device_time=daemon.device_time)


STALLED_SECONDS = 60.0
"""Moves that wait without any that ends for so long are reported, with the reason."""


def status_answer(view: StatusSnapshot, gate: Gate, settings: Settings, orders: int, now: float) -> dict[str, Any]:
    """The state of the daemon."""
    acted_on = [f for f in view.findings if not f.advice_only]
    return {
        "time": now,
        "mode": settings.act.mode,
        "scopes": [{"path": s.path, "mode": s.mode} for s in settings.scopes],
        "dry_run": settings.act.dry_run,
        **operating_state_answer(gate),
        "faults": dict(view.faults),
        "findings": [f.sentence for f in acted_on],
        "finding_ids": [view.numbers.get(f.key) for f in acted_on],
        "why_not": [[refusal_json(refusal) for refusal in view.why_not.get(f.key, ())] for f in acted_on],
        "advice": sum(f.advice_only for f in view.findings),
        "last_cycle": view.window.end if view.window else None,
        "windows": view.windows,
        "least_windows": settings.noisy_neighbour.min_windows,
        "looking_since": view.looking_since or None,
        "history_seconds": settings.history_seconds,
        "least_seconds": settings.noisy_neighbour.min_windows * settings.sense.cycle_seconds,
        "learning": is_learning(view, settings),
        "device_time": device_time_rows(view.device_time),
        "cycles": view.cycles,
        "cycle_seconds": view.cycle_seconds,
        "waiting_moves": gate.waiting,
        "waiting_bytes": gate.waiting_bytes,
        "waiting_orders": orders,
        "under_way_moves": gate.under_way,
        "waiting_defaults": gate.waiting_defaults,
        "waits_for": gate.waits_for,
        "left_over_moves": gate.to_requeue,
        "not_kept_moves": gate.not_persisted,
        "not_taken_up": dict(gate.not_requeued),
        "moved_bytes": gate.completed_acts.moved_bytes,
        "outcomes": {" ".join(key): count for key, count in tuple(gate.completed_acts.counts.items())},
        "cases": [
            {
                "finding": c.number,
                "aggressor": c.aggressor,
                "victim": c.victim,
                "since": c.begun_at,
                "judged": c.judged,
                "verdict": c.verdict,
                "directories": list(c.directories),
                "waiting_defaults": c.waiting_defaults,
                "waiting_moves": c.waiting_moves,
                "moves_held": c.moves_held,
                "taking_back": c.undo_reason,
            }
            for c in view.cases
        ],
    }


TARGETS_SHOWN, JOBS_SHOWN = 8, 4
"""Targets whose device time status shows, the busiest, and jobs of each, those that take most."""


def device_time_rows(times: Mapping[str, TargetTime]) -> list[dict[str, Any]]:
    """The busiest targets, and the jobs that take most of their service time."""
    busiest = nlargest(TARGETS_SHOWN, times.values(), key=lambda time: time.utilisation)
    return [{"target": time.target, "utilisation": round(time.utilisation, 4),
             "utilisation_error": round(time.utilisation_error, 4),
             "jobs": [{"job": job, "share": round(share, 4), "error": round(time.share_error([job]), 4)}
                      for job, share in time.top(JOBS_SHOWN)]} for time in busiest]


def stalled_sentences(daemon: Daemon, gate: Gate, activities: Sequence[ActivityState], now: float) -> list[str]:
    """What goes on no more, or is late, and why: a sentence each."""
    found = []
    if daemon.stale_for:
        found.append(f"the last look at the counters is {daemon.stale_for:.0f} s old: nothing is begun until the next")
    moving = next((state for state in activities if state.name == "move"), None)
    idle = now - max(gate.last_move_at, gate.waiting_since)
    if gate.waiting and idle > STALLED_SECONDS:
        why = gate.stance.held or next(iter(daemon.blocking_faults), "") or gate.waits_for
        if not why and moving is not None and moving.begun_at:
            why = moving.waits_for or f"{moving.doing} has taken {now - moving.begun_at:.0f} s so far"
        why = why or "the reason is not known"
        found.append(f"no move has ended for {idle:.0f} s while {gate.waiting} wait: {why}")
    return found


def operating_state_answer(gate: Gate) -> dict[str, str]:
    """What holds acts back, in words; "" for what does not."""
    return {"paused": gate.stance.paused, "held": gate.stance.held, "draining": gate.stance.draining}


def findings_answer(view: StatusSnapshot, *, advice: bool | None = None) -> dict[str, Any]:
    """What holds now; advice alone, or all but advice, if asked for."""
    return {
        "findings": [
            numbered_finding_json(view, f) for f in view.findings if advice is None or f.advice_only is advice
        ],
        "looked": view.window is not None,
    }


def numbered_finding_json(view: StatusSnapshot, finding: Finding) -> dict[str, Any]:
    """One finding, with its number and what may be done about it."""
    return finding_json(finding) | {"id": view.numbers.get(finding.key)}


NO_LOAD: Mapping[str, float] = {"read_bytes": 0.0, "write_bytes": 0.0, "operations": 0.0}


def top_answer(view: StatusSnapshot, settings: Settings, most: int) -> dict[str, Any]:
    """Targets and jobs, so many of each at the most. Rates per second."""
    window = view.window
    if window is None:
        return {"seconds": 0.0, "targets": [], "all_targets": 0, "jobs": [], "all_jobs": 0, "findings": [],
                "learning": True}
    role = {f.victim: "slowed" for f in view.findings if f.victim and not f.advice_only}
    role |= {f.aggressor: "noise" for f in view.findings if f.aggressor and not f.advice_only}
    return {
        "seconds": window.seconds,
        "targets": target_rows(window, view.findings)[:most], "all_targets": len({t for t, _ in window.loads}),
        "jobs": job_rows(window, role)[:most], "all_jobs": len(window.jobs | set(window.namespace)),
        "findings": findings_answer(view)["findings"],
        "learning": is_learning(view, settings),
    }


def is_learning(view: StatusSnapshot, settings: Settings) -> bool:
    """Whether too little is known to say that nobody is slowed: neither a past to compare with, nor device time."""
    return not view.device_time and view.windows < 2 * settings.noisy_neighbour.min_windows


def target_rows(window: Window, found: tuple[Finding, ...]) -> list[dict[str, Any]]:
    """What each target does, and how slow its streams are."""
    slowdown: dict[str, float] = {}
    for finding in found:
        for target in finding.targets:
            if isinstance(finding.evidence, SlowdownEvidence) and not finding.advice_only:
                slowdown[target] = max(slowdown.get(target, 0.0), finding.evidence.slowdown)
    done, counts = rates_by(window, 0)
    rows = [{"target": target, **done.get(target, NO_LOAD), "jobs": counts.get(target, 0),
             "slowdown": slowdown.get(target), "condition": window.conditions.get(target, "")}
            for target in dict.fromkeys((*done, *window.conditions))]
    return sorted(rows, key=lambda r: (-(r["slowdown"] or 0), not r["condition"], -r["operations"], r["target"]))


def job_rows(window: Window, role: Mapping[str, str]) -> list[dict[str, Any]]:
    """What each job does."""
    done, counts = rates_by(window, 1)
    creates = {job: load.creates / window.seconds for job, load in window.namespace.items()}
    rows = [{"job": job, **done.get(job, NO_LOAD), "creates": creates.get(job, 0.0), "targets": counts.get(job, 0),
             "role": role.get(job, "")}
            for job in dict.fromkeys((*done, *window.namespace))]
    return sorted(rows, key=lambda r: (not r["role"], -r["operations"], r["job"]))


def rates_by(window: Window, place: int) -> tuple[dict[str, dict[str, float]], dict[str, int]]:
    """Bytes and operations per second by target (``place`` 0) or by job (1), and how many loads these are."""
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    counts: defaultdict[str, int] = defaultdict(int)
    for key, load in window.loads.items():
        row = sums[key[place]]
        row[0] += load.read_bytes
        row[1] += load.write_bytes
        row[2] += load.operations
        counts[key[place]] += 1
    return {name: dict(zip(NO_LOAD, (value / window.seconds for value in row), strict=True))
            for name, row in sums.items()}, counts


def cycle_sentence(view: StatusSnapshot, gate: Gate) -> str:
    """What is seen, what is done, and what keeps more from being done."""
    if view.window is None:
        seen = "looked; the next look tells what goes on"
    else:
        targets, jobs = len({target for target, _ in view.window.loads}), len(view.window.jobs)
        advice = sum(f.advice_only for f in view.findings)
        seen = f"{count_of(jobs, 'job')} on {count_of(targets, 'target')}, "
        seen += count_of(len(view.findings) - advice, "finding") + (f", {advice} advice" if advice else "")
    open_cases = sum(not case.judged for case in view.cases)
    parts = [seen, f"{view.cycle_seconds:.1f} s"] if view.window else [seen]
    if open_cases:
        parts.append(f"{count_of(open_cases, 'case')} being judged")
    if view.waiting:
        parts.append(f"{count_of(view.waiting, 'move')} waiting")
    if gate.stance.held:
        parts.append(f"nothing is changed: {gate.stance.held}")
    elif gate.stance.draining:
        parts.append(f"nothing new is begun: {gate.stance.draining}")
    return "; ".join([*parts, *view.faults.values()])
