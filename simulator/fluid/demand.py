"""What one RPC costs a device: shares of each thing the device has only so much of in a second."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import NamedTuple

from simulator.devices import DeviceSettings, FlashSettings, HddSettings, RaidSettings, ThrottledSettings
from simulator.devices.raid import Raid
from simulator.engine import Engine


class Io(NamedTuple):
    """A kind of I/O."""

    write: bool
    size_bytes: int
    offset: int = 0
    """Where in a stripe of the group it begins."""
    scattered: bool = False
    """Whether the heads have to go somewhere for it."""


@lru_cache(maxsize=4096)
def shares(device: DeviceSettings, io: Io) -> tuple[float, ...]:
    """Seconds of each limit of the device that one I/O takes: two for a throttled one, one for the others.

    >>> shares(ThrottledSettings(16e6, 40.0), Io(True, 1_600_000))
    (0.1, 0.025)
    """
    if isinstance(device, ThrottledSettings):
        return io.size_bytes / device.bytes_per_second, 1 / device.ios_per_second
    if isinstance(device, FlashSettings):
        return (max(io.size_bytes / device.bytes_per_second, device.latency_seconds / device.channels),)
    if isinstance(device, HddSettings):
        return (_positioning(device) * io.scattered / device.spindles + io.size_bytes / device.bytes_per_second,)
    busy, _ = Raid(Engine(), device).cost(io.write, io.offset, io.size_bytes, _positioning(device) * io.scattered)
    return (max(busy / device.disks, io.size_bytes / device.link_bytes_per_second),)


@lru_cache(maxsize=4096)
def latency_seconds(device: DeviceSettings, io: Io) -> float:
    """Time one I/O takes on an idle device."""
    if isinstance(device, ThrottledSettings):
        return device.latency_seconds
    if isinstance(device, FlashSettings):
        return device.latency_seconds + io.size_bytes / device.bytes_per_second
    if isinstance(device, HddSettings):
        return _positioning(device) * io.scattered + io.size_bytes / device.bytes_per_second
    return Raid(Engine(), device).cost(io.write, io.offset, io.size_bytes, _positioning(device) * io.scattered)[1]


def _positioning(device: HddSettings | RaidSettings) -> float:
    """A seek over a tenth of the disk, as an elevator with some to choose from makes them, and half a revolution."""
    return max(device.seek_seconds * sqrt(0.1), device.settle_seconds) + 30.0 / device.revolutions_per_minute
