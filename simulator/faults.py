"""Faults and other events, as changes to a running cluster. Times are virtual seconds.

:mod:`simulator.scenarios.events` reads them from scenarios: their parameters are the keys of an event.
"""

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


def slow_down(cluster: Cluster, target: str, factor: float = 2.0) -> None:
    cluster.target(target).disks.slowdown = factor


def degrade(cluster: Cluster, target: str, rebuild_share: float = 0.3) -> None:
    """Lose a disk of a RAID group. Its rebuild takes a share of the other disks' time."""
    ost = _ost(cluster, target)
    ost.degraded = True
    ost.disks.slowdown = 1 / (1 - min(rebuild_share, 0.95))
    ost.disks.missing_disks = 1


def heal(cluster: Cluster, target: str) -> None:
    found = cluster.target(target)
    found.disks.slowdown, found.disks.missing_disks = 1.0, 0
    if isinstance(found, Ost):
        found.degraded = False
        found.store.withheld_bytes = 0
    if found.health.away:
        found.health.recovered(cluster.now)


def fill(cluster: Cluster, target: str, free_percent: float = 0.0) -> None:
    store = _ost(cluster, target).store
    store.withheld_bytes = 0
    store.withheld_bytes = max(store.space().avail_bytes - int(store.capacity.size_bytes * free_percent / 100), 0)


def lay_down_files(
    cluster: Cluster, directory: str, target: str, files: int = 100, size_bytes: int = 1 << 20, idle_days: float = 30.0
) -> None:
    """Make files with one stripe on a target, in its smallest pool, that were last used some days ago."""
    index = _ost(cluster, target).index
    pools = sorted((len(members), pool) for pool, members in cluster.settings.pools.items() if index in members)
    layout = Layout((Component(pool=pools[0][1] if pools else "", ost_list=(index,)),), composite=False)
    made = cluster.make_directory(directory)
    before, made.layout = made.layout, layout
    for number in range(files):
        inode = cluster.make_file(f"{directory}/f{number:05d}", size_bytes)
        inode.atime = inode.mtime = cluster.epoch - idle_days * 86_400
    made.layout = before


def stop_new_objects(cluster: Cluster, target: str) -> None:
    """Set ``osp.*.max_create_count`` of an OST to 0 on all MDSs, as an administrator does."""
    _ost(cluster, target).max_create_count = 0


def take_down(cluster: Cluster, target: str) -> None:
    cluster.target(target).fail()


def recover(cluster: Cluster, target: str, seconds: float = 30.0) -> None:
    """Restart a target: clients reconnect and resend uncommitted requests. Recovery takes at least ``seconds``."""
    found = cluster.target(target)
    if not found.health.gone:
        found.fail()
    found.health.recover(cluster.now, seconds)
    cluster.engine.spawn(_recovering(cluster, found, seconds))


def fail_over(cluster: Cluster, target: str, seconds: float = 30.0) -> None:
    """Fail a target over: it is away for a time, then in recovery for the same time."""
    take_down(cluster, target)
    cluster.engine.after(seconds, recover, cluster, target, seconds)


def deregister_changelog_user(cluster: Cluster, target: str, user: str = "cl1") -> None:
    """Deregister a changelog user. Without any user the MDT records nothing; reads still succeed."""
    _mdt(cluster, target).changelog.deregister(user)


def register_changelog_user(cluster: Cluster, target: str) -> None:
    """Register one more changelog user, with the next number: ``cl2``."""
    _mdt(cluster, target).changelog.register(cluster.now)


def mask_changelog(cluster: Cluster, target: str, without: str) -> None:
    """Set a changelog mask without one type of records, such as ``CLOSE``."""
    log = _mdt(cluster, target).changelog
    log.set_mask([kind for kind in log.mask if kind.label != without])


def lose_changelog_records(cluster: Cluster, target: str) -> None:
    """Lose the unread changelog records. The numbering continues."""
    _mdt(cluster, target).changelog.forget()


def write_changelog_late(cluster: Cluster, target: str, every: int = 7, seconds: float = 0.3) -> None:
    """Write one record of ``every`` late from now on: a read within some seconds returns later records without it."""
    log = _mdt(cluster, target).changelog
    log.late_every, log.late_seconds = every, seconds


def make_exporter_unreachable(cluster: Cluster, seconds: float = 30.0) -> None:
    """Make the exporter unreachable for a time. Parameter files are not updated meanwhile."""
    cluster.exporter_back_at = cluster.now + seconds


def drain_target(cluster: Cluster, target: str) -> None:
    """Do nothing: this is an order to tierd, of which a cluster knows nothing."""


def set_clocks(cluster: Cluster, seconds: float = 3600.0) -> None:
    cluster.epoch_ns += round(seconds * 1e9)


def start_second_mover(cluster: Cluster, directory: str, pool: str, files: int = 100) -> None:
    """Let a user migrate the files of a directory to a pool, one after the other."""
    cluster.engine.spawn(_moves(cluster, directory, Layout((Component(pool=pool),), composite=False), files))


def start_resync(cluster: Cluster, path: str) -> None:
    cluster.start_resync(path)


def change_job(cluster: Cluster, job: str, set: Mapping[str, Any]) -> None:
    """Change fields of a running job. Its processes finish their calls and restart."""
    cluster.change(job, dict(set))


def stop_job(cluster: Cluster, job: str) -> None:
    cluster.stop(job)


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
    yield seconds / 2  # all clients have reconnected
    number = target.health.recovery_start
    replayed = target.replay()
    yield seconds / 2
    yield replayed
    if target.health.recovery_start == number:  # and the target did not fail again meanwhile
        target.health.recovered(cluster.now)


def _ost(cluster: Cluster, name: str) -> Ost:
    found = cluster.target(name)
    if not isinstance(found, Ost):
        raise LookupError(f"{name} is not an OST")
    return found


def _mdt(cluster: Cluster, name: str) -> Mdt:
    found = cluster.target(name)
    if not isinstance(found, Mdt):
        raise LookupError(f"{name} is not an MDT")
    return found
