"""What an OST is made of: its disks, its journal, its caches, and what its service threads need for a request."""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.devices import DeviceSettings
from simulator.devices.accelerator import AcceleratorSettings
from simulator.journal import JournalSettings
from simulator.objects import Capacity


@dataclass(frozen=True, slots=True)
class OstSettings:
    """One OST. ``preparing`` seconds are spent on an RPC before its I/O is given to the disk."""

    device: DeviceSettings
    capacity: Capacity
    journal: JournalSettings = field(default_factory=JournalSettings)
    preparing_seconds: float = 0.0002
    preparing_seconds_per_mib: float = 0.0012
    precreate_batch: int = 32
    precreate_seconds: float = 0.00003
    """What making one object costs the target; they are made ahead, and creates wait for one when none is left."""
    precreate_ahead: int = 20_000
    """The most objects that are there before anybody wants them (``max_create_count``)."""
    journal_device: DeviceSettings | None = None
    """A journal on a device of its own, as ClusterStor has on SSDs; None: on the target's disks."""
    accelerator: AcceleratorSettings | None = None
    read_cache_bytes: int = 0
    """Pages of objects the server keeps (``read_cache_enable``); ldiskfs on disks has it on, the test bed was small."""
    write_back_bytes_max: int = 0
    """Writes up to this size are answered from memory (``writeback_max_io_kb``); 0: none."""
