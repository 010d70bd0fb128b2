"""Events of a scenario: changes to a running cluster, with their times in virtual seconds.

The kind of an event is the name of its function here. Its keys besides ``at`` are the parameters of the function; keys
of those with a default may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from inspect import Parameter, signature
from operator import or_
from typing import Annotated, Any, Literal, TypeVar, cast, get_type_hints

from pydantic import Field, TypeAdapter, create_model

from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.ranges import NotNegative
from simulator.servers.health import Health
from simulator.servers.mdt import Mdt
from simulator.servers.ost import Ost
from simulator.tables import STRICT, Mistake, Place, read

DRAIN_TARGET = "drain_target"


def slow(cluster: Cluster, target: str, factor: float = 2.0) -> None:
    cluster.target(target).disks.slowdown = factor


def degraded(cluster: Cluster, target: str, rebuild_share: float = 0.3) -> None:
    """Lose a disk of a RAID group. Its rebuild takes a share of the other disks' time."""
    ost = _target(cluster, target, Ost)
    ost.degraded = True
    ost.disks.slowdown = 1 / (1 - min(rebuild_share, 0.95))
    ost.disks.missing_disks = 1


def healthy(cluster: Cluster, target: str) -> None:
    found = cluster.target(target)
    found.disks.slowdown, found.disks.missing_disks = 1.0, 0
    if isinstance(found, Ost):
        found.degraded = False
        found.store.withheld_bytes = 0
    if found.health.away:
        found.health.recovered(cluster.now)


def full(cluster: Cluster, target: str, free_percent: float = 0.0) -> None:
    store = _target(cluster, target, Ost).store
    store.withheld_bytes = 0
    store.withheld_bytes = max(store.space().avail_bytes - int(store.capacity.size_bytes * free_percent / 100), 0)


def files(
    cluster: Cluster, directory: str, target: str, files: int = 100, size_bytes: int = 1 << 20, idle_days: float = 30.0
) -> None:
    """Make files with one stripe on a target, in its smallest pool, that were last used some days ago."""
    index = _target(cluster, target, Ost).index
    pools = sorted((len(members), pool) for pool, members in cluster.settings.pools.items() if index in members)
    layout = Layout((Component(pool=pools[0][1] if pools else "", ost_list=(index,)),), composite=False)
    made = cluster.make_directory(directory)
    before, made.layout = made.layout, layout
    for number in range(files):
        inode = cluster.make_file(f"{directory}/f{number:05d}", size_bytes)
        inode.atime = inode.mtime = cluster.epoch - idle_days * 86_400
    made.layout = before


def no_new_objects(cluster: Cluster, target: str) -> None:
    """Set ``osp.*.max_create_count`` of an OST to 0 on all MDSs, as an administrator does."""
    _target(cluster, target, Ost).max_create_count = 0


def gone(cluster: Cluster, target: str) -> None:
    cluster.target(target).health.leave()


def recovery(cluster: Cluster, target: str, seconds: float = 30.0) -> None:
    """Restart a target: its clients reconnect."""
    health = cluster.target(target).health
    if not health.gone:
        health.leave()
    health.recover(cluster.now, seconds)
    cluster.engine.after(seconds, _recovered, cluster, health, health.recovery_start)


def failover(cluster: Cluster, target: str, seconds: float = 30.0) -> None:
    """Fail a target over: it is away for a time, then in recovery for the same time."""
    gone(cluster, target)
    cluster.engine.after(seconds, recovery, cluster, target, seconds)


def changelog_deregistered(cluster: Cluster, target: str, user: str = "cl1") -> None:
    """Deregister a changelog user. Without any user the MDT records nothing; reads still succeed."""
    _target(cluster, target, Mdt).changelog.deregister(user)


def changelog_gap(cluster: Cluster, target: str) -> None:
    """Lose the unread changelog records. The numbering continues."""
    _target(cluster, target, Mdt).changelog.forget()


def changelog_late(cluster: Cluster, target: str, every: int = 7, seconds: float = 0.3) -> None:
    """Write one record of ``every`` late from now on: a read within some seconds returns later records without it."""
    log = _target(cluster, target, Mdt).changelog
    log.late_every, log.late_seconds = every, seconds


def exporter_unreachable(cluster: Cluster, seconds: float = 30.0) -> None:
    """Make the exporter unreachable for a time. Parameter files are not updated meanwhile."""
    cluster.exporter_back_at = cluster.now + seconds


def drain_target(cluster: Cluster, target: str) -> None:
    """Do nothing: this is an order to tierd, of which a cluster knows nothing."""


def clock_jump(cluster: Cluster, seconds: float = 3600.0) -> None:
    cluster.epoch_ns += round(seconds * 1e9)


def _recovered(cluster: Cluster, health: Health, began: float) -> None:
    if health.recovery_start == began:  # the target did not fail again meanwhile
        health.recovered(cluster.now)


Target = TypeVar("Target", Mdt, Ost)


def _target(cluster: Cluster, name: str, kind: type[Target]) -> Target:
    found = cluster.target(name)
    if not isinstance(found, kind):
        raise LookupError(f"{name} is not an {kind.__name__.upper()}")
    return found


_EVENTS: tuple[Callable[..., None], ...] = (
    slow, degraded, healthy, full, files, no_new_objects, gone, recovery, failover, changelog_deregistered,
    changelog_gap, changelog_late, exporter_unreachable, drain_target, clock_jump,
)  # fmt: skip
KINDS: Mapping[str, Callable[..., None]] = {event.__name__: event for event in _EVENTS}


def _table(event: Callable[..., None]) -> Any:
    """The table of an event, by the parameters of its function."""
    hints, kind = get_type_hints(event), cast(Any, Literal[event.__name__])
    keys: dict[str, Any] = {key: (hints[key], ... if one.default is Parameter.empty else one.default)
                            for key, one in signature(event).parameters.items() if key != "cluster"}
    return create_model(event.__name__, __config__=STRICT, at=(NotNegative, ...), kind=(kind, ...), **keys)


_TABLES = TypeAdapter[Any](cast(Any, Annotated[reduce(or_, map(_table, _EVENTS)), Field(discriminator="kind")]))


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a scenario. Times are virtual seconds."""

    at: float
    kind: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, cluster: Cluster) -> None:
        with cluster.lock:
            cluster.about_to_change()
            KINDS[self.kind](cluster, **self.values)


def schedule(events: Iterable[Event], cluster: Cluster) -> None:
    for one in sorted(events, key=lambda event: event.at):
        cluster.engine.after(one.at - cluster.now, one, cluster)


def event_from(table: Mapping[str, Any], where: Place, wrong: list[Mistake]) -> Event | None:
    """Read an event. Returns None for a bad one, and adds the mistakes to ``wrong``."""
    found = read(_TABLES, table, where, wrong)
    if found is None:
        return None
    values = found.model_dump(exclude_unset=True)
    return Event(values.pop("at"), values.pop("kind"), values)
