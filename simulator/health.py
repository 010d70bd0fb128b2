"""Whether a target answers: ``recovery_status``, and what those who ask meanwhile wait for."""

from __future__ import annotations

from simulator.engine import Completion


class Health:
    """Of one target. Requests to one that is away wait on their client and are sent again when it is back."""

    def __init__(self) -> None:
        self.status = "INACTIVE"
        """As ``recovery_status`` says it: INACTIVE (never needed), RECOVERING, COMPLETE."""
        self.gone = False
        self.back = Completion()
        self.recovery_start = self.recovery_seconds = 0.0
        self.recoveries = 0

    @property
    def away(self) -> bool:
        """Whether it answers nobody."""
        return self.gone or self.status == "RECOVERING"

    def leave(self) -> None:
        """Its server is down."""
        self.gone = True

    def recover(self, now: float) -> None:
        """It is mounted again and waits for its clients."""
        self.gone = False
        self.status = "RECOVERING"
        self.recovery_start = now

    def recovered(self, now: float) -> None:
        """All clients are back; whoever waits goes on."""
        if self.status == "RECOVERING":
            self.status = "COMPLETE"
            self.recovery_seconds = now - self.recovery_start
            self.recoveries += 1
        self.gone = False
        waiting, self.back = self.back, Completion()
        waiting.succeed()
