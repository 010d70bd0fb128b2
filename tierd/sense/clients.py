"""Read-ahead, statahead and RPC counters of this node's mounts, and of other clients by their ``lustre-exporter``.

Servers do not have these counters. Two readings of a mount make a ``ClientLoad``. There may be thousands of clients:
each call reads the next few, and the load of a client is kept until its next reading.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

from lustre.formats import df, read_ahead_stats, rpc_stats, statahead_stats
from lustre.formats.histogram import Histogram
from lustre.parameters import Tree, parse_device, read_whole
from tierd.advised import DRIVER_SETTINGS, FABRIC_DRIVER, first_number
from tierd.clock import Clock
from tierd.model import ClientLoad, RpcLoad
from tierd.sense.exposition import SelectiveClient, labels_of, samples
from tierd.sense.http_client import HttpClient, SourceError, redacted

K = TypeVar("K", str, int)
RpcKey = tuple[str, str, str]
"""``osc`` or ``mdc``; the pool (``osc``) or the metadata target (``mdc``); the direction."""


@dataclass(slots=True)
class RpcCounters:
    """RPCs sent by one mount to one pool or metadata target in one direction, since it was mounted."""

    in_flight: dict[int, float] = field(default_factory=dict)
    pages: dict[int, float] = field(default_factory=dict)
    max_in_flight: float = 0.0
    max_pages: float = 0.0


@dataclass(slots=True)
class ClientCounters:
    """Counters of one mount since it was mounted."""

    client: str
    mount: str
    fsname: str
    read_ahead: dict[str, float] = field(default_factory=dict)
    statahead: dict[str, float] = field(default_factory=dict)
    read_ahead_bytes: float = 0.0
    read_ahead_file_bytes: float = 0.0
    statahead_max: float = 0.0
    statahead_batch: float | None = None
    fabric_driver: Mapping[str, int] = field(default_factory=dict)
    """Parameters of the Omni-Path driver of the node."""
    rpcs: dict[RpcKey, RpcCounters] = field(default_factory=dict)

    def rpc(self, of: RpcKey) -> RpcCounters:
        """RPC counters of one pool and direction, added if missing."""
        return self.rpcs.setdefault(of, RpcCounters())


def client_load(before: ClientCounters, after: ClientCounters, time: float, seconds: float) -> ClientLoad | None:
    """Load of a mount between two readings. None if a counter fell, as after a remount: the load is unknown then."""
    none = RpcCounters()
    pairs = {of: (before.rpcs.get(of, none), after.rpcs.get(of, none)) for of in sorted({*before.rpcs, *after.rpcs})}
    if (decreased(before.read_ahead, after.read_ahead) or decreased(before.statahead, after.statahead)
            or any(decreased(a.in_flight, b.in_flight) or decreased(a.pages, b.pages) for a, b in pairs.values())):
        return None
    return ClientLoad(
        after.client, after.mount, fsname=after.fsname, time=time, seconds=seconds,
        read_ahead=increases(before.read_ahead, after.read_ahead),
        read_ahead_bytes=after.read_ahead_bytes, read_ahead_file_bytes=after.read_ahead_file_bytes,
        statahead=increases(before.statahead, after.statahead),
        statahead_max=after.statahead_max,
        rpcs=tuple(RpcLoad(*of, increases(a.in_flight, b.in_flight), increases(a.pages, b.pages), b.max_in_flight,
                           b.max_pages) for of, (a, b) in pairs.items() if of in after.rpcs),
        statahead_batch=after.statahead_batch, fabric_driver=after.fabric_driver,
    )


def decreased(before: Mapping[K, float], after: Mapping[K, float]) -> bool:
    """Whether a counter is lower than it was."""
    return any(after.get(name, 0.0) < count for name, count in before.items())


def increases(before: Mapping[K, float], after: Mapping[K, float]) -> dict[K, float]:
    """Increases of the counters that rose."""
    return {name: count - before.get(name, 0.0) for name, count in after.items() if count > before.get(name, 0.0)}


THIS_NODE = "this node"
MIB = 1 << 20


def read_mounts(tree: Tree, pools: Mapping[str, str]) -> Iterator[ClientCounters]:
    """Counters of every mount of this node. ``pools`` gives the pool of a target (full name)."""
    driver = read_fabric_driver(tree)
    for name in tree.devices("llite"):
        device = parse_device(name)
        found = ClientCounters(THIS_NODE, name, device.fsname, fabric_driver=driver)
        ahead = read_ahead_stats.parse(tree.read(f"llite/{name}/read_ahead_stats") or b"")
        found.read_ahead = {event.decode("ascii", "replace"): float(count)
                            for event, count in zip(ahead.names, ahead.counts, strict=True)}
        found.statahead = statahead_counts(tree.read(f"llite/{name}/statahead_stats") or b"")
        found.read_ahead_bytes = MIB * read_number(tree, f"llite/{name}/max_read_ahead_mb")
        found.read_ahead_file_bytes = MIB * read_number(tree, f"llite/{name}/max_read_ahead_per_file_mb")
        found.statahead_max = read_number(tree, f"llite/{name}/statahead_max")
        batch = df.integer(tree.read(f"llite/{name}/statahead_batch_max") or b"")
        found.statahead_batch = None if batch is None else float(batch)
        for kind in ("osc", "mdc"):
            for link in tree.devices(kind):
                other = parse_device(link)
                if (other.fsname, other.instance) == (device.fsname, device.instance):
                    target = f"{other.fsname}-{other.target}"
                    of = pools.get(target, "") if kind == "osc" else other.target
                    add_device(found, tree, kind, link, of)
        yield found


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


def add_device(client: ClientCounters, tree: Tree, kind: str, link: str, of: str) -> None:
    """Add the RPCs to one target. If the limits of a pool's targets differ, the lowest counts."""
    data = tree.read(f"{kind}/{link}/rpc_stats")
    if data is None:
        return
    rpcs = rpc_stats.parse(data)
    most = read_number(tree, f"{kind}/{link}/max_rpcs_in_flight")
    pages = read_number(tree, f"{kind}/{link}/max_pages_per_rpc")
    for direction, column in (("read", 0), ("write", -1)):
        known = client.rpc((kind, of, direction))
        add_histogram(known.in_flight, rpcs.rpcs_in_flight, column)
        add_histogram(known.pages, rpcs.pages_per_rpc, column)
        keep_lowest_limits(known, most, pages)
    if rpcs.modify_rpcs_in_flight is not None:
        known = client.rpc((kind, of, "modify"))
        add_histogram(known.in_flight, rpcs.modify_rpcs_in_flight, 0)
        keep_lowest_limits(known, read_number(tree, f"{kind}/{link}/max_mod_rpcs_in_flight"), 0.0)


def add_histogram(into: dict[int, float], table: Histogram | None, column: int) -> None:
    """Add the counts of one direction."""
    if table is not None:
        counts: Iterable[int] = table.columns[column]
        for upper, count in zip(table.uppers, counts, strict=True):
            if count:
                into[upper] = into.get(upper, 0.0) + count


def keep_lowest_limits(rpcs: RpcCounters, in_flight: float, pages: float) -> None:
    """Keep the lowest limit seen; 0 means that no limit was seen."""
    rpcs.max_in_flight = min(filter(None, (rpcs.max_in_flight, in_flight)), default=0.0)
    rpcs.max_pages = min(filter(None, (rpcs.max_pages, pages)), default=0.0)


_TABLES = {"rpcs_in_flight_at_send_bucket": "in_flight", "pages_per_rpc_bucket": "pages",
           "modify_rpcs_in_flight_at_send_bucket": "modify"}
_SUMMED = frozenset({"max_rpcs_in_flight", "max_modify_rpcs_in_flight", "targets"})
FABRIC_METRIC = "lustre_lnet_omni_path_parameter"
_BEGINNINGS = (b"lustre_llite_read_ahead_", b"lustre_llite_statahead_", f"{FABRIC_METRIC}{{".encode(),
               *(f"lustre_{kind}_{name}{{".encode() for kind in ("osc", "mdc")
                 for name in (*_TABLES, *_SUMMED, "max_pages_per_rpc")))
_STATAHEAD = {f"lustre_llite_statahead_{event}_total": event for event in ("started", "wrong", "hits", "misses")}
_READ_AHEAD = {f"lustre_llite_read_ahead_{event}_total": event for event in ("hits", "misses")}
_LIMITS = {"lustre_llite_read_ahead_max_bytes": "read_ahead_bytes",
           "lustre_llite_read_ahead_max_file_bytes": "read_ahead_file_bytes",
           "lustre_llite_statahead_max_entries": "statahead_max",
           "lustre_llite_statahead_batch_max_entries": "statahead_batch"}


CLIENT_COLLECTORS = "lnet", "mdc", "osc", "read_ahead"
"""Collectors with these families."""


def parse_mounts(body: bytes, url: str) -> list[ClientCounters]:
    """Counters of all mounts in one exposition. Raises SourceError."""
    taken = _MountSamples(urlsplit(url).hostname or url)
    try:
        for name, head, tail, value in samples(body, _BEGINNINGS):
            taken.add(name, {**labels_of(head), **labels_of(tail)}, value)
    except (ValueError, OverflowError) as error:  # of an infinite number
        raise SourceError(f"{redacted(url)}: invalid data: {error}") from error
    return taken.done()


class _MountSamples:
    """Samples, sorted by mount."""

    def __init__(self, client: str) -> None:
        self._client = client
        self._mounts: dict[tuple[str, str], ClientCounters] = {}
        self._buckets: defaultdict[tuple[str, str, RpcKey, str, str], dict[float, float]] = defaultdict(dict)
        """Buckets by series. Series of several targets may have different bounds."""
        self._sums: defaultdict[tuple[str, str, str, str, str], float] = defaultdict(float)
        self._pages: dict[tuple[str, str, str, str], float] = {}
        self._driver: dict[str, int] = {}

    def _mount(self, labels: Mapping[str, str]) -> ClientCounters:
        key = labels["fs"], labels["mount"]
        return self._mounts.setdefault(key, ClientCounters(self._client, key[1], key[0]))

    def add(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Add one sample. Raises ValueError for a bucket bound that is not a number."""
        if name == FABRIC_METRIC:
            self._driver[labels.get("setting", "")] = int(value)
        if "fs" not in labels or "mount" not in labels:
            return
        if name in _STATAHEAD:
            self._mount(labels).statahead[_STATAHEAD[name]] = value
        elif name in _READ_AHEAD:
            self._mount(labels).read_ahead[_READ_AHEAD[name]] = value
        elif name == "lustre_llite_read_ahead_events_total":
            self._mount(labels).read_ahead[labels.get("event", "")] = value
        elif name in _LIMITS:
            setattr(self._mount(labels), _LIMITS[name], value)
        elif name.startswith(("lustre_osc_", "lustre_mdc_")):
            self._rpc(name.removeprefix("lustre_")[:3], name[len("lustre_osc_"):], labels, value)

    def _rpc(self, kind: str, name: str, labels: Mapping[str, str], value: float) -> None:
        where, of = (labels["fs"], labels["mount"]), labels.get("pool" if kind == "osc" else "target", "")
        if name in _TABLES:
            direction = "modify" if _TABLES[name] == "modify" else labels.get("direction", "")
            table = "in_flight" if _TABLES[name] == "modify" else _TABLES[name]
            self._mount(labels)
            series = (*where, (kind, of, direction), table, labels.get("target", ""))
            self._buckets[series][float(labels.get("le", "inf"))] = value
        elif name in _SUMMED:
            self._sums[*where, kind, of, name] += value
        elif name == "max_pages_per_rpc":
            self._pages[*where, kind, of] = min(value, self._pages.get((*where, kind, of), value))

    def done(self) -> list[ClientCounters]:
        """All mounts. Their histograms are converted from cumulative counts."""
        for (fsname, mount, of, table, _), cumulative in self._buckets.items():
            rpcs = self._mounts[fsname, mount].rpc(of)
            into = rpcs.in_flight if table == "in_flight" else rpcs.pages
            for upper, count in single(cumulative, 1.0, lambda last: last + 1).items():
                into[upper] = into.get(upper, 0.0) + count
            limit = "max_modify_rpcs_in_flight" if of[2] == "modify" else "max_rpcs_in_flight"
            targets = max(self._sums.get((fsname, mount, *of[:2], "targets"), 1.0), 1.0)  # limits are summed
            rpcs.max_in_flight = self._sums.get((fsname, mount, *of[:2], limit), 0.0) / targets
            rpcs.max_pages = 0.0 if of[2] == "modify" else self._pages.get((fsname, mount, *of[:2]), 0.0)
        for counters in self._mounts.values():
            counters.fabric_driver = self._driver
        return list(self._mounts.values())


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
ReadMounts = Callable[[PoolOfTarget], Sequence[ClientCounters]]
"""Counters of the mounts of one node. Raises OSError."""
FORGET_SECONDS = 900.0
"""Age at which the load of a client is dropped: the client may be gone."""


@dataclass(slots=True)
class _Node:
    """One node, its last counters and its loads."""

    name: str
    read: ReadMounts
    time: float = 0.0
    before: dict[str, ClientCounters] = field(default_factory=dict)
    loads: list[ClientLoad] = field(default_factory=list)


class ClientPoller:
    """Reads the counters of clients, a few nodes in each call."""

    def __init__(self, readers: Mapping[str, ReadMounts], clock: Clock, clients_per_call: int = 5) -> None:
        self._nodes = deque(_Node(name, read) for name, read in readers.items())
        self._clock = clock
        self._clients_per_call = clients_per_call
        self.faults: dict[str, str] = {}
        """Error of each node whose last reading failed."""

    def __call__(self, pools: PoolOfTarget) -> tuple[ClientLoad, ...]:
        """Read the next few nodes. Returns the loads of all nodes that are recent enough."""
        for _ in range(min(self._clients_per_call, len(self._nodes))):
            node = self._nodes[0]
            self._nodes.rotate(-1)
            self._read(node, pools)
        oldest = self._clock.now() - FORGET_SECONDS
        return tuple(load for node in self._nodes for load in node.loads if load.time > oldest)

    def _read(self, node: _Node, pools: PoolOfTarget) -> None:
        try:
            found = node.read(pools)
        except (OSError, ValueError) as error:
            self.faults[node.name] = str(error)
            node.before, node.loads = {}, []
            return
        self.faults.pop(node.name, None)
        now = self._clock.now()
        node.loads = [load for c in found if c.mount in node.before and now > node.time
                      and (load := client_load(node.before[c.mount], c, now, now - node.time)) is not None]
        node.before, node.time = {c.mount: c for c in found}, now


def mounts_of_node(tree: Tree) -> ReadMounts:
    """Reads the mounts of this node."""
    return lambda pools: list(read_mounts(tree, pools))


def mounts_of_exporter(url: str, client: HttpClient) -> ReadMounts:
    """Reads the mounts of a node from its exporter, which knows the pools itself."""
    selective = SelectiveClient(client, CLIENT_COLLECTORS)
    return lambda _: parse_mounts(selective.get(url).body, url)
