"""A block accelerator in front of disks: small writes go to flash and reach the disks later, in order and merged.

Cray's NXD is such a filter: I/O up to the bypass size is taken in by a pair of SSDs of the enclosure, what is larger
passes straight to the disks. Small reads of what is on flash still are served from there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.devices.device import Device
from simulator.devices.flash import Flash, FlashSettings
from simulator.devices.io import Io
from simulator.engine import Engine


@dataclass(frozen=True, slots=True)
class AcceleratorSettings:
    """One pair of SSDs for one target."""

    flash: FlashSettings = field(default_factory=lambda: FlashSettings(1.0e9, 0.0001, 16))
    bypass_bytes: int = 32 << 10
    capacity_bytes: int = 1 << 40
    flush_seconds: float = 1.0
    """How often what has come in is written on."""
    flush_bytes: int = 64 << 20
    """The most that is written on at a time."""


class Accelerator:
    """Takes small I/O in, passes the rest on."""

    def __init__(self, engine: Engine, disks: Device, settings: AcceleratorSettings) -> None:
        self.taken_in = self.bypassed = 0
        self._engine = engine
        self._disks = disks
        self._settings = settings
        self._flash = Flash(engine, settings.flash)
        self._held: dict[int, int] = {}
        self._flushing = False

    @property
    def slowdown(self) -> float:
        """Of the disks behind."""
        return self._disks.slowdown

    @slowdown.setter
    def slowdown(self, factor: float) -> None:
        self._disks.slowdown = factor

    @property
    def queued(self) -> int:
        """I/Os waiting or under way, without what waits to be written on."""
        return self._disks.queued + self._flash.queued

    def submit(self, io: Io) -> None:
        """Queue one I/O."""
        small = io.size_bytes <= self._settings.bypass_bytes
        full = len(self._held) * self._settings.bypass_bytes >= self._settings.capacity_bytes
        if small and io.write and not full:
            self.taken_in += 1
            self._held[io.position_bytes] = io.size_bytes
            self._flash.submit(io)
            if not self._flushing:
                self._flushing = True
                self._engine.after(self._settings.flush_seconds, self._flush)
        elif small and not io.write and self._held.get(io.position_bytes, 0) >= io.size_bytes:
            self._flash.submit(io)
        else:
            self.bypassed += 1
            self._disks.submit(io)

    def _flush(self) -> None:
        """Write on the lower part of what is held, neighbours as one; the next part when that is done."""
        left, taken = self._settings.flush_bytes, []
        for position in sorted(self._held):
            if left <= 0:
                break
            left -= self._held[position]
            taken.append((position, self._held.pop(position)))
        runs = joined(taken)
        pending = len(runs)

        def one_done() -> None:
            nonlocal pending
            pending -= 1
            if pending == 0:
                self._flushing = bool(self._held)
                if self._flushing:
                    self._engine.after(self._settings.flush_seconds, self._flush)

        for position, size in runs:
            self._disks.submit(Io(True, position, size, one_done))


def joined(pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted pieces with neighbours joined.

    >>> joined([(0, 4096), (4096, 4096), (65536, 4096)])
    [(0, 8192), (65536, 4096)]
    """
    result: list[tuple[int, int]] = []
    for position, size in pieces:
        if result and sum(result[-1]) >= position:
            start = result[-1][0]
            result[-1] = (start, max(sum(result[-1]), position + size) - start)
        else:
            result.append((position, size))
    return result


def accelerated(engine: Engine, disks: Device, settings: AcceleratorSettings | None) -> Device:
    """The device with an accelerator in front, if there is one."""
    return disks if settings is None else Accelerator(engine, disks, settings)
