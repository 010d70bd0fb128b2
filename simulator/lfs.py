"""What an administrator, or tierd, does to a cluster with ``lfs``: migrate, mirror resync, setstripe on a directory."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, TypeVar

from lustre.changelog.record import RecordType
from lustre.layout.model import Layout
from simulator.changelog import Actor
from simulator.client import Client
from simulator.engine import Completion, Steps
from simulator.migration import Migration
from simulator.resync import Resync

if TYPE_CHECKING:
    from simulator.cluster import Cluster

Work = TypeVar("Work", Migration, Resync)
MOVER = SETSTRIPE = "lfs.0"


def migrate(cluster: Cluster, path: str, layout: Layout) -> Migration:
    """Have the mover move a file; ``finished`` of what this returns is done in virtual time."""
    return _begun(cluster, Migration(path, layout))


def resync(cluster: Cluster, path: str) -> Resync:
    """Have the stale copies of a file brought up to date."""
    return _begun(cluster, Resync(path))


def set_default_layout(cluster: Cluster, directory: str, layout: Layout | None) -> None:
    """New files below a directory get the layout, those that are there keep theirs. Raises OSError ENOTDIR, EINVAL."""
    inode = cluster.namespace.lookup(directory)
    if not inode.is_directory:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
    cluster.placement.check(layout)
    inode.layout = layout
    mdt = cluster.mdts[inode.mdt_index]
    actor = Actor(SETSTRIPE, 0, 0, cluster.clients[cluster.settings.mover_client].settings.nid)
    mdt.changelog.add(RecordType.SETXATTR, cluster.epoch, inode.fid, actor, xattr_name="lustre.lov")
    mdt.tally(SETSTRIPE, "setattr", 900)


def _begun(cluster: Cluster, work: Work) -> Work:
    client = cluster.clients[cluster.settings.mover_client]
    actor = Actor(MOVER, 0, 0, client.settings.nid)
    ended = cluster.engine.spawn(_steps(cluster, work, client, actor))
    ended.then(lambda done: _pass_on(done, work.finished))
    return work


def _steps(cluster: Cluster, work: Work, client: Client, actor: Actor) -> Steps[None]:
    """The program has to compute before the work is done, and beside it; here all of that comes before."""
    costs = cluster.settings.costs
    yield from cluster.processors.work(costs, costs.move_processor_seconds)
    yield from work.steps(client, actor, costs.move_start_seconds)


def _pass_on(done: Completion, to: Completion) -> None:
    if done.error is None:
        to.succeed()
    else:
        to.fail(done.error)
