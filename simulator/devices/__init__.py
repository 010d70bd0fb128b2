"""What lies under a target: disks and flash, each a queue with its own idea of what costs time."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from simulator.devices.flash import Flash, FlashSettings
from simulator.devices.hdd import Hdd, HddSettings
from simulator.devices.io import Io
from simulator.devices.throttled import Throttled, ThrottledSettings
from simulator.engine import Engine

DeviceSettings: TypeAlias = FlashSettings | HddSettings | ThrottledSettings


class Device(Protocol):
    """Takes I/Os and completes each when it is stored or read."""

    slowdown: float
    """1 for a healthy device; 2 for one that takes twice as long for everything."""

    def submit(self, io: Io) -> None:
        """Queue one I/O."""

    @property
    def queued(self) -> int:
        """I/Os waiting or under way."""


def build(engine: Engine, settings: DeviceSettings) -> Device:
    """The device that settings describe."""
    if isinstance(settings, HddSettings):
        return Hdd(engine, settings)
    if isinstance(settings, FlashSettings):
        return Flash(engine, settings)
    return Throttled(engine, settings)


__all__ = ["Device", "DeviceSettings", "FlashSettings", "HddSettings", "Io", "ThrottledSettings", "build"]
