"""One I/O, the interface of all devices, and a device that delays I/Os behind the load of flows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simulator.engine import Engine


@dataclass(eq=False, slots=True)
class Io:
    """One I/O: a range of the device, and the function to call at its end."""

    write: bool
    position_bytes: int
    size_bytes: int
    done: Callable[[], None]
    queued_at: float = 0.0


class Device:
    """Takes I/Os and completes each when it is stored or read."""

    def submit(self, io: Io) -> None:
        """Queue one I/O."""
        raise NotImplementedError


class Disks(Device):
    """A device that is not in front of another. Faults change its speed."""

    def __init__(self, engine: Engine) -> None:
        self.slowdown = 1.0
        """Factor of all service times; 1 for a healthy device."""
        self.missing_disks = 0
        """Lost disks of a RAID group."""
        self.queued = 0
        """Number of I/Os that wait or are in progress."""
        self._engine = engine

    def _finish(self, io: Io) -> None:
        self.queued -= 1
        io.done()


class DelayedDevice(Device):
    """Delays each I/O by the wait behind flows, then submits it to the device."""

    def __init__(self, engine: Engine, device: Device, wait_seconds: Callable[[], float]) -> None:
        self._engine = engine
        self._device = device
        self._wait_seconds = wait_seconds

    def submit(self, io: Io) -> None:
        self._engine.after(self._wait_seconds(), self._device.submit, io)
