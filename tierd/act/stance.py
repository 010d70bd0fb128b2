"""Whether anything may be done now: paused by a person or the circuit breaker, draining, the pause file, the hour."""

from __future__ import annotations

from tierd.act.journal import Journal
from tierd.act.standstill import Standstill
from tierd.clock import Clock


class Stance:
    """What people and the circuit breaker have said, and what the pause file and the maintenance windows say now."""

    def __init__(self, journal: Journal, standstill: Standstill, clock: Clock) -> None:
        self._journal = journal
        self._standstill = standstill
        self._clock = clock
        state = journal.state()
        self.paused = state.get("paused", "")
        """Why a person or the circuit breaker lets nothing be done at present; "" when they do. Kept over a restart."""
        self.tripped = bool(state.get("tripped"))
        """Whether the circuit breaker says so, and not a person."""
        self.draining = state.get("draining", "")
        """Why nothing new is begun, while what is queued is finished; "" when it is not so."""

    def pause(self, reason: str, *, tripped: bool = False) -> None:
        """Change nothing until :meth:`resume`. What is under way comes to its end."""
        self.paused, self.tripped = reason, tripped

    def drain(self, reason: str) -> None:
        """Begin nothing new until :meth:`resume`; what is queued goes on."""
        self.draining = reason

    def resume(self) -> None:
        """Go on."""
        self.paused, self.tripped, self.draining = "", False, ""

    def keep(self) -> None:
        """Enter it in the journal: a restart shall not set loose what somebody has stopped."""
        self._journal.set_state({"paused": self.paused, "tripped": "yes" * self.tripped, "draining": self.draining})

    @property
    def held(self) -> str:
        """Why nothing new is done at present: a pause, the pause file, or the hour; "" when things are done."""
        return self.paused or self._standstill(self._clock.now())

    @property
    def stopped(self) -> str:
        """Why nothing may even be taken back at present: the pause file; or ""."""
        return self._standstill.by_file()
