"""Block devices below the targets: flash, hard disks, RAID groups and throttled volumes, each with its own queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from simulator.devices.device import Disks
from simulator.devices.flash import Flash, FlashSettings
from simulator.devices.hdd import Hdd, HddSettings
from simulator.devices.raid import Raid, RaidSettings
from simulator.devices.throttled import Throttled, ThrottledSettings
from simulator.engine import Engine

DeviceSettings: TypeAlias = Annotated[FlashSettings | HddSettings | RaidSettings | ThrottledSettings,
                                      Field(discriminator="kind")]
_DISKS: Mapping[type[DeviceSettings], Callable[[Engine, Any], Disks]] = {
    FlashSettings: Flash, HddSettings: Hdd, RaidSettings: Raid, ThrottledSettings: Throttled,
}  # fmt: skip


def build(engine: Engine, settings: DeviceSettings) -> Disks:
    return _DISKS[type(settings)](engine, settings)
