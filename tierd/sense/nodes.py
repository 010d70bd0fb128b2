"""Counters of single nodes: of mounts on clients, and of object targets on servers.

They are read-ahead, statahead and RPCs of mounts, disk I/O of targets by size and by duration, and the largest RPC that
targets accept. Job statistics do not have them. Sources are the files of this node and the exporters of others. There
may be thousands of nodes: each call reads the next few, and what two readings give is kept until the next one.

With ``brw_stats``, sizes and durations of disk I/O are two tables, and only the changes of the mix of sizes connect
them: so several readings are kept. ``io_latency_stats`` (2.17) has durations by size.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from lustre.formats import brw_stats, df, io_latency_stats, read_ahead_stats, rpc_stats, statahead_stats
from lustre.formats.histogram import Histogram
from lustre.parameters import Tree, parse_device, read_whole
from tierd.advised import DRIVER_SETTINGS, FABRIC_DRIVER, first_number
from tierd.clock import Clock
from tierd.model import ClientLoad, DiskWrites, RpcLoad
from tierd.sense.exposition import SelectiveClient, labels_of, samples, target_of
from tierd.sense.http_client import HttpClient, SourceError, redacted
from tierd.sense.parameters import OSD_KINDS, THIS_NODE
from tierd.sense.readings import is_ost

Found = TypeVar("Found")
RpcKey = tuple[str, str, str]
"""``osc`` or ``mdc``; the pool (``osc``) or the metadata target (``mdc``); the direction."""


def combined(several: Iterable[RpcLoad]) -> tuple[RpcLoad, ...]:
    """RPCs to each pool or metadata target in each direction, of those to single targets. If the limits of a pool's
    targets differ, the lowest counts; 0 is unknown.
    """
    found: dict[RpcKey, RpcLoad] = {}
    for each in several:
        known = found.get(key_of(each), RpcLoad(*key_of(each)))
        found[key_of(each)] = replace(
            known, in_flight=together(known.in_flight, each.in_flight), pages=together(known.pages, each.pages),
            max_in_flight=lowest(known.max_in_flight, each.max_in_flight),
            max_pages=lowest(known.max_pages, each.max_pages))
    return tuple(found[of] for of in sorted(found))


def key_of(load: RpcLoad) -> RpcKey:
    return load.kind, load.pool, load.direction


def together(one: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    return {upper: one.get(upper, 0.0) + other.get(upper, 0.0) for upper in (*one, *other)}


def lowest(*limits: float) -> float:
    """The lowest limit that is known; 0 if none is."""
    return min(filter(None, limits), default=0.0)


def increases(pairs: Iterable[tuple[Mapping[Any, float], Mapping[Any, float]]]) -> list[dict[Any, float]] | None:
    """What rose in each pair of tables of counters. None if a counter fell, as after a remount."""
    found = []
    for before, after in pairs:
        if any(after.get(name, 0.0) < count for name, count in before.items()):
            return None
        found.append({name: count - before.get(name, 0.0) for name, count in after.items()
                      if count > before.get(name, 0.0)})
    return found


def client_load(before: ClientLoad, after: ClientLoad, time: float, seconds: float) -> ClientLoad | None:
    """Load of a mount between two readings of its counters. None if one fell."""
    was, now = ({key_of(each): each for each in of.rpcs} for of in (before, after))
    none = RpcLoad("", "", "")
    # a counter that is gone counts as fallen: the client was mounted again
    pairs = [(was.get(of, none), now.get(of, none)) for of in (*now, *was.keys() - now.keys())]
    more = increases([(before.read_ahead, after.read_ahead), (before.statahead, after.statahead),
                      *((a.in_flight, b.in_flight) for a, b in pairs), *((a.pages, b.pages) for a, b in pairs)])
    if more is None:
        return None
    in_flight, pages = more[2:2 + len(now)], more[2 + len(pairs):]
    return replace(after, time=time, seconds=seconds, read_ahead=more[0], statahead=more[1], rpcs=tuple(
        replace(each, in_flight=in_flight[at], pages=pages[at]) for at, each in enumerate(now.values())))


MIB = 1 << 20


def read_mounts(tree: Tree, pools: Mapping[str, str]) -> Iterator[ClientLoad]:
    """Counters of every mount of this node since it was mounted. ``pools`` gives the pool of a target (full name)."""
    driver = read_fabric_driver(tree)
    for name in tree.devices("llite"):
        device, place = parse_device(name), f"llite/{name}"
        ahead = read_ahead_stats.parse(tree.read(f"{place}/read_ahead_stats") or b"")
        batch = df.integer(tree.read(f"{place}/statahead_batch_max") or b"")
        rpcs: list[RpcLoad] = []
        for kind in ("osc", "mdc"):
            for link in tree.devices(kind):
                other = parse_device(link)
                if (other.fsname, other.instance) == (device.fsname, device.instance):
                    target = f"{other.fsname}-{other.target}"
                    rpcs += rpcs_of(tree, kind, link, pools.get(target, "") if kind == "osc" else other.target)
        yield ClientLoad(
            THIS_NODE, name, device.fsname, time=0.0, seconds=0.0,
            read_ahead={event.decode("ascii", "replace"): float(count)
                        for event, count in zip(ahead.names, ahead.samples, strict=True)},
            read_ahead_bytes=MIB * read_number(tree, f"{place}/max_read_ahead_mb"),
            read_ahead_file_bytes=MIB * read_number(tree, f"{place}/max_read_ahead_per_file_mb"),
            statahead=statahead_counts(tree.read(f"{place}/statahead_stats") or b""),
            statahead_max=read_number(tree, f"{place}/statahead_max"), rpcs=combined(rpcs),
            statahead_batch=None if batch is None else float(batch), fabric_driver=driver)


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


def rpcs_of(tree: Tree, kind: str, link: str, of: str) -> Iterator[RpcLoad]:
    """RPCs to one target, which belongs to a pool or is a metadata target."""
    if (data := tree.read(f"{kind}/{link}/rpc_stats")) is None:
        return
    rpcs = rpc_stats.parse(data)
    most = read_number(tree, f"{kind}/{link}/max_rpcs_in_flight")
    pages = read_number(tree, f"{kind}/{link}/max_pages_per_rpc")
    for direction, column in (("read", 0), ("write", -1)):
        yield RpcLoad(kind, of, direction, counts_of(rpcs.rpcs_in_flight, column),
                      counts_of(rpcs.pages_per_rpc, column), max_in_flight=most, max_pages=pages)
    if rpcs.modify_rpcs_in_flight is not None:
        yield RpcLoad(kind, of, "modify", counts_of(rpcs.modify_rpcs_in_flight, 0),
                      max_in_flight=read_number(tree, f"{kind}/{link}/max_mod_rpcs_in_flight"))


def counts_of(table: Histogram | None, column: int) -> dict[int, float]:
    """The counts of one direction."""
    if table is None:
        return {}
    return {upper: float(count) for upper, count in zip(table.uppers, table.columns[column], strict=True) if count}


_TABLES = {"rpcs_in_flight_at_send_bucket": "in_flight", "pages_per_rpc_bucket": "pages",
           "modify_rpcs_in_flight_at_send_bucket": "modify"}
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
CLIENT_COLLECTORS = "lnet", "mdc", "osc", "read_ahead"
"""Collectors with these families."""
Mount = tuple[str, str]
"""File system and mount point."""


def parse_mounts(body: bytes, url: str) -> list[ClientLoad]:
    """Counters of all mounts in one exposition since they were mounted. Raises SourceError."""
    mounts: defaultdict[Mount, dict[str, Any]] = defaultdict(lambda: {"read_ahead": {}, "statahead": {}})
    """Fields of ``ClientLoad``."""
    buckets: defaultdict[tuple[Mount, RpcKey, bool, str], dict[float, float]] = defaultdict(dict)
    """Buckets by mount, pool, whether they are of pages, and target: targets may have different bounds."""
    limits: defaultdict[tuple[Mount, str, str, str], list[float]] = defaultdict(list)
    driver: dict[str, int] = {}
    rpcs: defaultdict[Mount, list[RpcLoad]] = defaultdict(list)
    with naming(url):
        for name, labels, value in samples_of(body, _OF_MOUNTS, driver):
            if "fs" not in labels or "mount" not in labels:
                continue
            mount, _, kind, rest = (labels["fs"], labels["mount"]), *name.split("_", 2)
            of = labels.get("pool" if kind == "osc" else "target", "")
            if name in _COUNTED:
                table, event = _COUNTED[name]
                mounts[mount][table][event] = value
            elif name == "lustre_llite_read_ahead_events_total":
                mounts[mount]["read_ahead"][labels.get("event", "")] = value
            elif name in _FIELDS:
                mounts[mount][_FIELDS[name]] = value
            elif rest in _TABLES:
                direction = "modify" if _TABLES[rest] == "modify" else labels.get("direction", "")
                series = mount, (kind, of, direction), _TABLES[rest] == "pages", labels.get("target", "")
                buckets[series][float(labels.get("le", "inf"))] = value
            elif rest in _LIMITS:
                limits[mount, kind, of, rest].append(value)
        for (mount, (kind, of, direction), in_pages, _), cumulative in buckets.items():
            counts = single(cumulative, 1.0, lambda last: last + 1)
            modify = direction == "modify"
            limit = sum(limits.get((mount, kind, of, f"max_{'modify_' * modify}rpcs_in_flight"), ()))
            targets = max(sum(limits.get((mount, kind, of, "targets"), (1.0,))), 1.0)
            pages = 0.0 if modify else min(limits.get((mount, kind, of, "max_pages_per_rpc"), (0.0,)))
            rpcs[mount].append(RpcLoad(kind, of, direction, {} if in_pages else counts, counts if in_pages else {},
                                       max_in_flight=limit / targets, max_pages=pages))
    return [ClientLoad(host_of(url), mount[1], mount[0], 0.0, 0.0, rpcs=combined(rpcs[mount]), fabric_driver=driver,
                       **mounts[mount]) for mount in dict.fromkeys([*mounts, *rpcs])]


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
ReadNode = Callable[[PoolOfTarget], Mapping[str, Found]]
"""Counters of one node by mount or target. Raises OSError or ValueError."""
NODES_PER_CALL = 5
"""Nodes read in one call. A choice."""


class Turn(NamedTuple, Generic[Found]):
    """A node that was read; without counters if it does not answer."""

    name: str
    before: Mapping[str, Found]
    after: Mapping[str, Found]
    time: float
    seconds: float


class Poller(Generic[Found]):
    """Reads nodes in turn, a few in each call, and keeps the last counters of each."""

    def __init__(self, readers: Mapping[str, ReadNode[Found]], clock: Clock) -> None:
        self._nodes = deque(readers.items())
        self._clock = clock
        self._known: dict[str, tuple[float, Mapping[str, Found]]] = {}
        self.faults: dict[str, str] = {}
        """Error of each node whose last reading failed."""

    def turns(self, pools: PoolOfTarget) -> Iterator[Turn[Found]]:
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


FORGET_SECONDS = 900.0
"""Age at which the load of a client is dropped: the client may be gone."""


class ClientPoller(Poller[ClientLoad]):
    """Reads the counters of clients."""

    def __init__(self, readers: Mapping[str, ReadNode[ClientLoad]], clock: Clock) -> None:
        super().__init__(readers, clock)
        self._loads: dict[str, list[ClientLoad]] = {}

    def __call__(self, pools: PoolOfTarget) -> tuple[ClientLoad, ...]:
        """Read the next few nodes. Returns the loads of all nodes that are recent enough."""
        for turn in self.turns(pools):
            self._loads[turn.name] = [
                load for mount, after in turn.after.items() if mount in turn.before and turn.seconds > 0
                and (load := client_load(turn.before[mount], after, turn.time, turn.seconds)) is not None]
        oldest = self._clock.now() - FORGET_SECONDS
        return tuple(load for loads in self._loads.values() for load in loads if load.time > oldest)


def mounts_of_node(tree: Tree) -> ReadNode[ClientLoad]:
    return lambda pools: {each.mount: each for each in read_mounts(tree, pools)}


def mounts_of_exporter(url: str, client: HttpClient) -> ReadNode[ClientLoad]:
    """Reads the mounts of a node from its exporter, which knows the pools itself."""
    selective = SelectiveClient(client, CLIENT_COLLECTORS)
    return lambda _: {each.mount: each for each in parse_mounts(selective.get(url).body, url)}


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
    for kind in OSD_KINDS:
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
                        round(upper * rpc_stats.LATENCY_UNIT_NSEC / 1e3): float(count)
                        for upper, count in zip(table.uppers, table.counts, strict=True) if count}
    return found


_SIZES, _SECONDS = "lustre_osd_io_size_bytes_bucket", "lustre_osd_io_seconds_bucket"
_MAX_RPC = "lustre_ost_max_rpc_bytes"
_LATENCY = "lustre_osd_io_latency_seconds_bucket"
_OF_DISKS = tuple(f"{name}{{".encode() for name in (_SIZES, _SECONDS, _LATENCY, _MAX_RPC, FABRIC_METRIC))
_UNITS = {_SIZES: 1.0, _SECONDS: 1e3, _LATENCY: 1e6}
"""Factor from the unit of the exporter to bytes, milliseconds and microseconds."""
DISK_COLLECTORS = "lnet", "osd", "osd_latency", "ost"
"""Collectors with these families."""


def parse_disks(body: bytes, url: str) -> dict[str, DiskCounters]:
    """Counters of the object targets in one exposition. Raises SourceError."""
    buckets: defaultdict[tuple[str, str, str, int], dict[float, float]] = defaultdict(dict)
    driver: dict[str, int] = {}
    found: defaultdict[str, DiskCounters] = defaultdict(lambda: DiskCounters(fabric_driver=driver))
    with naming(url):
        for name, labels, value in samples_of(body, _OF_DISKS, driver):
            if name == _MAX_RPC and "fs" in labels:
                found[target_of(labels)].max_rpc_bytes = int(value)
            elif ((labels.get("direction") == "write" or name == _SECONDS) and is_ost(target_of(labels))
                  and "fs" in labels):
                key = target_of(labels), name, labels.get("direction", ""), int(labels.get("size", "0"))
                buckets[key][float(labels.get("le", "inf"))] = value
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
                first = after if target in self._writes else DiskCounters()
                writes = difference(turn.before.get(target, first), after, turn.time)
                if writes is not None and (writes.sizes or writes.request_msec):
                    self._writes[target] = (*self._writes.get(target, ()), writes)[-KEPT:]
        return dict(self._writes)


def difference(before: DiskCounters, after: DiskCounters, time: float) -> DiskWrites | None:
    """Disk I/O between two readings. None if a counter fell: the target was mounted again."""
    pairs = [(before.sizes, after.sizes), (before.msec, after.msec), (before.read_msec, after.read_msec),
             *((before.usec_by_size.get(size, {}), table) for size, table in after.usec_by_size.items())]
    if (more := increases(pairs)) is None:
        return None
    sizes, msec, read_msec, *by_size = more
    requests = sum(msec.values()) + sum(read_msec.values())
    took = sum(upper * count for table in (msec, read_msec) for upper, count in table.items())
    return DiskWrites(
        time, sizes, msec, {size: rose for size, rose in zip(after.usec_by_size, by_size, strict=True) if rose},
        took / requests if requests >= MIN_REQUESTS else 0.0)


def disks_of_exporter(url: str, client: HttpClient) -> ReadNode[DiskCounters]:
    selective = SelectiveClient(client, DISK_COLLECTORS)
    return lambda _: parse_disks(selective.get(url).body, url)
