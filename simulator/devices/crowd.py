"""A device that flows use as well: an I/O that is modelled one by one waits behind the crowd that is not."""

from __future__ import annotations

from collections.abc import Callable

from simulator.devices.device import Device
from simulator.devices.io import Io
from simulator.engine import Engine


class Crowded:
    """Holds an I/O back for as long as the flows make everybody wait, then gives it to the device."""

    def __init__(self, engine: Engine, device: Device, wait_seconds: Callable[[], float]) -> None:
        self._engine = engine
        self._device = device
        self._wait_seconds = wait_seconds
        self._held_back = 0

    @property
    def slowdown(self) -> float:
        """Of the device itself."""
        return self._device.slowdown

    @slowdown.setter
    def slowdown(self, factor: float) -> None:
        self._device.slowdown = factor

    @property
    def queued(self) -> int:
        """I/Os waiting or under way."""
        return self._held_back + self._device.queued

    def submit(self, io: Io) -> None:
        """Queue one I/O."""
        self._held_back += 1
        self._engine.after(self._wait_seconds(), self._submit, io)

    def _submit(self, io: Io) -> None:
        self._held_back -= 1
        self._device.submit(io)
