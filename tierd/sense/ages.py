"""How old what each source tells is, and what is wrong with it: a source that is stale or silent is not to be acted on.

>>> now = 1000.0
>>> SourceAge("prometheus", seen_at=980.0, limit_seconds=90.0).state(now)
'20 s old'
>>> SourceAge("prometheus", seen_at=800.0, limit_seconds=90.0).state(now)
'200 s old, and must be no older than 90 s'
>>> SourceAge("prometheus", seen_at=980.0, limit_seconds=90.0, trouble="connection refused").state(now)
'20 s old: connection refused'
>>> SourceAge("robinhood", seen_at=None, limit_seconds=90.0).state(now)
'nothing yet'
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source as of one moment, for metrics and status."""

    name: str
    age_seconds: float
    """Infinite for one that never told anything."""
    limit_seconds: float
    stale: bool
    words: str


@dataclass(frozen=True, slots=True)
class SourceAge:
    """One source, as it stands."""

    name: str
    """``exporters``, ``prometheus``, ``changelog MDT0000``, …: few and fixed, as it becomes a label."""
    seen_at: float | None
    """When what it last told was true, by its own account where it gives one; epoch seconds. None: never."""
    limit_seconds: float
    trouble: str = ""
    """What is wrong at present, in words."""
    note: str = ""
    """What else is to be known of it, in words."""

    def age_seconds(self, now: float) -> float:
        """Infinite for one that never told anything. A source ahead of our clock is 0 s old."""
        return float("inf") if self.seen_at is None else max(0.0, now - self.seen_at)

    def at(self, now: float) -> SourceState:
        """The source as of a moment."""
        return SourceState(self.name, self.age_seconds(now), self.limit_seconds, self.stale(now), self.state(now))

    def stale(self, now: float) -> bool:
        """Whether it may not be acted on."""
        return bool(self.trouble) or self.age_seconds(now) > self.limit_seconds

    def state(self, now: float) -> str:
        """In words, for status."""
        age = self.age_seconds(now)
        note = f"; {self.note}" if self.note else ""
        old = "nothing yet" if age == float("inf") else f"{age:.0f} s old"
        if self.trouble:
            return f"{old}: {self.trouble}{note}"
        if self.limit_seconds < age < float("inf"):
            return f"{old}, and must be no older than {self.limit_seconds:g} s{note}"
        return old + note
