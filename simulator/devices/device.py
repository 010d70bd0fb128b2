"""One I/O, the interface of all devices, and a device that delays I/Os behind the load of flows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from simulator.engine import Engine


class Io:
    """One I/O: a range of the device, and the function to call at its end."""

    __slots__ = ("done", "position_bytes", "queued_at", "size_bytes", "write")

    def __init__(self, write: bool, position_bytes: int, size_bytes: int, done: Callable[[], None]) -> None:
        self.write = write
        self.position_bytes = position_bytes
        self.size_bytes = size_bytes
        self.done = done
        self.queued_at = 0.0


class Device(Protocol):
    """Takes I/Os and completes each when it is stored or read."""

    slowdown: float
    """Factor of all service times; 1 for a healthy device."""

    def submit(self, io: Io) -> None:
        """Queue one I/O."""

    @property
    def queued(self) -> int:
        """Number of I/Os that wait or are in progress."""


class DelayedDevice:
    """Delays each I/O by the wait behind flows, then submits it to the device."""

    def __init__(self, engine: Engine, device: Device, wait_seconds: Callable[[], float]) -> None:
        self._engine = engine
        self._device = device
        self._wait_seconds = wait_seconds
        self._held_back = 0

    @property
    def slowdown(self) -> float:
        """Slowdown of the device itself."""
        return self._device.slowdown

    @slowdown.setter
    def slowdown(self, factor: float) -> None:
        self._device.slowdown = factor

    @property
    def queued(self) -> int:
        """Number of I/Os that wait or are in progress."""
        return self._held_back + self._device.queued

    def submit(self, io: Io) -> None:
        """Queue one I/O."""
        self._held_back += 1
        self._engine.after(self._wait_seconds(), self._submit, io)

    def _submit(self, io: Io) -> None:
        self._held_back -= 1
        self._device.submit(io)
