"""Read-ahead, statahead and RPC counters of this node's mounts, and of other clients by their ``lustre-exporter``.

Servers do not have these counters. Two readings of a mount make a ``ClientLoad``. There may be thousands of clients:
each call reads the next few, and the load of a client is kept until its next reading.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar
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
Found = TypeVar("Found")
RpcKey = tuple[str, str, str]
"""``osc`` or ``mdc``; the pool (``osc``) or the metadata target (``mdc``); the direction."""


class RpcTables:
    """RPCs of one mount to each pool or metadata target in each direction, since it was mounted."""

    def __init__(self) -> None:
        self._of: dict[RpcKey, RpcLoad] = {}

    def add(self, of: RpcKey, in_flight: Mapping[int, float], pages: Mapping[int, float], max_in_flight: float,
            max_pages: float) -> None:
        """Add the RPCs to one target. If the limits of a pool's targets differ, the lowest counts; 0 is unknown."""
        known = self._of.get(of, RpcLoad(*of))
        self._of[of] = replace(
            known, in_flight=together(known.in_flight, in_flight), pages=together(known.pages, pages),
            max_in_flight=lowest(known.max_in_flight, max_in_flight), max_pages=lowest(known.max_pages, max_pages))

    @property
    def loads(self) -> tuple[RpcLoad, ...]:
        return tuple(self._of[of] for of in sorted(self._of))


def together(one: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    return {upper: one.get(upper, 0.0) + other.get(upper, 0.0) for upper in (*one, *other)}


def lowest(*limits: float) -> float:
    """The lowest limit that is known; 0 if none is."""
    return min(filter(None, limits), default=0.0)


def client_load(before: ClientLoad, after: ClientLoad, time: float, seconds: float) -> ClientLoad | None:
    """Load of a mount between two readings of its counters. None if one fell, as after a remount."""
    was, now = ({(each.kind, each.pool, each.direction): each for each in of.rpcs} for of in (before, after))
    none = RpcLoad("", "", "")
    pairs = [(was.get(of, none), now.get(of, none)) for of in (was | now)]
    if (decreased(before.read_ahead, after.read_ahead) or decreased(before.statahead, after.statahead)
            or any(decreased(a.in_flight, b.in_flight) or decreased(a.pages, b.pages) for a, b in pairs)):
        return None
    return replace(
        after, time=time, seconds=seconds, read_ahead=increases(before.read_ahead, after.read_ahead),
        statahead=increases(before.statahead, after.statahead),
        rpcs=tuple(replace(b, in_flight=increases(was.get(of, none).in_flight, b.in_flight),
                           pages=increases(was.get(of, none).pages, b.pages)) for of, b in now.items()))


def decreased(before: Mapping[K, float], after: Mapping[K, float]) -> bool:
    return any(after.get(name, 0.0) < count for name, count in before.items())


def increases(before: Mapping[K, float], after: Mapping[K, float]) -> dict[K, float]:
    """Increases of the counters that rose."""
    return {name: count - before.get(name, 0.0) for name, count in after.items() if count > before.get(name, 0.0)}


THIS_NODE = "this node"
MIB = 1 << 20


def read_mounts(tree: Tree, pools: Mapping[str, str]) -> Iterator[ClientLoad]:
    """Counters of every mount of this node since it was mounted. ``pools`` gives the pool of a target (full name)."""
    driver = read_fabric_driver(tree)
    for name in tree.devices("llite"):
        device, place = parse_device(name), f"llite/{name}"
        ahead = read_ahead_stats.parse(tree.read(f"{place}/read_ahead_stats") or b"")
        batch = df.integer(tree.read(f"{place}/statahead_batch_max") or b"")
        rpcs = RpcTables()
        for kind in ("osc", "mdc"):
            for link in tree.devices(kind):
                other = parse_device(link)
                if (other.fsname, other.instance) == (device.fsname, device.instance):
                    target = f"{other.fsname}-{other.target}"
                    add_device(rpcs, tree, kind, link, pools.get(target, "") if kind == "osc" else other.target)
        yield ClientLoad(
            THIS_NODE, name, device.fsname, time=0.0, seconds=0.0,
            read_ahead={event.decode("ascii", "replace"): float(count)
                        for event, count in zip(ahead.names, ahead.counts, strict=True)},
            read_ahead_bytes=MIB * read_number(tree, f"{place}/max_read_ahead_mb"),
            read_ahead_file_bytes=MIB * read_number(tree, f"{place}/max_read_ahead_per_file_mb"),
            statahead=statahead_counts(tree.read(f"{place}/statahead_stats") or b""),
            statahead_max=read_number(tree, f"{place}/statahead_max"), rpcs=rpcs.loads,
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


def add_device(into: RpcTables, tree: Tree, kind: str, link: str, of: str) -> None:
    data = tree.read(f"{kind}/{link}/rpc_stats")
    if data is None:
        return
    rpcs = rpc_stats.parse(data)
    most = read_number(tree, f"{kind}/{link}/max_rpcs_in_flight")
    pages = read_number(tree, f"{kind}/{link}/max_pages_per_rpc")
    for direction, column in (("read", 0), ("write", -1)):
        into.add((kind, of, direction), counts_of(rpcs.rpcs_in_flight, column), counts_of(rpcs.pages_per_rpc, column),
                 most, pages)
    if rpcs.modify_rpcs_in_flight is not None:
        into.add((kind, of, "modify"), counts_of(rpcs.modify_rpcs_in_flight, 0), {},
                 read_number(tree, f"{kind}/{link}/max_mod_rpcs_in_flight"), 0.0)


def counts_of(table: Histogram | None, column: int) -> dict[int, float]:
    """The counts of one direction."""
    if table is None:
        return {}
    return {upper: float(count) for upper, count in zip(table.uppers, table.columns[column], strict=True) if count}


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


def parse_mounts(body: bytes, url: str) -> list[ClientLoad]:
    """Counters of all mounts in one exposition since they were mounted. Raises SourceError."""
    taken = _MountSamples()
    try:
        for name, head, tail, value in samples(body, _BEGINNINGS):
            taken.add(name, {**labels_of(head), **labels_of(tail)}, value)
    except (ValueError, OverflowError) as error:  # raised for an infinite number
        raise SourceError(f"{redacted(url)}: invalid data: {error}") from error
    return taken.done(urlsplit(url).hostname or url)


Mount = tuple[str, str]
"""File system and mount point."""


class _MountSamples:
    """Samples, sorted by mount."""

    def __init__(self) -> None:
        self._mounts: defaultdict[Mount, dict[str, Any]] = defaultdict(lambda: {"read_ahead": {}, "statahead": {}})
        """Fields of ``ClientLoad``."""
        self._buckets: defaultdict[tuple[Mount, RpcKey, bool, str], dict[float, float]] = defaultdict(dict)
        """Buckets by mount, pool, whether they are of pages, and target: targets may have different bounds."""
        self._sums: defaultdict[tuple[Mount, str, str, str], float] = defaultdict(float)
        self._pages: dict[tuple[Mount, str, str], float] = {}
        self._driver: dict[str, int] = {}

    def add(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Add one sample. Raises ValueError for a bucket bound that is not a number."""
        if name == FABRIC_METRIC:
            self._driver[labels.get("setting", "")] = int(value)
        if "fs" not in labels or "mount" not in labels:
            return
        mount = labels["fs"], labels["mount"]
        if name in _STATAHEAD:
            self._mounts[mount]["statahead"][_STATAHEAD[name]] = value
        elif name in _READ_AHEAD:
            self._mounts[mount]["read_ahead"][_READ_AHEAD[name]] = value
        elif name == "lustre_llite_read_ahead_events_total":
            self._mounts[mount]["read_ahead"][labels.get("event", "")] = value
        elif name in _LIMITS:
            self._mounts[mount][_LIMITS[name]] = value
        elif name.startswith(("lustre_osc_", "lustre_mdc_")):
            self._rpc(mount, name.removeprefix("lustre_")[:3], name[len("lustre_osc_"):], labels, value)

    def _rpc(self, mount: Mount, kind: str, name: str, labels: Mapping[str, str], value: float) -> None:
        of = labels.get("pool" if kind == "osc" else "target", "")
        if name in _TABLES:
            direction = "modify" if _TABLES[name] == "modify" else labels.get("direction", "")
            series = mount, (kind, of, direction), _TABLES[name] == "pages", labels.get("target", "")
            self._buckets[series][float(labels.get("le", "inf"))] = value
        elif name in _SUMMED:
            self._sums[mount, kind, of, name] += value
        elif name == "max_pages_per_rpc":
            self._pages[mount, kind, of] = min(value, self._pages.get((mount, kind, of), value))

    def done(self, client: str) -> list[ClientLoad]:
        """All mounts. Their histograms are converted from cumulative counts."""
        rpcs: defaultdict[Mount, RpcTables] = defaultdict(RpcTables)
        for (mount, of, in_pages, _), cumulative in self._buckets.items():
            counts, pool = single(cumulative, 1.0, lambda last: last + 1), (mount, *of[:2])
            modify = of[2] == "modify"
            limit = self._sums.get((*pool, "max_modify_rpcs_in_flight" if modify else "max_rpcs_in_flight"), 0.0)
            targets = max(self._sums.get((*pool, "targets"), 1.0), 1.0)  # limits are summed
            rpcs[mount].add(of, {} if in_pages else counts, counts if in_pages else {}, limit / targets,
                            0.0 if modify else self._pages.get(pool, 0.0))
        return [ClientLoad(client, mount[1], mount[0], 0.0, 0.0, rpcs=rpcs[mount].loads, fabric_driver=self._driver,
                           **self._mounts[mount]) for mount in dict.fromkeys([*self._mounts, *rpcs])]


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
            self._nodes.rotate(-1)
            self.faults.pop(name, None)
            found: Mapping[str, Found] = {}
            try:
                found = read(pools)
            except (OSError, ValueError) as error:
                self.faults[name] = str(error)
            now = self._clock.now()
            then, before = self._known.get(name, (now, {}))
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
