"""Flash devices, and a block accelerator: flash in front of disks that absorbs small writes.

Flash has a fixed latency, several channels, one bandwidth for all of them, and no seeks.

The accelerator stores I/O up to the bypass size on a pair of SSDs of the enclosure and writes it to the disks later, in
order and merged. Larger I/O goes directly to the disks. Small reads of data that is still on flash are served from
flash. Cray's NXD is such a filter.

A write is answered when its data is on the SSDs. No publication says how many small writes an NXD takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from simulator.devices.device import Device, Disks, Io
from simulator.engine import Engine


@dataclass(frozen=True, slots=True)
class FlashSettings:
    """One flash target."""

    kind: Literal["flash"] = field(default="flash", kw_only=True)
    bytes_per_second: float = 400e6
    latency_seconds: float = 0.0002
    channels: int = 16
    size_bytes: int = 1 << 30
    copies: int = 1
    """Number of times that each write is stored, for a mirrored volume. All copies use the channels and the bandwidth
    of this device, because servers that mirror each other store as much for others as others store for them."""


class Flash(Disks):
    """A flash device. An I/O takes the first free channel, then its share of the bandwidth, then the latency."""

    def __init__(self, engine: Engine, settings: FlashSettings) -> None:
        super().__init__(engine)
        self._settings = settings
        self._channel_free_at = [0.0] * settings.channels
        self._bus_free_at = 0.0

    def submit(self, io: Io) -> None:
        now, settings = self._engine.now, self._settings
        copies = settings.copies if io.write else 1
        done_at = now
        for _ in range(copies):
            free_at = min(self._channel_free_at)
            bus_from = max(now, free_at, self._bus_free_at)
            self._bus_free_at = bus_from + self.slowdown * io.size_bytes / settings.bytes_per_second
            done_at = self._bus_free_at + self.slowdown * settings.latency_seconds
            self._channel_free_at[self._channel_free_at.index(free_at)] = done_at
        self.queued += 1
        self._engine.after(done_at - now, self._finish, io)


@dataclass(frozen=True, slots=True)
class AcceleratorSettings:
    """One pair of SSDs for one target."""

    flash: FlashSettings = field(default_factory=lambda: FlashSettings(1.0e9, 0.0001, 16))
    """An SSD with a SAS port of 12 Gb/s, which limits it to about 1 GB/s. The latency is a choice."""
    bypass_bytes: int = 32 << 10
    capacity_bytes: int = 1 << 40
    flush_seconds: float = 1.0
    """Interval between write-backs to the disks."""
    flush_ios: int = 32
    """Maximum number of I/Os per write-back. New I/O waits for at most these."""
    busy_share: float = 0.5
    """Share of the flash in use below which a write-back waits for idle disks."""


class Accelerator(Device):
    """Stores small I/O on flash and passes large I/O to the disks."""

    def __init__(self, engine: Engine, disks: Disks, settings: AcceleratorSettings) -> None:
        self.taken_in = 0
        self._engine = engine
        self._disks = disks
        self._settings = settings
        self._flash = Flash(engine, settings.flash)
        self._held: dict[int, int] = {}
        self._flushing = False
        self._order: list[int] = []
        """Remaining places of the present sweep over the disk."""

    def submit(self, io: Io) -> None:
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
            self._disks.submit(io)

    def _flush(self) -> None:
        """Write part of the held data to the disks in ascending order, merging neighbours; then the next part."""
        share = len(self._held) * self._settings.bypass_bytes / self._settings.capacity_bytes
        if self._disks.queued and share < self._settings.busy_share:  # it waits for idle disks while there is room
            self._engine.after(self._settings.flush_seconds, self._flush)
            return
        runs: list[tuple[int, int]] = []
        for position in self._ahead():
            after = runs and sum(runs[-1]) == position
            if len(runs) == self._settings.flush_ios and not after:
                break
            size = self._held.pop(position)
            runs = [*runs[:-1], (runs[-1][0], runs[-1][1] + size)] if after else [*runs, (position, size)]
        pending = len(runs)

        def one_done() -> None:
            nonlocal pending
            pending -= 1
            if pending == 0:
                self._flushing = bool(self._held)
                if self._flushing:
                    self._flush()

        for position, size in runs:
            self._disks.submit(Io(True, position, size, one_done))

    def _ahead(self) -> list[int]:
        """Places of the held data in ascending order, from the end of the last batch around the disk."""
        some: list[int] = []
        while self._held and not some:
            self._order = self._order or sorted(self._held, reverse=True)
            while self._order and len(some) < 8 * self._settings.flush_ios:
                position = self._order.pop()
                if position in self._held:
                    some.append(position)
        return some
