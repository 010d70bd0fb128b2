"""A device held to bytes per second and I/Os per second, each in a bucket of its own that leaks at that rate.

Cloud volumes and LUNs with a quality of service behave like this, and so do the virtual disks the tapes were recorded
on. An I/O may pass while neither bucket is over its brim (``burst_seconds`` worth), and then fills both; whoever comes
next waits for the fuller one. A small I/O costs an I/O and hardly a byte, a large one the reverse, so the two kinds
disturb each other less than on a real disk until one bucket is what everybody waits for.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from simulator.devices.device import Io
from simulator.engine import Engine


@dataclass(frozen=True, slots=True)
class ThrottledSettings:
    """The limits, and the latency an I/O has that meets none of them."""

    bytes_per_second: float
    ios_per_second: float
    latency_seconds: float = 0.001
    burst_seconds: float = 0.1
    size_bytes: int = 2 << 30


class Throttled:
    """First come, first served, behind two leaking buckets."""

    def __init__(self, engine: Engine, settings: ThrottledSettings) -> None:
        self.slowdown = 1.0
        self._engine = engine
        self._settings = settings
        self._waiting: deque[Io] = deque()
        self._under_way = 0
        self._byte_level = 0.0
        self._io_level = 0.0
        self._leaked_at = 0.0
        self._timer = False

    @property
    def queued(self) -> int:
        """I/Os waiting or under way."""
        return len(self._waiting) + self._under_way

    def submit(self, io: Io) -> None:
        """Queue one I/O."""
        io.queued_at = self._engine.now
        self._waiting.append(io)
        if not self._timer:
            self._dispatch()

    def _dispatch(self) -> None:
        self._timer = False
        while self._waiting:
            wait = self._wait_seconds()
            if wait > 1e-9:
                self._timer = True
                self._engine.after(wait, self._dispatch)
                return
            io = self._waiting.popleft()
            self._byte_level += io.size_bytes
            self._io_level += 1
            self._under_way += 1
            io.served(self._service_seconds(io))
            self._engine.after(self._settings.latency_seconds * self.slowdown, self._finish, io)

    def _wait_seconds(self) -> float:
        settings = self._settings
        elapsed = self._engine.now - self._leaked_at
        self._leaked_at = self._engine.now
        byte_rate = settings.bytes_per_second / self.slowdown
        io_rate = settings.ios_per_second / self.slowdown
        self._byte_level = max(self._byte_level - elapsed * byte_rate, 0.0)
        self._io_level = max(self._io_level - elapsed * io_rate, 0.0)
        return max(self._byte_level / byte_rate, self._io_level / io_rate) - settings.burst_seconds

    def _service_seconds(self, io: Io) -> float:
        """What it would take alone: the buckets leak side by side, so the larger part counts."""
        settings = self._settings
        return max(io.size_bytes / settings.bytes_per_second, 1 / settings.ios_per_second) * self.slowdown

    def _finish(self, io: Io) -> None:
        self._under_way -= 1
        io.done()
