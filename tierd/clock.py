"""The clock of the daemon: the only module of tierd that reads the time."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for records, and a wait that can be woken."""

    def now(self) -> float:
        """Epoch seconds."""

    def wait(self, seconds: float) -> bool:
        """Wait, at most ``seconds``; True when woken by ``wake``."""


class SystemClock:
    """The real clock."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._stopped = False
        self._nudged = False

    def now(self) -> float:
        """Epoch seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back, including the time of a suspended machine."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wait(self, seconds: float) -> bool:
        """Wait for this time, or until woken: then True. A nudge ends the wait early, with False."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._nudged, max(0.0, seconds))
            self._nudged = False
            return self._stopped

    def wake(self) -> None:
        """End the present wait and all later ones. Safe in a signal handler: it takes no lock."""
        self._stopped = True
        threading.Thread(target=self._notify, daemon=True).start()

    def nudge(self) -> None:
        """End the present wait, or the next one, and no other."""
        with self._changed:
            self._nudged = True
            self._changed.notify_all()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()
