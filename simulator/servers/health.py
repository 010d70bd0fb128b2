"""Availability and recovery of a target (``recovery_status``), and the requests that wait meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from simulator.engine import Completion


class Health:
    """Health of one target. Requests to an absent target wait on their client and are sent again later."""

    def __init__(self) -> None:
        self.status = "INACTIVE"
        """Status in ``recovery_status``: INACTIVE (never needed), RECOVERING, COMPLETE."""
        self.gone = False
        self.changing: Callable[[], None] = lambda: None
        """Called before the health changes."""
        self.back = Completion()
        self.recovery_start = self.recovery_seconds = 0.0
        self.recoveries = 0
        self.window_seconds = 0.0

    @property
    def away(self) -> bool:
        return self.gone or self.status == "RECOVERING"

    def leave(self) -> None:
        self.changing()
        self.gone = True

    def connected(self, clients: int, now: float) -> int:
        """Number of reconnected clients.

        They notice the restart at their pings, evenly over the first half of the window.
        """
        share = 2 * (now - self.recovery_start) / self.window_seconds if self.window_seconds else 1.0
        return min(clients, int(clients * share))

    def recover(self, now: float, window_seconds: float = 0.0) -> None:
        """Start recovery: the target is mounted and waits for its clients."""
        self.changing()
        self.gone = False
        self.window_seconds = window_seconds
        self.status = "RECOVERING"
        self.recovery_start = now

    def recovered(self, now: float) -> None:
        """End recovery: all clients are back, and waiting requests continue."""
        self.changing()
        if self.status == "RECOVERING":
            self.status = "COMPLETE"
            self.recovery_seconds = now - self.recovery_start
            self.recoveries += 1
        self.gone = False
        waiting, self.back = self.back, Completion()
        waiting.succeed()
