"""Whether a target answers, its recovery (``recovery_status``), and the requests that wait meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from simulator.engine import Completion

STATES_KEPT = 16


class Health:
    """Of one target. Requests to one that is away wait on their client and are sent again when it is back."""

    def __init__(self) -> None:
        self.status = "INACTIVE"
        """As ``recovery_status`` says it: INACTIVE (never needed), RECOVERING, COMPLETE."""
        self.gone = False
        self.changing: Callable[[], None] = _ignore
        """Called before it changes."""
        self.back = Completion()
        self.recovery_start = self.recovery_seconds = 0.0
        self.recoveries = 0
        self.replayed = 0
        """Requests sent again in the last recovery."""
        self.window_seconds = 0.0
        self.history: list[tuple[float, str]] = []
        """When it changed for those who are connected to it, as their ``state`` files name it; virtual seconds."""

    @property
    def away(self) -> bool:
        """Whether it answers nobody."""
        return self.gone or self.status == "RECOVERING"

    def leave(self, now: float) -> None:
        """Its server is down."""
        self.changing()
        self.gone = True
        self._became(now, "DISCONN")

    def connected(self, clients: int, now: float) -> int:
        """How many clients have come back: they notice at their pings, so evenly over the first half of the window."""
        share = 2 * (now - self.recovery_start) / self.window_seconds if self.window_seconds else 1.0
        return min(clients, int(clients * share))

    def recover(self, now: float, window_seconds: float = 0.0) -> None:
        """It is mounted again and waits for its clients, so long."""
        self.changing()
        self.gone = False
        self.window_seconds = window_seconds
        self.replayed = 0
        self._became(now, "CONNECTING", "REPLAY", "REPLAY_LOCKS", "REPLAY_WAIT")
        self.status = "RECOVERING"
        self.recovery_start = now

    def recovered(self, now: float) -> None:
        """All clients are back; whoever waits goes on."""
        self.changing()
        if self.status == "RECOVERING":
            self.status = "COMPLETE"
            self.recovery_seconds = now - self.recovery_start
            self.recoveries += 1
        if self.history:
            self._became(now, "RECOVER", "FULL")
        self.gone = False
        waiting, self.back = self.back, Completion()
        waiting.succeed()

    def _became(self, now: float, *states: str) -> None:
        self.history = [*self.history, *((now, state) for state in states)][-STATES_KEPT:]


def _ignore() -> None:
    """Nobody has to know."""
