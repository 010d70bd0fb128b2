"""What metrics count of the loop, since the start."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """Counts of cycles, findings, refusals and verdicts."""

    cycles: int = 0
    last_cycle_at: float = 0.0
    cycle_seconds: float = 0.0
    """Of the last cycle."""
    records: int = 0
    """Changelog records taken in."""
    found: Counter[str] = field(default_factory=Counter)
    """By kind of finding."""
    verdicts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    """By the short name of the reason."""
    found_at: dict[str, float] = field(default_factory=dict)
    """When a finding of each kind last began."""
    gained: dict[str, float] = field(default_factory=dict)
    """Victim to the part of its loss that was won back, by the last judgement."""
    gains: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Victim to what it had lost, and what of it was won back, in bytes per second."""
    changelog_lag_seconds: float = 0.0
    """Age of the oldest record of the last cycle, when it was taken in."""
