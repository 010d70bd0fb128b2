"""What an MDT is made of, and how long its processors need for what is asked of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.devices import DeviceSettings, FlashSettings
from simulator.objects import Capacity

SERVICE_SECONDS: dict[str, float] = {
    "open": 0.0006,
    "mknod": 0.0016,
    "close": 0.0005,
    "unlink": 0.0009,
    "mkdir": 0.0025,
    "getattr": 0.0002,
    "setattr": 0.0009,
    "getxattr": 0.0002,
    "setxattr": 0.0006,
    "statfs": 0.00004,
    "sync": 0.0002,
    "layout": 0.0012,
    "rename": 0.0020,
    "readpage": 0.0010,
    "glimpse": 0.0001,
}
"""Processor time of one operation; ``layout`` instantiates a component, ``glimpse`` finds out how large a file is whose
data lie here. The kernel counts neither."""


REQUEST_SECONDS = 0.0001
"""The part of it that is taking a request in and sending the answer; a batch of names needs it once."""
DIRECTORIES_MAX = 1000
DIRECTORY_SECONDS = 0.0001
"""The part of a create or unlink that holds the directory: its block, its lock."""
DATA_SECONDS = 0.0004
"""Processor time of one read or write of data on the MDT."""


@dataclass(frozen=True, slots=True)
class MdtSettings:
    """One MDT."""

    device: DeviceSettings = field(default_factory=FlashSettings)
    capacity: Capacity = field(default_factory=lambda: Capacity(1 << 30, 81920))
    cores: int = 2
    work_factor: float = 1.0
    """Slower processors take more of the same times."""
