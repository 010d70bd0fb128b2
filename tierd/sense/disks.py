"""Object targets: disk I/O by size and by duration, and the largest RPC that they accept.

Sources are the files of this node and the exporters of servers.

Counters of a target are compared over some minutes: with ``brw_stats``, sizes and durations are two tables, and only
the changes of the mix of sizes connect them. ``io_latency_stats`` (2.17) has durations by size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lustre.formats import brw_stats, df, io_latency_stats
from lustre.parameters import Tree, parse_device
from tierd.clock import Clock
from tierd.model import DiskWrites
from tierd.sense.clients import (
    FABRIC_METRIC,
    Poller,
    ReadNode,
    counts_of,
    decreased,
    increases,
    read_fabric_driver,
    single,
)
from tierd.sense.exposition import SelectiveClient, labels_of, samples, target_of
from tierd.sense.http_client import HttpClient, SourceError, redacted
from tierd.sense.readings import is_ost

KINDS = ("osd-ldiskfs", "osd-zfs")
LATENCY_UNIT_USEC = 1.024


@dataclass(slots=True)
class DiskCounters:
    """Disk I/O of one target since it was mounted."""

    sizes: dict[int, float] = field(default_factory=dict)
    msec: dict[int, float] = field(default_factory=dict)
    read_msec: dict[int, float] = field(default_factory=dict)
    usec_by_size: dict[int, dict[int, float]] = field(default_factory=dict)
    max_rpc_bytes: int = 0
    """``brw_size``; 0 if unknown."""
    fabric_driver: Mapping[str, int] = field(default_factory=dict)
    """Parameters of the Omni-Path driver of the server, which are the same for all its targets."""


def read_disks(tree: Tree) -> dict[str, DiskCounters]:
    """Counters of the object targets of this node; empty on a client."""
    found: dict[str, DiskCounters] = {}
    driver = read_fabric_driver(tree)
    for kind in KINDS:
        for device in tree.devices(kind):
            place = parse_device(device)
            data = tree.read(f"{kind}/{device}/brw_stats")
            if data is None or not place.target.startswith("OST"):
                continue
            tables = brw_stats.parse(data)
            times = tables.named(b"I/O time (1/1000s)")
            counters = found[f"{place.fsname}-{place.target}"] = DiskCounters(
                counts_of(tables.named(b"disk I/O size"), -1), counts_of(times, -1), counts_of(times, 0),
                max_rpc_bytes=(df.integer(tree.read(f"obdfilter/{device}/brw_size") or b"") or 0) << 20,
                fabric_driver=driver)
            for table in io_latency_stats.parse(tree.read(f"{kind}/{device}/io_latency_stats") or b"").tables:
                if table.direction == b"write":
                    counters.usec_by_size[table.size_bytes] = {
                        round(upper * LATENCY_UNIT_USEC): float(count)
                        for upper, count in zip(table.uppers, table.counts, strict=True) if count}
    return found


_SIZES, _SECONDS = "lustre_osd_io_size_bytes_bucket", "lustre_osd_io_seconds_bucket"
_MAX_RPC = "lustre_ost_max_rpc_bytes"
_LATENCY = "lustre_osd_io_latency_seconds_bucket"
_BEGINNINGS = tuple(f"{name}{{".encode() for name in (_SIZES, _SECONDS, _LATENCY, _MAX_RPC, FABRIC_METRIC))
_UNITS = {_SIZES: 1.0, _SECONDS: 1e3, _LATENCY: 1e6}
"""Factor from the unit of the exporter to bytes, milliseconds and microseconds."""
DISK_COLLECTORS = "lnet", "osd", "osd_latency", "ost"
"""Collectors with these families."""


def parse_disks(body: bytes, url: str) -> dict[str, DiskCounters]:
    """Counters of the object targets in one exposition. Raises SourceError."""
    buckets: defaultdict[tuple[str, str, str, int], dict[float, float]] = defaultdict(dict)
    driver: dict[str, int] = {}
    found: defaultdict[str, DiskCounters] = defaultdict(lambda: DiskCounters(fabric_driver=driver))
    try:
        for name, head, tail, value in samples(body, _BEGINNINGS):
            labels = {**labels_of(head), **labels_of(tail)}
            if name == FABRIC_METRIC:
                driver[labels.get("setting", "")] = int(value)
            elif name == _MAX_RPC and "fs" in labels:
                found[target_of(labels)].max_rpc_bytes = int(value)
            elif ((labels.get("direction") == "write" or name == _SECONDS) and is_ost(target_of(labels))
                  and "fs" in labels):
                key = target_of(labels), name, labels.get("direction", ""), int(labels.get("size", "0"))
                buckets[key][float(labels.get("le", "inf"))] = value
    except (ValueError, OverflowError) as error:  # raised for an infinite number
        raise SourceError(f"{redacted(url)}: invalid data: {error}") from error
    for (target, name, direction, size), cumulative in buckets.items():
        counters, counts = found[target], single(cumulative, _UNITS[name], lambda last: 2 * last)
        if name == _SIZES:
            counters.sizes = counts
        elif name == _LATENCY:
            counters.usec_by_size[size] = counts
        elif direction == "write":
            counters.msec = counts
        else:
            counters.read_msec = counts
    return found


KEPT = 20
"""Number of readings kept for each target."""
MIN_REQUESTS = 20
"""Requests from which their mean duration says something. A choice."""


class DiskPoller(Poller[DiskCounters]):
    """Reads the disk I/O of servers."""

    def __init__(self, readers: Mapping[str, ReadNode[DiskCounters]], clock: Clock) -> None:
        super().__init__(readers, clock)
        self._writes: dict[str, tuple[DiskWrites, ...]] = {}
        self.max_rpc_bytes: dict[str, int] = {}
        """The largest RPC that each target accepts, as far as known."""
        self.drivers: dict[str, Mapping[str, int]] = {}
        """Parameters of the Omni-Path driver of servers that have such an adapter, by name of the server."""

    def __call__(self) -> Mapping[str, tuple[DiskWrites, ...]]:
        """Read the next few nodes. Returns the last readings of each target, oldest first."""
        for turn in self.turns({}):
            self.drivers.pop(host_of(turn.name), None)
            if driver := next((each.fabric_driver for each in turn.after.values()), {}):
                self.drivers[host_of(turn.name)] = driver
            self.max_rpc_bytes.update({target: each.max_rpc_bytes for target, each in turn.after.items()
                                       if each.max_rpc_bytes})
            for target, after in turn.after.items():  # the first reading says what was done since the mount
                writes = difference(turn.before.get(target, DiskCounters()), after, turn.time)
                if writes is not None and (writes.sizes or writes.request_msec):
                    self._writes[target] = (*self._writes.get(target, ()), writes)[-KEPT:]
        return dict(self._writes)


def host_of(name: str) -> str:
    """Name of a server for a person: the host of the URL of its exporter.

    >>> host_of("http://oss1:9169/metrics"), host_of("this node")
    ('oss1', 'this node')
    """
    return urlsplit(name).hostname or name


def difference(before: DiskCounters, after: DiskCounters, time: float) -> DiskWrites | None:
    """Disk I/O between two readings. None if a counter fell: the target was mounted again."""
    pairs = [(before.sizes, after.sizes), (before.msec, after.msec), (before.read_msec, after.read_msec),
             *((before.usec_by_size.get(size, {}), table) for size, table in after.usec_by_size.items())]
    if any(decreased(*pair) for pair in pairs):
        return None
    sizes, msec, read_msec, *by_size = (increases(*pair) for pair in pairs)
    requests = sum(msec.values()) + sum(read_msec.values())
    took = sum(upper * count for table in (msec, read_msec) for upper, count in table.items())
    return DiskWrites(
        time, sizes, msec, {size: more for size, more in zip(after.usec_by_size, by_size, strict=True) if more},
        took / requests if requests >= MIN_REQUESTS else 0.0)


def disks_of_exporter(url: str, client: HttpClient) -> ReadNode[DiskCounters]:
    selective = SelectiveClient(client, DISK_COLLECTORS)
    return lambda _: parse_disks(selective.get(url).body, url)
