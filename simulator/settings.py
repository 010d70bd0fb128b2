"""Settings of a cluster, and of the test bed on which the tapes were recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address

from simulator.clients.mount import ClientSettings
from simulator.clients.osc import OscSettings
from simulator.costs import PRODUCTION, CallCosts
from simulator.devices.flash import FlashSettings
from simulator.devices.throttled import ThrottledSettings
from simulator.servers.mdt import MdtSettings
from simulator.servers.objects import Capacity
from simulator.servers.ost import OstSettings


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Settings of a cluster before the first job starts."""

    osts: tuple[OstSettings, ...]
    pools: Mapping[str, tuple[int, ...]]
    fsname: str = "lustre"
    mdts: tuple[MdtSettings, ...] = (MdtSettings(), MdtSettings())
    clients: tuple[ClientSettings, ...] = (ClientSettings(),)
    nid: str = "10.0.2.15@tcp"
    version: str = "2.17.57"
    epoch_seconds: int = 1_795_000_000
    seed: int = 1
    costs: CallCosts = PRODUCTION
    """Cost of calls and moves on the mover's mount, which is the first one."""
    partitions: int = 1
    """CPU partitions (CPT) of the OSS."""


FLASH_KIB, HDD_KIB = 978_880, 1_957_708


def recorded_test_bed(seed: int = 1, *, hdd_ios_per_second: int = 40) -> ClusterSettings:
    """Two MDTs, two flash OSTs, four OSTs held to the rates of a slow disk, two mounts on one node."""
    flash = OstSettings(FlashSettings(size_bytes=FLASH_KIB << 10), Capacity(FLASH_KIB << 10, 16384))
    throttled = ThrottledSettings(16 << 20, hdd_ios_per_second, size_bytes=HDD_KIB << 10)
    hdd = OstSettings(throttled, Capacity(HDD_KIB << 10, 32768))
    emulated = OscSettings(gather_seconds=0.002)  # its slow processors let more pieces gather
    return ClusterSettings(
        osts=(flash, flash, hdd, hdd, hdd, hdd),
        pools={"flash": (0, 1), "hdd": (2, 3, 4, 5)},
        clients=(
            ClientSettings("/mnt/lustre", instance="ff110001298dd800", osc=emulated),
            ClientSettings("/mnt/lustre2", instance="ff1100012ac8e000", osc=emulated),
        ),
        seed=seed,
    )


def with_nodes(bed: ClusterSettings, count: int) -> ClusterSettings:
    """A test bed with at least this many nodes, each with one mount and a NID of its own.

    >>> [client.nid for client in with_nodes(recorded_test_bed(), 3).clients]
    ['10.0.2.15@tcp', '10.0.2.16@tcp', '10.0.2.17@tcp']
    """
    first = bed.clients[0]
    return replace(bed, clients=tuple(
        replace(bed.clients[number] if number < len(bed.clients) else first,
                nid=f"{ip_address('10.0.2.15') + number}@tcp") for number in range(max(count, len(bed.clients)))))


def measured_test_bed() -> ClusterSettings:
    """The test bed as set up for the measurements of November 2026: disks with 34 I/Os per second."""
    return recorded_test_bed(hdd_ios_per_second=34)


@dataclass(frozen=True, slots=True)
class ExporterLoad:
    """How exporters on loaded servers answer."""

    shortest_seconds: float
    longest_seconds: float
    """Duration of an answer. The counters are read at some time in it."""
    lost_share: float = 0.0
    """Share of the requests that get no answer."""
    doubled_share: float = 0.0
    """Share of the requests that get the answer before once more."""
