"""What the daemon knows, as a snapshot: published after each step of an activity, read without waiting for the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tierd.act.gate import Gate
from tierd.cycle.loop import Daemon
from tierd.model import Finding, Window
from tierd.reasons import Refusal


@dataclass(frozen=True, slots=True)
class CaseView:
    """A finding that was acted on."""

    number: int
    aggressor: str
    victim: str
    directories: tuple[str, ...]
    begun_at: float
    judged: bool
    verdict: str
    """Empty until it is judged."""
    waiting_defaults: int = 0
    """Default layouts that wait to be set."""
    waiting_moves: int = 0
    moves_held: bool = False
    """Whether its moves wait, so that the act is measured without them."""
    taking_back: str = ""
    """Why its default layouts are being taken back."""


@dataclass(frozen=True, slots=True)
class View:
    """What the daemon knew when a step ended last."""

    window: Window | None = None
    windows: int = 0
    findings: tuple[Finding, ...] = ()
    numbers: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """Of findings, in the journal."""
    cases: tuple[CaseView, ...] = ()
    why_not: Mapping[tuple[str, str, str], tuple[Refusal, ...]] = field(default_factory=dict)
    """What keeps more from being done about a finding, as of its last plan."""
    faults: Mapping[str, str] = field(default_factory=dict)
    waiting: int = 0
    """Moves in the queue."""
    cycles: int = 0
    cycle_seconds: float = 0.0
    looking_since: float = 0.0
    """Beginning of the history, where we saw all of it ourselves; 0 where somebody else told of what was before."""


class Board:
    """The present view. Published by the activities, read by all."""

    def __init__(self) -> None:
        self.view = View()

    def publish(self, daemon: Daemon, gate: Gate) -> None:
        """Put up how things are now."""
        windows, tally, findings = daemon.windows, daemon.tally, daemon.findings
        waiting = gate.waiting_by_finding()
        with daemon.lock:
            cases = tuple(
                CaseView(c.number, c.finding.aggressor, c.finding.victim, c.finding.directories, c.begun_at, c.judged,
                         c.verdict, gate.defaults_waiting_for(c.finding.key),
                         waiting[c.finding.key], c.moves_held, c.taking_back)
                for c in daemon.cases)
        self.view = View(
            windows[-1] if windows else None, len(windows), findings, {f.key: daemon.number(f) for f in findings},
            cases, {f.key: daemon.why_not(f) for f in findings},
            daemon.faults, waiting.total(), tally.cycles, tally.cycle_seconds,
            looking_since=windows[0].start if windows and not windows[0].learnt else 0.0)
