"""OST pools: their space, and what this node's mounts read from and wrote to them.

Lustre shows the members of a pool (``lov.*.pools``, ``lod.*.pools``) and the space on each target, but does not combine
them. Targets without a pool form the pool with the empty name. A target in several pools counts in each pool.

New files of a pool above its spill threshold go to another pool: ``lod.*.pool.*.spill_*`` on metadata servers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import is_

from exporter.capacity import capacity_families, put_capacity, total
from exporter.collector import Collect, Collector, Context
from exporter.connections import OSC
from exporter.counters import CounterKey
from exporter.exposition import Counter, Family, Gauge, MetricsPage, label_text
from exporter.families import FamilyMaker
from exporter.ledger import Ledger
from exporter.node import Node, Rooms
from exporter.totals import MountPool, SeriesKey, SummedParameter, put_totals
from lustre.formats.df import Df

SPILL = FamilyMaker("lustre_pool", ("fs", "pool"), "lod.*.pool.*")
SPILL_ACTIVE = SPILL.of("spill_is_active").gauge(
    "spill_active",
    "Whether new files spill to another pool now (1), because this pool is above its threshold, or not (0).",
    versions="2.15+")
SPILL_THRESHOLD = SPILL.of("spill_threshold_pct").gauge(
    "spill_threshold_ratio",
    "Used share of the pool above which new files spill to another pool. 0 disables spilling.", versions="2.15+")
SPILLED_FILES = SPILL.of("spill_hit").counter(
    "spilled_files",
    "Files created in another pool because this pool was above its threshold, summed over this node's metadata"
    " targets.", versions="2.15+")
SPILL_FAMILIES = (SPILL_ACTIVE, SPILL_THRESHOLD, SPILLED_FILES)
_SPILL_KEYS = ("hits",)


class PoolSpill:
    """Combines the spill state of the metadata targets, which spill independently, into one series per pool."""

    def __init__(self) -> None:
        self._hits: Ledger[tuple[str, str], str] = Ledger()

    def collect(self, node: Node, page: MetricsPage) -> None:
        places = {
            f"{name}/{pool}": (name, device.fsname, pool)
            for name, device in node.devices("lod")
            for pool in node.children("lod", name, "pool")
        }
        self._hits.begin({place: (fs, pool) for place, (_, fs, pool) in places.items()})
        active: dict[tuple[str, str], int] = {}
        threshold: dict[tuple[str, str], int] = {}
        for place, (name, fs, pool) in places.items():
            for values, parameter in ((active, "spill_is_active"), (threshold, "spill_threshold_pct")):
                if (value := node.number("lod", name, f"pool/{pool}/{parameter}")) is not None:
                    values[fs, pool] = max(value, values.get((fs, pool), 0))
            if (hits := node.number("lod", name, f"pool/{pool}/spill_hit")) is not None:
                self._hits.credit(place, b"", _SPILL_KEYS, (hits,))
        for fs, pool in sorted(self._hits.groups):
            labels = label_text(fs=fs, pool=pool)
            page.sample(SPILL_ACTIVE, labels, active.get((fs, pool)))
            percent = threshold.get((fs, pool))
            page.sample(SPILL_THRESHOLD, labels, None if percent is None else percent / 100)
            page.sample(SPILLED_FILES, labels, self._hits.totals((fs, pool)).get("hits"))


OF_POOL = FamilyMaker("lustre_pool", ("fs", "pool"), "osc.*")
CAPACITY = capacity_families(
    OF_POOL, "the pool, summed over the targets that report it. It is left out while a connection is idle")
TARGETS = FamilyMaker("lustre_pool", ("fs", "pool"), "lov.*.pools.*").gauge("targets", "Object targets in the pool.")
REPORTING = OF_POOL.of("kbytestotal").gauge(
    "targets_reporting",
    "Object targets in the pool whose space is known and included in lustre_pool_size_bytes and the other sums.")
MEMBER = Gauge(
    "lustre_pool_target_info",
    "Always 1, labelled with an object target and its pool (several joined by commas). Shown by metadata servers only.",
    ("fs", "target", "pool"), "lod.*.pools.*")
OF_MOUNT = FamilyMaker("lustre_pool", ("fs", "mount", "pool"), "osc.*.stats")
READ = OF_MOUNT.counter("read_bytes", "Bytes read from the pool by the mount.")
WRITTEN = OF_MOUNT.counter("write_bytes", "Bytes written to the pool by the mount.")
OPERATIONS = OF_MOUNT.counter(
    "operations", "Requests from the mount to the pool's targets, by operation.", "operation")
SECONDS = OF_MOUNT.counter(
    "operation_seconds", "Total time from sending requests to the pool's targets until the reply, by operation.",
    "operation")
POOL_FAMILIES: Mapping[Family, Counter] = {
    OSC.rule.byte_sums[b"read_bytes"]: READ,
    OSC.rule.byte_sums[b"write_bytes"]: WRITTEN,
    OSC.rule.operations: OPERATIONS,
    **({OSC.rule.seconds: SECONDS} if OSC.rule.seconds else {}),
}
"""For each ``osc`` family, the corresponding family of a pool."""


def start(context: Context) -> Collect:
    spill = PoolSpill()
    space = _Space()
    seen: tuple[object, ...] = ()
    pools: list[tuple[bytes, int, int, Df]] = []

    def collect(node: Node, page: MetricsPage) -> None:
        nonlocal seen, pools
        room = space.by_target(node)
        now = room, space.idle_targets, node.membership(), *inputs_of(node)
        if not same(now, seen):
            seen, pools = now, [*_pools(node, room, space.idle_targets)]
        for labels, targets, reporting, whole in pools:
            page.sample(TARGETS, labels, targets)
            page.sample(REPORTING, labels, reporting)
            put_capacity(page, CAPACITY, labels, whole)
        _membership(node, page)
        _traffic(context.osc_totals.refresh(node), page)
        spill.collect(node, page)

    return collect


def _pools(node: Node, room: Mapping[tuple[str, str], Df],
           idle_targets: Collection[tuple[str, str]]) -> Iterator[tuple[bytes, int, int, Df]]:
    """Yield label text, number of targets, number of targets with known space, and the whole space of each pool.

    The space of a pool with an idle connection is unknown: the sum over the others would be too small.
    """
    for (fs, pool), targets in _members(node).items():
        known = [room[fs, target] for target in targets if (fs, target) in room]
        whole = total(() if any((fs, target) in idle_targets for target in targets) else known)
        yield label_text(fs=fs, pool=pool), len(targets), len(known), whole


Inputs = tuple[object, ...]


class _Space:
    """The space of each object target, from a mount, else from a metadata server. Object servers know no pools."""

    def __init__(self) -> None:
        self._rooms = Rooms()
        self._inputs: Inputs = ()
        self._idle: frozenset[str] = frozenset()
        """Connections that a request would wake."""
        self.idle_targets: frozenset[tuple[str, str]] = frozenset()
        """File system and target of each target whose space is not read for this reason."""
        self._asked: list[tuple[str, list[str]]] = []
        self._read: list[list[Df]] = []
        self._found: dict[tuple[str, str], Df] = {}

    def by_target(self, node: Node) -> dict[tuple[str, str], Df]:
        """Read the space. Returns the object of the last pass if no device and no number has changed."""
        idle = node.idle_clients()
        self._idle = self._idle if self._idle == idle else idle
        inputs = *inputs_of(node), self._idle
        early: list[list[Df]] = []
        if same(inputs, self._inputs):
            early = [self._rooms.read(node, kind, names) for kind, names in self._asked]
            if same(early, self._read):
                return self._found
        asked, read, self._inputs = self._asked, list[list[Df]](), inputs
        self._asked, self._read, found = [], read, dict[tuple[str, str], Df]()
        for kind, devices in (
            ("osc", [(client.name, client.device) for client in node.clients("osc") if client.name not in idle]),
            ("osp", node.devices("osp")),
        ):
            left = [(name, (d.fsname, d.target)) for name, d in devices if d.target.startswith("OST")]
            while left := [(name, target) for name, target in left if target not in found]:
                first = {target: name for name, target in reversed(left)}
                names, turn = [*first.values()], len(read)
                known = turn < len(early) and asked[turn] == (kind, names)
                rooms = early[turn] if known else self._rooms.read(node, kind, names)
                self._asked.append((kind, names))
                read.append(rooms)
                found |= {target: room for target, room in zip(first, rooms, strict=True) if room.size_bytes}
                left = [(name, target) for name, target in left if name != first[target]]
        self._found = found
        self.idle_targets = frozenset([(one.device.fsname, one.device.target) for one in node.clients("osc")
                                       if one.name in idle]) - found.keys()
        return found


def inputs_of(node: Node) -> Inputs:
    """The devices that show the space of object targets. While they do not change, they are the same objects."""
    return node.clients("osc"), node.devices("osp"), node.devices("obdfilter")


def same(these: Sequence[object], those: Sequence[object]) -> bool:
    return len(these) == len(those) and all(map(is_, these, those))


def _members(node: Node) -> dict[tuple[str, str], list[str]]:
    membership = node.membership()
    members: dict[tuple[str, str], list[str]] = {
        (fs, pool): sorted(targets) for fs, pools in membership.pools.items() for pool, targets in pools.items()
    }
    for fs, target in sorted(_targets(node)):
        if (fs, target) not in membership.by_target:
            members.setdefault((fs, ""), []).append(target)
    return members


def _membership(node: Node, page: MetricsPage) -> None:
    """Show the pool of each target, for joins with metrics of servers. Clients do not show it: there are too many."""
    if node.targets("mdt"):
        membership = node.membership()
        for fs, target in sorted(_targets(node)):
            page.sample(MEMBER, label_text(fs=fs, target=target, pool=membership.label(fs, target)), 1)


def _targets(node: Node) -> set[tuple[str, str]]:
    own = node.targets("obdfilter") if node.targets("mdt") else []  # an OSS alone does not know its pools
    return {
        (device.fsname, device.target)
        for devices in ([(c.name, c.device) for c in node.clients("osc")], node.devices("osp"), own)
        for _, device in devices
        if device.target.startswith("OST")
    }


def _traffic(osc: SummedParameter[MountPool], page: MetricsPage) -> None:
    shown = {(fs, mount, pool) for fs, mount, joined in osc.groups for pool in joined.split(",")}
    sums: dict[tuple[str, str, str], dict[SeriesKey, int]] = {key: {} for key in shown}
    for (fs, mount, joined), totals in osc.by_group().items():
        for pool in joined.split(","):
            if (fs, mount, pool) in shown:
                for key, value in _renamed(totals):
                    of_pool = sums[fs, mount, pool]
                    of_pool[key] = of_pool.get(key, 0) + value
    for (fs, mount, pool), of_pool in sorted(sums.items()):
        put_totals(page, label_text(fs=fs, mount=mount, pool=pool), of_pool)


def _renamed(totals: Mapping[SeriesKey, int]) -> Iterator[tuple[CounterKey, int]]:
    for key, value in totals.items():
        if (family := POOL_FAMILIES.get(key[0])) is not None:
            yield (family, key[1]), value


FAMILIES = (*CAPACITY, TARGETS, REPORTING, MEMBER, READ, WRITTEN, OPERATIONS, SECONDS, *SPILL_FAMILIES)
COLLECTOR = Collector("pools", "space in OST pools and traffic to them", FAMILIES, start)
