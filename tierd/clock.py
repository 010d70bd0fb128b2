"""The clock of the daemon: the only module of tierd that asks what time it is."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for records, and a wait that can be woken."""

    def now(self) -> float:
        """Epoch seconds."""

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until woken: then True."""


class SystemClock:
    """The real clock."""

    def __init__(self) -> None:
        self._woken = threading.Event()

    def now(self) -> float:
        """Epoch seconds."""
        return time.time()

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until woken: then True."""
        return self._woken.wait(max(0.0, seconds))

    def wake(self) -> None:
        """End the present wait and all later ones; called from signal handlers."""
        self._woken.set()
