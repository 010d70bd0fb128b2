"""Flash: a fixed latency, several channels at once, one bandwidth for all of them, and no seeks."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.devices.io import Io
from simulator.engine import Engine


@dataclass(frozen=True, slots=True)
class FlashSettings:
    """One flash target."""

    bytes_per_second: float = 400e6
    latency_seconds: float = 0.0002
    channels: int = 16
    size_bytes: int = 1 << 30


class Flash:
    """An I/O takes the channel that is free first, then its share of the bandwidth, then the latency."""

    def __init__(self, engine: Engine, settings: FlashSettings) -> None:
        self.slowdown = 1.0
        self._engine = engine
        self._settings = settings
        self._channel_free_at = [0.0] * settings.channels
        self._bus_free_at = 0.0
        self._under_way = 0

    @property
    def queued(self) -> int:
        """I/Os waiting or under way."""
        return self._under_way

    def submit(self, io: Io) -> None:
        """Queue one I/O."""
        now, settings = self._engine.now, self._settings
        io.queued_at = now
        free_at = min(self._channel_free_at)
        bus_from = max(now, free_at, self._bus_free_at)
        self._bus_free_at = bus_from + self.slowdown * io.size_bytes / settings.bytes_per_second
        done_at = self._bus_free_at + self.slowdown * settings.latency_seconds
        self._channel_free_at[self._channel_free_at.index(free_at)] = done_at
        self._under_way += 1
        self._engine.after(done_at - now, self._finish, io)

    def _finish(self, io: Io) -> None:
        self._under_way -= 1
        io.done()
