"""A device with limits of bytes per second and I/Os per second, each modelled as a leaky bucket.

Cloud volumes and LUNs with a quality of service behave like this, and so do the virtual disks of the recorded test bed.
An I/O may pass while neither bucket exceeds its capacity (``burst_seconds`` at its rate), and then fills both. The next
I/O waits for the fuller bucket. A small I/O mainly uses the I/O limit, a large I/O mainly the byte limit. The two kinds
therefore disturb each other less than on a real disk, until all I/Os wait for the same bucket.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from simulator.devices.device import Disks, Io
from simulator.engine import Engine


@dataclass(frozen=True, slots=True)
class ThrottledSettings:
    """The limits, and the latency of an I/O below both limits."""

    kind: Literal["throttled"] = field(default="throttled", kw_only=True)
    bytes_per_second: float
    ios_per_second: float
    latency_seconds: float = 0.001
    burst_seconds: float = 0.1
    size_bytes: int = 2 << 30


class Throttled(Disks):
    """A device that serves I/O in order of arrival, behind two leaky buckets."""

    def __init__(self, engine: Engine, settings: ThrottledSettings) -> None:
        super().__init__(engine)
        self._settings = settings
        self._waiting: deque[Io] = deque()
        self._byte_level = 0.0
        self._io_level = 0.0
        self._leaked_at = 0.0
        self._timer = False

    def submit(self, io: Io) -> None:
        self.queued += 1
        self._waiting.append(io)
        if not self._timer:
            self._dispatch()

    def _dispatch(self) -> None:
        self._timer = False
        settings = self._settings
        byte_rate = settings.bytes_per_second / self.slowdown
        io_rate = settings.ios_per_second / self.slowdown
        self._leak(byte_rate, io_rate)
        while self._waiting:
            wait = max(self._byte_level / byte_rate, self._io_level / io_rate) - settings.burst_seconds
            if wait > 1e-9:  # less is a rounding error, and time would not advance
                self._timer = True
                self._engine.after(wait, self._dispatch)
                return
            io = self._waiting.popleft()
            self._byte_level += io.size_bytes
            self._io_level += 1
            self._engine.after(settings.latency_seconds * self.slowdown, self._finish, io)

    def _leak(self, byte_rate: float, io_rate: float) -> None:
        elapsed = self._engine.now - self._leaked_at
        if elapsed:
            self._leaked_at = self._engine.now
            self._byte_level = max(self._byte_level - elapsed * byte_rate, 0.0)
            self._io_level = max(self._io_level - elapsed * io_rate, 0.0)
