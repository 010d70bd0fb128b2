"""Connections of this node's targets to other targets: ``osp.*`` and ``lwp.*``.

A metadata server with 2,000 object targets would have 30 series for each. By default ``osp`` is therefore summed by
metadata target and pool, and only targets with a problem have their own series. ``--collector.osp.per-target`` shows
every target.

Targets request quotas and sequences of object ids from metadata targets over ``lwp``. If these requests are slow,
clients wait too, because a write above the quota granted so far must first request more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from exporter.collector import Collect, Collector, Context
from exporter.connection_families import Sample, connection_families
from exporter.connections import ConnectionsByTarget, ConnectionSums
from exporter.exposition import Family, MetricsPage, label_text
from exporter.families import FamilyMaker
from exporter.node import Node
from exporter.reading import NamedDevice, integer
from exporter.totals import Combine, put_gauges

KINDS = frozenset({"OST", "MDT"})
OF_POOL = FamilyMaker("lustre_osp", ("fs", "mdt", "pool"), "osp.*")
BY_TARGET = FamilyMaker("lustre_osp", ("fs", "target", "mdt"), "osp.*")
ACTIVE = BY_TARGET.of("active").gauge(
    "active",
    "Whether the metadata target uses the object target (1) or not (0). Shown for unused targets only, or for every"
    " target with --collector.osp.per-target.")
ERROR = BY_TARGET.of("prealloc_status").gauge(
    "precreate_error",
    "Error number (errno) of the last precreation of objects on the target: 0 is success, 28 is no space left. Shown"
    " for errors only, or for every target with --collector.osp.per-target.")
PRECREATED = OF_POOL.of("prealloc_last_id").gauge(
    "precreated_objects", "Precreated objects not yet used by a file. For several targets, the lowest number.")
NUMBERS = OF_POOL.numbers(
    ("prealloc_reserved", "reserved_objects", "Precreated objects reserved for files being created."),
    ("sync_changes", "sync_changes", "Changes (deleted files, new owners) not yet sent to the object targets."),
    ("sync_in_progress", "sync_in_progress_changes",
     "Changes (deleted files, new owners) sent to the object targets but not yet committed to disk."),
    ("destroys_in_flight", "destroys_in_flight",
     ("Changes, such as deletions and new owners, that are not committed: lustre_osp_sync_changes plus"
      " lustre_osp_sync_in_progress_changes.")),
)
COMBINE: dict[Family, Combine] = {PRECREATED: min}
NORMAL_VALUES: Mapping[Family, int] = {ACTIVE: 1, ERROR: 0}
CONNECTIONS = connection_families("osp", ("fs", "mdt", "kind", "pool"), "other targets")


class Pool(NamedTuple):
    """Labels: object targets of a pool, as seen by a metadata target."""

    fs: str
    mdt: str
    pool: str

    def labels(self) -> bytes:
        return label_text(fs=self.fs, mdt=self.mdt, pool=self.pool)


class PeerGroup(NamedTuple):
    """Labels: connections of a metadata target to object targets of a pool or to other metadata targets."""

    fs: str
    mdt: str
    kind: str
    pool: str

    def labels(self) -> bytes:
        return label_text(fs=self.fs, mdt=self.mdt, kind=self.kind, pool=self.pool)


def start_osp(context: Context) -> Collect:
    return _per_target() if context.settings.osp_per_target else _summed()


def _summed() -> Collect:
    connections: ConnectionSums[PeerGroup] = ConnectionSums("osp", CONNECTIONS)

    def collect(node: Node, page: MetricsPage) -> None:
        peers = _peers(node)
        found = [(Pool(fs, mdt, pool), [*_numbers(node, name)])
                 for name, (fs, mdt, kind, pool) in peers.items() if kind == "OST"]  # fmt: skip
        put_gauges(page, found, COMBINE)
        for name, device in _object_targets(node):
            labels = label_text(fs=device.fsname, target=device.target, mdt=device.instance)
            for family, _, value in _status(node, name):
                if value != NORMAL_VALUES[family]:
                    page.sample(family, labels, value)
        connections.collect(node, page, peers)

    return collect


def _per_target() -> Collect:
    connections = ConnectionsByTarget("osp", CONNECTIONS)

    def collect(node: Node, page: MetricsPage) -> None:
        labelled: list[tuple[str, bytes]] = []
        targets = {name: device.target for name, device in node.devices("osp")}
        for name, (fs, mdt, kind, pool) in _peers(node).items():
            target = targets[name]
            labelled.append((name, label_text(fs=fs, mdt=mdt, kind=kind, pool=pool, target=target)))
            if kind != "OST":
                continue
            for family, _, value in _numbers(node, name):
                page.sample(family, label_text(fs=fs, mdt=mdt, pool=pool, target=target), value)
            for family, _, value in _status(node, name):
                page.sample(family, label_text(fs=fs, target=target, mdt=mdt), value)
        connections.collect(node, page, labelled)

    return collect


def _object_targets(node: Node) -> list[NamedDevice]:
    return [t for t in node.devices("osp") if t.device.target[:3] == "OST" and t.device.instance[:3] == "MDT"]


def _peers(node: Node) -> Mapping[str, PeerGroup]:
    membership = node.membership()
    return {
        name: PeerGroup(device.fsname, device.instance, device.target[:3],
                    membership.label(device.fsname, device.target))
        for name, device in node.devices("osp")
        if device.target[:3] in KINDS and device.instance.startswith("MDT")
    }  # fmt: skip


def _numbers(node: Node, name: str) -> Iterator[Sample]:
    for parameter, family in NUMBERS.items():
        if (value := node.number("osp", name, parameter)) is not None:
            yield family, b"", value
    if (value := _precreated(node, name)) is not None:
        yield PRECREATED, b"", value


def _status(node: Node, name: str) -> Iterator[Sample]:
    if (active := node.number("osp", name, "active")) is not None:
        yield ACTIVE, b"", active
    if (status := node.number("osp", name, "prealloc_status", integer)) is not None:
        yield ERROR, b"", abs(status)


def _precreated(node: Node, name: str) -> int | None:
    """Return the number of precreated objects; None while a new sequence of object ids starts."""
    sequences = [node.read("osp", name, f"prealloc_{end}_seq") for end in ("next", "last")]
    following, last = [node.number("osp", name, f"prealloc_{end}_id") for end in ("next", "last")]
    if sequences[0] != sequences[1] or following is None or last is None or last < following - 1:
        return None
    return last - following + 1


FAMILIES = (ACTIVE, ERROR, PRECREATED, *NUMBERS.values(), *CONNECTIONS.families())
OSP_COLLECTOR = Collector("osp", "other targets, as seen by metadata targets of this node", FAMILIES, start_osp)
LWP = connection_families("lwp", ("fs", "target"), "metadata targets from this node's targets", "2.18+")


class MetadataTarget(NamedTuple):
    """The metadata target of a connection."""

    fs: str
    target: str

    def labels(self) -> bytes:
        return label_text(fs=self.fs, target=self.target)


def start_lwp(_: Context) -> Collect:
    connections: ConnectionSums[MetadataTarget] = ConnectionSums("lwp", LWP)

    def collect(node: Node, page: MetricsPage) -> None:
        targets = {name: MetadataTarget(d.fsname, d.target) for name, d in node.devices("lwp") if d.kind == "lwp"}
        connections.collect(node, page, targets)

    return collect


LWP_COLLECTOR = Collector(
    "lwp", "requests from this node's targets to metadata targets, mostly for quotas", LWP.families(), start_lwp)
