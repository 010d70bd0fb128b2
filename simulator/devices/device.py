"""What every device can do."""

from __future__ import annotations

from typing import Protocol

from simulator.devices.io import Io


class Device(Protocol):
    """Takes I/Os and completes each when it is stored or read."""

    slowdown: float
    """1 for a healthy device; 2 for one that takes twice as long for everything."""

    def submit(self, io: Io) -> None:
        """Queue one I/O."""

    @property
    def queued(self) -> int:
        """I/Os waiting or under way."""
