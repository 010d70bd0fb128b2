"""Locks: ``ldlm.namespaces.*``. A server has a namespace for each target, a client for each target and mount.

The collector sums namespaces by file system, mount and kind of namespace, so that a client with thousands of targets
has few series. For a client's namespaces, it reads only the locks. For a server's namespaces, it also reads the lock
pool. It skips the namespaces of servers for other servers, except those between metadata servers (``osp``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from exporter.collector import Collect, Collector, Context
from exporter.exposition import Counter, Gauge, MetricsPage, label_text
from exporter.families import FamilyMaker
from exporter.ledger import Ledger
from exporter.mounts import Mounts
from exporter.node import Node
from exporter.reading import NamedDevice
from lustre.formats import stats

KIND = "ldlm/namespaces"
SERVERS = {"filter": "ost", "mdt": "mdt", "MGS": "mgs"}
CLIENTS = {"osc", "mdc"}
OF_NAMESPACE = FamilyMaker("lustre_ldlm", ("fs", "mount", "namespace"), "ldlm.namespaces.*")
LOCKS = OF_NAMESPACE.numbers(("lock_count", "locks", "Locks granted or waiting."))
ON_CLIENTS = LOCKS | OF_NAMESPACE.numbers(
    ("lock_unused_count", "unused_locks", "Unused locks that the client caches for later use."))
OF_POOL = OF_NAMESPACE.of("pool").numbers(
    ("granted", "pool_granted_locks", "Locks granted to clients, as counted by the lock pool."),
    ("limit", "pool_limit_locks", "Locks that the lock pool may grant before it asks clients to release some."),
    ("grant_plan", "pool_grant_plan_locks", "Locks that the lock pool plans to have granted in its next period."),
)
ON_SERVERS = LOCKS | OF_NAMESPACE.numbers(
    ("resource_count", "resources", "Lock resources, which are objects with at least one lock."),
) | {f"pool/{name}": gauge for name, gauge in OF_POOL.items()}
GROWING = {
    "lock_timeouts": OF_NAMESPACE.of("lock_timeouts").counter(
        "lock_timeouts", "Locks not released in time, so that the server evicted the client."),
    "contention_events": OF_NAMESPACE.of("contention_events").counter(
        "contention_events", "Times the server found a lock resource contended.", versions="2.17+"),
}
GRANTS = OF_NAMESPACE.of("pool.stats").counter("pool_grants", "Locks granted by the lock pool.")
CANCELS = OF_NAMESPACE.of("pool.stats").counter("pool_cancels", "Locks released to the lock pool.")
OF_NODE = {
    f"ldlm.{name}": gauge for name, gauge in FamilyMaker("lustre_ldlm_server", (), "ldlm").numbers(
        ("lock_granted_count", "granted_locks", "Locks granted by all targets of this node.", "2.12+"),
        ("lock_reclaim_threshold_count", "reclaim_threshold_locks",
         "Number of granted locks above which the server asks clients to release some.", "2.12+"),
        ("lock_limit_count", "limit_locks", "Number of granted locks above which the server grants no more.", "2.12+"),
    ).items()
}


class Group(NamedTuple):
    """Labels of a sum."""

    fs: str
    mount: str
    namespace: str

    def labels(self) -> bytes:
        return label_text(fs=self.fs, mount=self.mount, namespace=self.namespace)


def start(_: Context) -> Collect:
    ledger: Ledger[Group, Counter] = Ledger()

    def collect(node: Node, page: MetricsPage) -> None:
        groups = dict(_groups(node.devices(KIND), node.mount_points()))
        servers = {name: group for name, group in groups.items() if group.namespace in SERVERS.values()}
        ledger.begin(servers)
        _gauges(node, page, groups, servers)
        for name in servers:
            counted = dict(_counters(node, name))
            ledger.credit(name, b"", tuple(counted), tuple(counted.values()))
        for group in sorted(ledger.groups):
            for counter, value in ledger.totals(group).items():
                page.sample(counter, group.labels(), value)
        for parameter, gauge in OF_NODE.items():
            page.sample(gauge, b"", node.number_global(parameter))

    return collect


def _groups(devices: Sequence[NamedDevice], mounts: Mounts) -> Iterator[tuple[str, Group]]:
    for name, device in devices:
        mount = mounts.get((device.fsname, device.instance))
        if device.kind in SERVERS:
            yield name, Group(device.fsname, "", SERVERS[device.kind])
        elif device.kind in CLIENTS and mount is not None:
            yield name, Group(device.fsname, mount, device.kind)
        elif device.kind == "osp" and device.target.startswith("MDT"):
            yield name, Group(device.fsname, "", "osp")


def _gauges(node: Node, page: MetricsPage, groups: dict[str, Group], servers: dict[str, Group]) -> None:
    sums: dict[Group, dict[Gauge, int]] = {group: {} for group in groups.values()}
    clients = {name: group for name, group in groups.items() if name not in servers}
    for families, members in ((ON_SERVERS, servers), (ON_CLIENTS, clients)):
        numbers = node.numbers_of(KIND, tuple(families), members)
        for family, values in zip(families.values(), numbers, strict=True):
            for group, value in zip(members.values(), values, strict=True):
                if value is not None:
                    sums[group][family] = sums[group].get(family, 0) + value
    for group, of_group in sums.items():
        for family, number in of_group.items():
            page.sample(family, group.labels(), number)


def _counters(node: Node, name: str) -> Iterator[tuple[Counter, int]]:
    for parameter, family in GROWING.items():
        if (value := node.number(KIND, name, parameter)) is not None:
            yield family, value
    if (pool := node.parsed(KIND, name, "pool/stats", stats.parse)) is None:
        return
    for counter, family in ((b"grant", GRANTS), (b"cancel", CANCELS)):
        if (found := pool.counter(counter)) is not None and found.sum >= 0:
            yield family, found.sum


FAMILIES = (*(ON_CLIENTS | ON_SERVERS).values(), *GROWING.values(), GRANTS, CANCELS, *OF_NODE.values())
COLLECTOR = Collector("ldlm", "locks, by file system and kind", FAMILIES, start)
