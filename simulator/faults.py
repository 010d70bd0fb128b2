"""Faults and other events, as changes to a running cluster. Times are virtual seconds."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lustre.layout.model import Component, Layout
from simulator.engine import Steps
from simulator.migration import Migration
from simulator.servers.changelog import Actor
from simulator.servers.mdt import Mdt
from simulator.servers.ost import Ost

if TYPE_CHECKING:
    from simulator.cluster import Cluster


def slow_down(cluster: Cluster, target: str, factor: float) -> None:
    """The target's device takes so many times as long."""
    cluster.target(target).device.slowdown = factor


def degrade(cluster: Cluster, target: str, rebuild_share: float) -> None:
    """A disk of the group is lost; rebuilding it takes that share of the others' time."""
    ost = _ost(cluster, target)
    ost.degraded = True
    ost.device.slowdown = 1 / (1 - min(rebuild_share, 0.95))
    if hasattr(ost.device, "missing_disks"):
        ost.device.missing_disks = 1


def heal(cluster: Cluster, target: str) -> None:
    """All that was wrong with a target is over."""
    found = cluster.target(target)
    found.device.slowdown = 1.0
    if isinstance(found, Ost):
        found.degraded = False
        found.store.withheld_bytes = 0
        if hasattr(found.device, "missing_disks"):
            found.device.missing_disks = 0
    if found.health.away:
        found.health.recovered(cluster.now)


def fill(cluster: Cluster, target: str, free_percent: float) -> None:
    """Somebody has filled the target up to so much."""
    store = _ost(cluster, target).store
    store.withheld_bytes = 0
    store.withheld_bytes = max(store.space().avail_bytes - int(store.capacity.size_bytes * free_percent / 100), 0)


def take_down(cluster: Cluster, target: str) -> None:
    """Its server is down; requests wait until it is back."""
    cluster.target(target).fail()


def recover(cluster: Cluster, target: str, seconds: float) -> None:
    """It was started again: clients come back and send again what was not safe; over after so long at the earliest."""
    found = cluster.target(target)
    if not found.health.gone:
        found.fail()
    found.health.recover(cluster.now, seconds)
    cluster.engine.spawn(_recovering(cluster, found, seconds))


def fail_over(cluster: Cluster, target: str, seconds: float) -> None:
    """The target moves to its other server: away for so long, in recovery for as long again."""
    take_down(cluster, target)
    cluster.engine.after(seconds, recover, cluster, target, seconds)


def deregister_changelog_user(cluster: Cluster, target: str, user: str = "cl1") -> None:
    """A changelog user is forgotten, as one too far behind is. Without any nothing is recorded, and reading goes on."""
    _mdt(cluster, target).changelog.deregister(user)


def register_changelog_user(cluster: Cluster, target: str) -> None:
    """One more changelog user: ``cl2``, or the number after the last."""
    _mdt(cluster, target).changelog.register(cluster.now)


def mask_changelog(cluster: Cluster, target: str, without: str) -> None:
    """Somebody sets a mask that leaves out a type of records: ``CLOSE``."""
    log = _mdt(cluster, target).changelog
    log.set_mask([kind for kind in log.mask if kind.label != without])


def lose_changelog_records(cluster: Cluster, target: str) -> None:
    """Records were lost: what nobody has read yet is gone, and numbers go on."""
    log = _mdt(cluster, target).changelog
    log.forget()


def make_exporter_unreachable(cluster: Cluster, seconds: float) -> None:
    """Nobody reaches the exporter: parameter files are not brought up to date, and whoever asks the hook is told."""
    cluster.exporter_back_at = cluster.now + seconds


def set_clocks(cluster: Cluster, seconds: float) -> None:
    """The clocks of all nodes are set; spans of time go on as before."""
    cluster.epoch_ns += round(seconds * 1e9)


def start_second_mover(cluster: Cluster, directory: str, pool: str, files: int) -> None:
    """A user starts to move the files of a directory to a pool, one after the other."""
    cluster.engine.spawn(_moves(cluster, directory, Layout((Component(pool=pool),), composite=False), files))


def start_resync(cluster: Cluster, path: str) -> None:
    """Somebody brings the stale copies of a mirrored file up to date."""
    cluster.start_resync(path)


def change_job(cluster: Cluster, job_id: str, values: Mapping[str, Any]) -> None:
    """The job goes on with other habits: its processes end their calls and begin anew."""
    cluster.change(job_id, dict(values))


def _moves(cluster: Cluster, directory: str, layout: Layout, files: int) -> Steps[None]:
    client = cluster.clients[-1]
    actor = Actor("lfs.1500", 1500, 1500, client.settings.nid)
    with suppress(OSError):
        for inode in list(cluster.namespace.lookup(directory).children.values())[:files]:
            if not inode.is_directory:
                moving = Migration(inode.path, layout).steps(client, actor, cluster.settings.costs.move_start_seconds)
                with suppress(OSError):
                    yield from moving


def _recovering(cluster: Cluster, target: Mdt | Ost, seconds: float) -> Steps[None]:
    yield seconds / 2  # the clients are all here
    number = target.health.recovery_start
    replayed = target.replay()
    yield seconds / 2
    yield replayed
    if target.health.recovery_start == number:  # and it did not fail again meanwhile
        target.health.recovered(cluster.now)


def _ost(cluster: Cluster, name: str) -> Ost:
    found = cluster.target(name)
    if not isinstance(found, Ost):
        raise LookupError(f"{name} is no OST")
    return found


def _mdt(cluster: Cluster, name: str) -> Mdt:
    found = cluster.target(name)
    if not isinstance(found, Mdt):
        raise LookupError(f"{name} is no MDT")
    return found
