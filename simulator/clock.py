"""The wall clock of the real-time driver. The only module here that knows what time it is."""

from __future__ import annotations

import time
from threading import Event
from typing import Protocol


class Clock(Protocol):
    """Seconds that only grow, and a wait that can be cut short."""

    def monotonic(self) -> float:
        """Seconds since some moment."""

    def wait(self, seconds: float, until: Event) -> bool:
        """Wait so long or until the event is set; whether it is set."""


class WallClock:
    """The machine's own time."""

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def wait(self, seconds: float, until: Event) -> bool:
        """Wait so long or until the event is set; whether it is set."""
        return until.wait(seconds)
