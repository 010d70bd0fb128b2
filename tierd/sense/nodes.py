"""Counters of single nodes: of mounts on clients, and of object targets on servers.

They are read-ahead, statahead and RPCs of mounts, disk I/O of targets by size and by duration, and the largest RPC that
targets accept. Job statistics do not have them. Sources are the files of this node and the exporters of others. There
may be thousands of nodes: each call reads the next few, and what two readings give is kept until the next one.

All counters of a mount or target are one table, which is subtracted as a whole.

With ``brw_stats``, sizes and durations of disk I/O are two tables, and only the changes of the mix of sizes connect
them: so several readings are kept. ``io_latency_stats`` (2.17) has durations by size.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from lustre.formats import brw_stats, df, io_latency_stats, read_ahead_stats, rpc_stats, statahead_stats
from lustre.formats.histogram import Histogram
from lustre.parameters import Tree, parse_device, read_whole
from tierd.advised import DRIVER_SETTINGS, FABRIC_DRIVER, first_number
from tierd.clock import Clock
from tierd.model import ClientLoad, DiskWrites, RpcLoad
from tierd.sense.exposition import SelectiveClient, labels_of, samples, target_of
from tierd.sense.http_client import HttpClient, SourceError, redacted
from tierd.sense.parameters import OSD_KINDS
from tierd.sense.readings import is_ost

Key = tuple[Any, ...]
"""A table of counters, and a place in it: the name of an event, or the upper bound of a bucket."""
RpcKey = tuple[str, str, str]
"""``osc`` or ``mdc``; the pool (``osc``) or the metadata target (``mdc``); the direction."""
Numbers = Mapping[Any, float]


@dataclass(slots=True)
class Counters:
    """Counters of a mount, or of an object target, since it was mounted."""

    counts: dict[Key, float] = field(default_factory=dict)
    limits: dict[RpcKey, tuple[float, float]] = field(default_factory=dict)
    """Most RPCs in flight and most pages of an RPC, by kind of the RPCs of a mount; 0 is unknown. If the targets of a
    pool differ, the lowest counts.
    """
    settings: dict[str, Any] = field(default_factory=dict)
    """Of a mount, further fields of ``ClientLoad``. Of a target, ``max_rpc_bytes`` and ``fabric_driver``, the
    parameters of the Omni-Path driver of its server.
    """

    def add(self, table: Key, numbers: Numbers) -> None:
        for place, number in numbers.items():
            if number:
                self.counts[*table, place] = self.counts.get((*table, place), 0.0) + number

    def limit(self, rpcs: RpcKey, in_flight: float, pages: float = 0.0) -> None:
        known = self.limits.get(rpcs, (0.0, 0.0))
        self.limits[rpcs] = lowest(known[0], in_flight), lowest(known[1], pages)


def lowest(*limits: float) -> float:
    """The lowest limit that is known; 0 if none is."""
    return min(filter(None, limits), default=0.0)


def risen(before: Counters, after: Counters) -> defaultdict[Key, dict[Any, float]] | None:
    """What rose between two readings, by table and place. None if a counter fell or is gone, as after a remount."""
    if any(after.counts.get(key, 0.0) < count for key, count in before.counts.items()):
        return None
    tables = defaultdict[Key, dict[Any, float]](dict)
    for key, count in after.counts.items():
        if count > before.counts.get(key, 0.0):
            tables[key[:-1]][key[-1]] = count - before.counts.get(key, 0.0)
    return tables


MIB = 1 << 20


def read_mounts(tree: Tree, pools: Mapping[str, str]) -> dict[str, Counters]:
    """Counters of every mount of this node. ``pools`` gives the pool of a target (full name)."""
    found, driver = {}, read_fabric_driver(tree)
    for name in tree.devices("llite"):
        device, place = parse_device(name), f"llite/{name}"
        batch = df.integer(tree.read(f"{place}/statahead_batch_max") or b"")
        mount = found[name] = Counters(settings={
            "fsname": device.fsname, "fabric_driver": driver,
            "read_ahead_bytes": MIB * read_number(tree, f"{place}/max_read_ahead_mb"),
            "read_ahead_file_bytes": MIB * read_number(tree, f"{place}/max_read_ahead_per_file_mb"),
            "statahead_max": read_number(tree, f"{place}/statahead_max"),
            "statahead_batch": None if batch is None else float(batch)})
        ahead = read_ahead_stats.parse(tree.read(f"{place}/read_ahead_stats") or b"")
        mount.add(("read_ahead",), {event.decode("ascii", "replace"): float(count)
                                    for event, count in zip(ahead.names, ahead.samples, strict=True)})
        mount.add(("statahead",), statahead_counts(tree.read(f"{place}/statahead_stats") or b""))
        for kind in ("osc", "mdc"):
            for link in tree.devices(kind):
                other = parse_device(link)
                if (other.fsname, other.instance) == (device.fsname, device.instance):
                    target = f"{other.fsname}-{other.target}"
                    read_rpcs(mount, tree, f"{kind}/{link}", (
                        kind, pools.get(target, "") if kind == "osc" else other.target))
    return found


def read_fabric_driver(tree: Tree) -> dict[str, int]:
    """Parameters of the Omni-Path driver of this node, of a list its first number. Empty without such an adapter."""
    found = {}
    for name in DRIVER_SETTINGS:
        with suppress(OSError):
            data = read_whole(tree.roots.sysfs / "module" / FABRIC_DRIVER / "parameters" / name)
            if (value := first_number((data or b"").decode("ascii", "replace").strip())) is not None:
                found[name] = value
    return found


def statahead_counts(data: bytes) -> dict[str, float]:
    """Statahead counters, as far as this Lustre release prints them."""
    seen = statahead_stats.parse(data)
    named = {"started": seen.total, "wrong": seen.wrong, "hits": seen.hit_total, "misses": seen.miss_total}
    return {name: float(count) for name, count in named.items() if count is not None}


def read_number(tree: Tree, parameter: str) -> float:
    """The value of a numeric parameter; 0 if it is missing."""
    return float(df.integer(tree.read(parameter) or b"") or 0)


def read_rpcs(mount: Counters, tree: Tree, place: str, of: tuple[str, str]) -> None:
    """Add the RPCs to one target, which belongs to a pool or is a metadata target."""
    if (data := tree.read(f"{place}/rpc_stats")) is None:
        return
    rpcs = rpc_stats.parse(data)
    for direction, column in (("read", 0), ("write", -1)):
        mount.limit((*of, direction), read_number(tree, f"{place}/max_rpcs_in_flight"),
                    read_number(tree, f"{place}/max_pages_per_rpc"))
        mount.add(("in_flight", *of, direction), counts_of(rpcs.rpcs_in_flight, column))
        mount.add(("pages", *of, direction), counts_of(rpcs.pages_per_rpc, column))
    if rpcs.modify_rpcs_in_flight is not None:
        mount.limit((*of, "modify"), read_number(tree, f"{place}/max_mod_rpcs_in_flight"))
        mount.add(("in_flight", *of, "modify"), counts_of(rpcs.modify_rpcs_in_flight, 0))


def counts_of(table: Histogram | None, column: int) -> dict[int, float]:
    """The counts of one direction."""
    if table is None:
        return {}
    return {upper: float(count) for upper, count in zip(table.uppers, table.columns[column], strict=True)}


_MODIFY = "modify_rpcs_in_flight_at_send_bucket"
_TABLES = {"rpcs_in_flight_at_send_bucket": "in_flight", "pages_per_rpc_bucket": "pages", _MODIFY: "in_flight"}
_LIMITS = frozenset({"max_rpcs_in_flight", "max_modify_rpcs_in_flight", "targets", "max_pages_per_rpc"})
"""Limits of RPCs, and the number of targets over which those in flight are summed."""
FABRIC_METRIC = "lustre_lnet_omni_path_parameter"
_OF_MOUNTS = (b"lustre_llite_read_ahead_", b"lustre_llite_statahead_", f"{FABRIC_METRIC}{{".encode(),
              *(f"lustre_{kind}_{name}{{".encode() for kind in ("osc", "mdc") for name in (*_TABLES, *_LIMITS)))
_COUNTED = {f"lustre_llite_{table}_{event}_total": (table, event) for table, events in (
    ("statahead", ("started", "wrong", "hits", "misses")), ("read_ahead", ("hits", "misses"))) for event in events}
_FIELDS = {"lustre_llite_read_ahead_max_bytes": "read_ahead_bytes",
           "lustre_llite_read_ahead_max_file_bytes": "read_ahead_file_bytes",
           "lustre_llite_statahead_max_entries": "statahead_max",
           "lustre_llite_statahead_batch_max_entries": "statahead_batch"}
_MOUNT_COLLECTORS = "lnet", "mdc", "osc", "read_ahead"
"""Collectors with these families."""


def parse_mounts(body: bytes, url: str) -> dict[str, Counters]:
    """Counters of all mounts in one exposition, by mount point. Raises SourceError."""
    found: defaultdict[str, Counters] = defaultdict(Counters)
    buckets: defaultdict[tuple[str, str, RpcKey, str], dict[float, float]] = defaultdict(dict)
    """Buckets by mount, table, kind of RPCs and target: targets may have different bounds."""
    limits: defaultdict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    driver: dict[str, int] = {}
    with naming(url):
        for name, labels, value in samples_of(body, _OF_MOUNTS, driver):
            if "fs" not in labels or "mount" not in labels:
                continue
            place, _, kind, rest = labels["mount"], *name.split("_", 2)
            mount, of = found[place], labels.get("pool" if kind == "osc" else "target", "")
            mount.settings |= {"fsname": labels["fs"], "fabric_driver": driver}
            if name in _COUNTED:
                table, event = _COUNTED[name]
                mount.add((table,), {event: value})
            elif name == "lustre_llite_read_ahead_events_total":
                mount.add(("read_ahead",), {labels.get("event", ""): value})
            elif name in _FIELDS:
                mount.settings[_FIELDS[name]] = value
            elif rest in _TABLES:
                rpcs = kind, of, "modify" if rest == _MODIFY else labels.get("direction", "")
                buckets[place, _TABLES[rest], rpcs, labels.get("target", "")][float(labels.get("le", "inf"))] = value
            elif rest in _LIMITS:
                limits[place, kind, of, rest].append(value)
        for (place, table, (kind, of, direction), _), cumulative in buckets.items():
            modify = direction == "modify"
            limit = sum(limits.get((place, kind, of, f"max_{'modify_' * modify}rpcs_in_flight"), ()))
            targets = max(sum(limits.get((place, kind, of, "targets"), (1.0,))), 1.0)
            pages = 0.0 if modify else min(limits.get((place, kind, of, "max_pages_per_rpc"), (0.0,)))
            found[place].limit((kind, of, direction), limit / targets, pages)
            found[place].add((table, kind, of, direction), single(cumulative, 1.0, lambda last: last + 1))
    return found


def samples_of(body: bytes, beginnings: tuple[bytes, ...],
               driver: dict[str, int]) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Name, labels and value of samples. Those of the Omni-Path driver go into ``driver``."""
    for name, head, tail, value in samples(body, beginnings):
        labels = {**labels_of(head), **labels_of(tail)}
        if name == FABRIC_METRIC:
            driver[labels.get("setting", "")] = int(value)
        else:
            yield name, labels, value


@contextmanager
def naming(url: str) -> Iterator[None]:
    """Raises SourceError with the exporter for samples that make no sense."""
    try:
        yield
    except (ValueError, OverflowError) as error:  # raised for an infinite number
        raise SourceError(f"{redacted(url)}: invalid data: {error}") from error


def host_of(name: str) -> str:
    """Name of a node for a person: the host of the URL of its exporter.

    >>> host_of("http://oss1:9169/metrics"), host_of("this node")
    ('oss1', 'this node')
    """
    return urlsplit(name).hostname or name


def single(cumulative: Mapping[float, float], unit: float, beyond: Callable[[int], int]) -> dict[int, float]:
    """Counts of each bucket, by its upper bound in units. The kernel's last has no bound: ``beyond`` the one before.

    >>> single({4096.0: 2.0, 8192.0: 2.0, float("inf"): 5.0}, 1.0, lambda last: 2 * last)
    {4096: 2.0, 16384: 3.0}
    """
    found: dict[int, float] = {}
    below, last = 0.0, 0
    for upper in sorted(cumulative):
        last = beyond(last) if upper == float("inf") else round(upper * unit)
        if cumulative[upper] > below:
            found[last] = cumulative[upper] - below
        below = cumulative[upper]
    return found


PoolOfTarget = Mapping[str, str]
"""Full target name to pool."""
ReadNode = Callable[[PoolOfTarget], Mapping[str, Counters]]
"""Counters of one node by mount or target. Raises OSError or ValueError."""
NODES_PER_CALL = 5
"""Nodes read in one call. A choice."""


class Turn(NamedTuple):
    """A node that was read; without counters if it does not answer."""

    name: str
    before: Mapping[str, Counters]
    after: Mapping[str, Counters]
    time: float
    seconds: float


class Poller:
    """Reads nodes in turn, a few in each call, and keeps the last counters of each."""

    def __init__(self, readers: Mapping[str, ReadNode], clock: Clock) -> None:
        self._nodes = deque(readers.items())
        self._clock = clock
        self._known: dict[str, tuple[float, Mapping[str, Counters]]] = {}
        self.faults: dict[str, str] = {}
        """Error of each node whose last reading failed."""

    def turns(self, pools: PoolOfTarget) -> Iterator[Turn]:
        for _ in range(min(NODES_PER_CALL, len(self._nodes))):
            name, read = self._nodes[0]
            self._nodes.rotate(-1)  # first: whatever happens, another one is next
            self.faults.pop(name, None)
            try:
                found = read(pools)
            except (OSError, ValueError) as error:
                found, self.faults[name] = {}, str(error)
            now = self._clock.now()
            then, before = self._known.get(name, (now, {}))  # nothing to compare with after the first reading
            self._known[name] = now, found
            yield Turn(name, before, found, now, now - then)


def client_loads(turn: Turn) -> Iterator[ClientLoad]:
    """Loads of the mounts of a node that were mounted all the time between two readings."""
    for mount, after in turn.after.items():
        tables = risen(turn.before[mount], after) if mount in turn.before and turn.seconds > 0 else None
        if tables is not None:
            yield ClientLoad(
                host_of(turn.name), mount, time=turn.time, seconds=turn.seconds, read_ahead=tables["read_ahead",],
                statahead=tables["statahead",], rpcs=tuple(
                    RpcLoad(*rpcs, tables["in_flight", *rpcs], tables["pages", *rpcs],
                            max_in_flight=in_flight, max_pages=pages)
                    for rpcs, (in_flight, pages) in sorted(after.limits.items())), **after.settings)


FORGET_SECONDS = 900.0
"""Age at which the load of a client is dropped: the client may be gone."""


class ClientPoller(Poller):
    """Reads the counters of clients."""

    def __init__(self, readers: Mapping[str, ReadNode], clock: Clock) -> None:
        super().__init__(readers, clock)
        self._loads: dict[str, list[ClientLoad]] = {}

    def __call__(self, pools: PoolOfTarget) -> tuple[ClientLoad, ...]:
        """Read the next few nodes. Returns the loads of all nodes that are recent enough."""
        self._loads |= {turn.name: list(client_loads(turn)) for turn in self.turns(pools)}
        oldest = self._clock.now() - FORGET_SECONDS
        return tuple(load for loads in self._loads.values() for load in loads if load.time > oldest)


def read_disks(tree: Tree) -> dict[str, Counters]:
    """Counters of the object targets of this node; empty on a client."""
    found, driver = {}, read_fabric_driver(tree)
    for kind in OSD_KINDS:
        for device in tree.devices(kind):
            place = parse_device(device)
            data = tree.read(f"{kind}/{device}/brw_stats")
            if data is None or not place.target.startswith("OST"):
                continue
            tables = brw_stats.parse(data)
            times = tables.named(b"I/O time (1/1000s)")
            disk = found[f"{place.fsname}-{place.target}"] = Counters(settings={
                "max_rpc_bytes": (df.integer(tree.read(f"obdfilter/{device}/brw_size") or b"") or 0) << 20,
                "fabric_driver": driver})
            disk.add(("write_sizes",), counts_of(tables.named(b"disk I/O size"), -1))
            disk.add(("write_msec",), counts_of(times, -1))
            disk.add(("read_msec",), counts_of(times, 0))
            for table in io_latency_stats.parse(tree.read(f"{kind}/{device}/io_latency_stats") or b"").tables:
                if table.direction == b"write":
                    disk.add(("write_usec", table.size_bytes), {
                        round(upper * rpc_stats.LATENCY_UNIT_NSEC / 1e3): float(count)
                        for upper, count in zip(table.uppers, table.counts, strict=True)})
    return found


_SIZES, _SECONDS = "lustre_osd_io_size_bytes_bucket", "lustre_osd_io_seconds_bucket"
_MAX_RPC = "lustre_ost_max_rpc_bytes"
_LATENCY = "lustre_osd_io_latency_seconds_bucket"
_OF_DISKS = tuple(f"{name}{{".encode() for name in (_SIZES, _SECONDS, _LATENCY, _MAX_RPC, FABRIC_METRIC))
_UNITS = {_SIZES: 1.0, _SECONDS: 1e3, _LATENCY: 1e6}
"""Factor from the unit of the exporter to bytes, milliseconds and microseconds."""
_DISK_COLLECTORS = "lnet", "osd", "osd_latency", "ost"
"""Collectors with these families."""


def parse_disks(body: bytes, url: str) -> dict[str, Counters]:
    """Counters of the object targets in one exposition. Raises SourceError."""
    buckets: defaultdict[tuple[str, str, Key], dict[float, float]] = defaultdict(dict)
    """By target, family and table."""
    driver: dict[str, int] = {}
    found: defaultdict[str, Counters] = defaultdict(
        lambda: Counters(settings={"max_rpc_bytes": 0, "fabric_driver": driver}))
    with naming(url):
        for name, labels, value in samples_of(body, _OF_DISKS, driver):
            target, direction = target_of(labels), labels.get("direction", "")
            if "fs" not in labels:
                continue
            if name == _MAX_RPC:
                found[target].settings["max_rpc_bytes"] = int(value)
            elif (direction == "write" or name == _SECONDS) and is_ost(target):
                table = {_SIZES: ("write_sizes",), _SECONDS: (f"{direction}_msec",),
                         _LATENCY: ("write_usec", int(labels.get("size", "0")))}[name]
                buckets[target, name, table][float(labels.get("le", "inf"))] = value
        for (target, name, table), cumulative in buckets.items():
            found[target].add(table, single(cumulative, _UNITS[name], lambda last: 2 * last))
    return found


KEPT = 20
"""Number of readings kept for each target."""
MIN_REQUESTS = 20
"""Requests from which their mean duration says something. A choice."""


class DiskPoller(Poller):
    """Reads the disk I/O of servers."""

    def __init__(self, readers: Mapping[str, ReadNode], clock: Clock) -> None:
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
            for target, after in turn.after.items():
                if driver := after.settings["fabric_driver"]:
                    self.drivers[host_of(turn.name)] = driver
                if max_rpc_bytes := after.settings["max_rpc_bytes"]:
                    self.max_rpc_bytes[target] = max_rpc_bytes
                # the first reading says what was done since the mount
                before = turn.before.get(target, after if target in self._writes else Counters())
                writes = disk_writes(before, after, turn.time)
                if writes is not None and (writes.sizes or writes.request_msec):
                    self._writes[target] = (*self._writes.get(target, ()), writes)[-KEPT:]
        return dict(self._writes)


def disk_writes(before: Counters, after: Counters, time: float) -> DiskWrites | None:
    """Disk I/O between two readings. None if a counter fell: the target was mounted again."""
    if (tables := risen(before, after)) is None:
        return None
    times = [each for name in ("write_msec", "read_msec") for each in tables[name,].items()]
    requests = sum(count for _, count in times)
    return DiskWrites(
        time, tables["write_sizes",], tables["write_msec",],
        {key[1]: table for key, table in tables.items() if key[0] == "write_usec"},
        sum(upper * count for upper, count in times) / requests if requests >= MIN_REQUESTS else 0.0)


def mounts_of_exporter(url: str, client: HttpClient) -> ReadNode:
    """Reads the mounts of a node from its exporter, which knows the pools itself."""
    selective = SelectiveClient(client, _MOUNT_COLLECTORS)
    return lambda _: parse_mounts(selective.get(url).body, url)


def disks_of_exporter(url: str, client: HttpClient) -> ReadNode:
    selective = SelectiveClient(client, _DISK_COLLECTORS)
    return lambda _: parse_disks(selective.get(url).body, url)
