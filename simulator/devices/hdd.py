"""A hard disk, or a RAID group of them: moving the heads costs time, bytes cost little.

An I/O that begins at the end of the last I/O costs only the transfer of its bytes. Any other I/O also costs a seek,
which grows with the distance, and half a revolution. The elevator chooses among all queued I/Os: first an I/O that
continues the present stream, for at most ``batch`` I/Os in a row; then an I/O that has waited longer than
``deadline_seconds``; then the nearest I/O in the direction of travel. In a group, small I/Os of one queue position the
heads of several disks at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Literal

from simulator.devices.device import Disks, Io
from simulator.engine import Engine


@dataclass(frozen=True, slots=True)
class HddSettings:
    """One disk target."""

    kind: Literal["hdd"] = field(default="hdd", kw_only=True)
    bytes_per_second: float = 150e6
    seek_seconds: float = 0.012
    """Seek from edge to edge. A shorter seek costs the square root of its share, at least ``settle_seconds``."""
    settle_seconds: float = 0.001
    revolutions_per_minute: int = 7200
    spindles: int = 1
    batch: int = 16
    deadline_seconds: float = 0.5
    size_bytes: int = 2 << 30


class Hdd(Disks):
    """A disk target with one set of heads and one queue."""

    def __init__(self, engine: Engine, settings: HddSettings) -> None:
        super().__init__(engine)
        self._settings = settings
        self._waiting: list[Io] = []
        self._busy = False
        self._head_bytes = 0
        self._in_batch = 0

    def submit(self, io: Io) -> None:
        io.queued_at = self._engine.now
        self.queued += 1
        self._waiting.append(io)
        if not self._busy:
            self._next()

    def _next(self) -> None:
        io = self._choose()
        self._waiting.remove(io)
        self._busy = True
        seconds = self._positioning_seconds(io) + io.size_bytes / self._settings.bytes_per_second
        self._head_bytes = io.position_bytes + io.size_bytes
        self._engine.after(seconds * self.slowdown, self._finish, io)

    def _choose(self) -> Io:
        oldest = self._waiting[0]
        following = next((io for io in self._waiting if io.position_bytes == self._head_bytes), None)
        if following is not None and self._in_batch < self._settings.batch:
            self._in_batch += 1
            return following
        self._in_batch = 0
        if self._engine.now - oldest.queued_at > self._settings.deadline_seconds:
            return oldest
        size = self._settings.size_bytes
        # a batch is over: another place gets its turn
        others = [io for io in self._waiting if io is not following] or self._waiting
        return min(others, key=lambda io: (io.position_bytes - self._head_bytes) % size)

    def _positioning_seconds(self, io: Io) -> float:
        if io.position_bytes == self._head_bytes:
            return 0.0
        settings = self._settings
        share = min(abs(io.position_bytes - self._head_bytes) / settings.size_bytes, 1.0)
        seek = max(settings.seek_seconds * sqrt(share), settings.settle_seconds)
        # the more wait, the more spindles move at the same time
        overlapped = min(settings.spindles, 1 + len(self._waiting))
        return (seek + 30.0 / settings.revolutions_per_minute) / overlapped

    def _finish(self, io: Io) -> None:
        self._busy = False
        super()._finish(io)
        if self._waiting and not self._busy:  # what has ended may have submitted the next one, which has started
            self._next()
