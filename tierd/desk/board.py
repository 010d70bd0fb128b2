"""What is hung out after each cycle: read without waiting for the next one, which may move files for minutes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tierd.act.gate import Gate
from tierd.cycle.loop import Daemon
from tierd.model import Finding, Window


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


@dataclass(frozen=True, slots=True)
class View:
    """The daemon between two cycles."""

    window: Window | None = None
    windows: int = 0
    findings: tuple[Finding, ...] = ()
    numbers: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """Of findings, in the journal."""
    cases: tuple[CaseView, ...] = ()
    faults: Mapping[str, str] = field(default_factory=dict)
    outcomes: Mapping[tuple[str, str], int] = field(default_factory=dict)
    waiting: int = 0
    waiting_bytes: int = 0
    left_over: int = 0
    """Of those that wait, from before a restart and not looked at yet."""
    not_kept: int = 0
    """Of those that wait, more than the journal keeps: a restart would lose them."""
    not_taken_up: Mapping[str, int] = field(default_factory=dict)
    """What waited before a restart and does not any more, by reason."""
    moved_bytes: int = 0
    cycles: int = 0
    cycle_seconds: float = 0.0
    last_cycle_at: float = 0.0
    waits_for: str = ""
    """Which limit the first of those that wait has reached."""
    looking_since: float = 0.0
    """Beginning of the history, where we saw all of it ourselves; 0 where somebody else told of what was before."""


class Board:
    """The present view. Hung out by the thread that cycles, read by all."""

    def __init__(self) -> None:
        self.view = View()
        self.cycle_begun_at = 0.0
        """0 between cycles."""
        self.waits_for = ""
        """What a cycle that has lasted long waits for."""

    def begin(self, now: float) -> None:
        """A cycle begins."""
        self.cycle_begun_at, self.waits_for = now, ""

    def end(self) -> None:
        """It has ended."""
        self.cycle_begun_at, self.waits_for = 0.0, ""

    def hang_out(self, daemon: Daemon, gate: Gate) -> None:
        """Take the view down, and put up how things are now."""
        windows, tally = daemon.windows, daemon.tally
        self.view = View(
            windows[-1] if windows else None, len(windows), daemon.findings,
            {f.key: daemon.number(f) for f in daemon.findings},
            tuple(CaseView(c.number, c.finding.aggressor, c.finding.victim, c.finding.directories, c.begun_at, c.judged,
                           c.verdict) for c in daemon.cases),
            daemon.faults, dict(gate.endings.counts), gate.waiting, gate.waiting_bytes, gate.left_over, gate.not_kept,
            dict(gate.not_taken_up), gate.endings.moved_bytes,
            tally.cycles, tally.cycle_seconds, tally.last_cycle_at, gate.waits_for,
            looking_since=windows[0].start if windows and not windows[0].learnt else 0.0)
