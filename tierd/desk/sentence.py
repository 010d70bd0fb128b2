"""The sentence about each cycle, in the log and in ``systemctl status``."""

from __future__ import annotations

from tierd.act.gate import Gate
from tierd.desk.board import View
from tierd.text import counted


def cycle(view: View, gate: Gate) -> str:
    """What is seen, what is done, and what keeps more from being done."""
    if view.window is None:
        seen = "looked; the next look tells what goes on"
    else:
        targets, jobs = len({target for target, _ in view.window.loads}), len(view.window.jobs)
        advice = sum(f.advice_only for f in view.findings)
        seen = f"{counted(jobs, 'job')} on {counted(targets, 'target')}, "
        seen += counted(len(view.findings) - advice, "finding") + (f", {advice} advice" if advice else "")
    open_cases = sum(not case.judged for case in view.cases)
    parts = [seen, f"{view.cycle_seconds:.1f} s"] if view.window else [seen]
    if open_cases:
        parts.append(f"{counted(open_cases, 'case')} being judged")
    if view.waiting:
        parts.append(f"{counted(view.waiting, 'move')} waiting")
    if gate.stance.held:
        parts.append(f"nothing is changed: {gate.stance.held}")
    elif gate.stance.draining:
        parts.append(f"nothing new is begun: {gate.stance.draining}")
    return "; ".join([*parts, *view.faults.values()])
