"""The files that a flow of small files creates: names, changelog records, space on the targets, and unlinks.

If a job creates more than :data:`NAMED_PER_SECOND` files per second, only that many get a name. The other files appear
only in counters and bytes and use no space. The namespace therefore stays small enough to walk, even with tens of
thousands of creates per second.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Mapping

from lustre.changelog.record import RecordType
from simulator.cluster import Cluster
from simulator.fluid.flows import ON_MDT
from simulator.jobs.job import user_of
from simulator.jobs.small_files import SmallFileWriter
from simulator.servers.changelog import CLOSE_CREATE, OPEN_CREATE, OPEN_MODE_BASE, SERVER, Actor
from simulator.servers.namespace import Inode
from simulator.servers.placement import extents, is_instantiated

NAMED_PER_SECOND = 50
OPERATION_USEC = {"mknod": 1600, "open": 600, "close": 500, "unlink": 900}
SAMPLE_FILES = 100


class FlowFiles:
    """The files of one job in one directory. ``number`` is the number of the last file; new names continue from it."""

    def __init__(self, cluster: Cluster, job: SmallFileWriter, nids: tuple[str, ...], number: int) -> None:
        self.job = job
        self.number = number
        self._cluster = cluster
        self._mdt = cluster.mdts[cluster.namespace.lookup(job.directory).mdt_index]
        self._random = cluster.random(job.job_id)
        self._nids = nids
        self._files: deque[Inode] = deque()
        self._owed = self._owed_names = 0.0
        self._user = user_of(job.job_id)

    def create(self, count: float, since: float, until: float) -> None:
        """Create files evenly over a span of virtual time."""
        epoch = self._cluster.epoch - self._cluster.now
        self._owed += count
        whole, self._owed = int(self._owed), self._owed % 1
        self._count(whole, until)
        self._owed_names += min(whole, NAMED_PER_SECOND * (until - since))
        names, self._owed_names = int(self._owed_names), self._owed_names % 1
        for number in range(names):
            self._file(epoch + since + (number + 1) * (until - since) / names)

    def shares(self) -> Mapping[str, float]:
        if not self._files:
            return {}
        pools = [_pool(self._random.choice(self._files)) for _ in range(SAMPLE_FILES)]
        return {pool: pools.count(pool) / SAMPLE_FILES for pool in sorted(set(pools))}

    def _count(self, files: int, now: float) -> None:
        unlinked = files if len(self._files) >= self.job.keep * self.job.nodes else 0
        for operation, usec in OPERATION_USEC.items():
            times = unlinked if operation == "unlink" else files
            self._mdt.stats[operation].bulk(times, usec)
            self._mdt.jobs.bulk(self.job.job_id, operation, times, usec, now)

    def _file(self, time: float) -> None:
        namespace, placement = self._cluster.namespace, self._cluster.placement
        directory = namespace.lookup(self.job.directory)
        size = self._random.choice(self.job.sizes)
        try:
            layout = placement.create(directory.layout or namespace.root.layout)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return
        self.number += 1
        name = f"f{self.number}"
        inode = namespace.add(directory, name, directory.mdt_index, time, uid=self._user)
        inode.layout = layout
        actor = Actor(self.job.job_id, self._user, self._random.choice(self._nids))
        log = self._mdt.changelog
        log.add(RecordType.CREATE, time, inode.fid, actor, parent=directory.fid, name=name)
        mode = OPEN_MODE_BASE | OPEN_CREATE
        log.add(RecordType.OPEN, time, inode.fid, actor, flags=OPEN_CREATE, parent=directory.fid, open_mode=mode)
        self._write(inode, size, time)
        log.add(RecordType.CLOSE, time, inode.fid, actor, flags=CLOSE_CREATE)
        self._files.append(inode)
        while len(self._files) > self.job.keep * self.job.nodes:
            self._unlink(self._files.popleft(), actor, time)

    def _write(self, inode: Inode, size: int, time: float) -> None:
        assert inode.layout is not None
        try:
            reached = self._cluster.placement.reach(inode.layout, size)
            if not is_instantiated(inode.layout, size):
                self._mdt.changelog.add(RecordType.LAYOUT, time, inode.fid, SERVER)
            inode.layout = reached
            for piece in extents(reached, 0, size):
                store = self._cluster.osts[piece.ost_index].store
                store.grow(store.objects[piece.fid], piece.offset, piece.offset + piece.size_bytes)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return  # the target is full: the file ends here
        inode.wrote(size, time)

    def _unlink(self, inode: Inode, actor: Actor, time: float) -> None:
        if inode.unlinked:
            return
        parent = inode.parent.fid if inode.parent is not None else None
        self._cluster.namespace.remove(inode, time)
        if inode.layout is not None:
            self._cluster.placement.release(inode.layout)
            inode.layout = None
        self._mdt.changelog.add(RecordType.UNLINK, time, inode.fid, actor, flags=1, parent=parent, name=inode.name)


def _pool(inode: Inode) -> str:
    """Pool of the first byte of a file, or :data:`ON_MDT`."""
    if inode.layout is None:
        return ""
    return ON_MDT if inode.layout.components[0].on_mdt else inode.layout.components[0].pool
