"""Block devices below the targets: flash, hard disks, RAID groups and throttled volumes, each with its own queue."""

from __future__ import annotations

from typing import TypeAlias

from simulator.devices.device import Disks
from simulator.devices.flash import Flash, FlashSettings
from simulator.devices.hdd import Hdd, HddSettings
from simulator.devices.raid import Raid, RaidSettings
from simulator.devices.throttled import Throttled, ThrottledSettings
from simulator.engine import Engine

DeviceSettings: TypeAlias = FlashSettings | HddSettings | RaidSettings | ThrottledSettings


def build(engine: Engine, settings: DeviceSettings) -> Disks:
    if isinstance(settings, HddSettings):
        return Hdd(engine, settings)
    if isinstance(settings, FlashSettings):
        return Flash(engine, settings)
    if isinstance(settings, RaidSettings):
        return Raid(engine, settings)
    return Throttled(engine, settings)

