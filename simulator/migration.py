"""``lfs migrate -n`` and ``lfs mirror``: file data copied through the same queues as every job's I/O.

A migration reads every byte from the old targets, writes it to the new targets and swaps the layouts. If a writer opens
the file meanwhile, or the file is unlinked, the copy is discarded. The changelog has the records of a real migration:
the file opened and closed, a nameless file opened, one layout change. As in Lustre, a swap that removes data from the
MDT sets the modification time to the present; the mover restores it if nobody has written since
(``tierd.act.movers.inspection``). Data gets to an MDT by a mirror, as ``lfs migrate`` does it: the file is copied, then
the part for the MDT is written once more.

A resync rewrites every stale mirror from a mirror that is in sync. Components of the stale mirror without objects first
get their objects. An extension copies the file, and adds the copy to the layout as a mirror; a split removes one.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field, replace

from lustre.changelog.record import RecordType
from lustre.layout.model import Component, Layout, mirrors, one_mirror, pools_of, same_shape
from simulator.clients.client import Client
from simulator.clients.data import FileHandle
from simulator.engine import Completion, Steps
from simulator.servers import layouts
from simulator.servers.changelog import OPEN_CREATE, OPEN_MODE_BASE, Actor
from simulator.servers.namespace import Inode

CALL_BYTES = 4 << 20
LEASE_FLAGS = 0x3


@dataclass(eq=False)
class Copy:
    """A copy that is running or has ended. ``finished`` holds the error, if any."""

    path: str
    copied_bytes: int = field(default=0, init=False)
    finished: Completion = field(default_factory=Completion, init=False)

    def steps(self, client: Client, actor: Actor, start_seconds: float) -> Steps[None]:
        """Do it. Raises OSError as Lustre does."""
        raise NotImplementedError


@dataclass(eq=False)
class Migration(Copy):
    """A migration."""

    layout: Layout

    def steps(self, client: Client, actor: Actor, start_seconds: float) -> Steps[None]:
        inode = client.servers.namespace.lookup(self.path)
        if inode.layout is not None and inode.layout.mirror_count > 1:
            yield from self._change_mirrors(client, actor, inode, start_seconds)
            return
        yield client.jitter(start_seconds)
        check_movable(inode)
        if bytes_on_mdt_of(inode.layout) and bytes_on_mdt_of(self.layout) not in {0, bytes_on_mdt_of(inode.layout)}:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), inode.path)
        if inode.migrating:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), inode.path)
        inode.migrating = True
        try:
            inode.lease_broken = False
            yield from open_with_lease(client, inode, actor)
            yield from self._copy_and_swap(client, actor, inode)
        finally:
            inode.migrating = False

    def _copy_and_swap(self, client: Client, actor: Actor, inode: Inode) -> Steps[None]:
        placement = client.servers.placement
        fid = client.servers.namespace.new_fid(inode.mdt_index, client.index)
        volatile = Inode(fid, inode.mdt_index, None, "", client.time)
        yield from client.mdcs[inode.mdt_index].ask("open", actor.job_id)
        extends = self.layout.mirror_count > 1
        wanted = one_mirror(mirrors(self.layout)[-1]) if extends else self.layout
        volatile.layout = placement.create(with_pool_name(wanted, inode))
        mode = OPEN_MODE_BASE | OPEN_CREATE
        client.record(RecordType.OPEN, volatile, actor, OPEN_CREATE, parent=inode.parent, open_mode=mode)
        try:
            if inode.size_bytes:
                volatile.layout = placement.reach(volatile.layout, inode.size_bytes)
            yield from copy_data(client, FileHandle(inode, actor, 1, 0.0, writable=False), volatile, self)
            yield from client.mdcs[inode.mdt_index].ask("layout", actor.job_id)
            check_movable(inode)  # whoever opened it meanwhile wins
        except OSError:
            placement.release(volatile.layout)  # the copy is lost, not the file
            raise
        finally:
            yield from client.mdcs[inode.mdt_index].ask("close", actor.job_id)
            client.record(RecordType.CLOSE, inode, actor, LEASE_FLAGS)
        if extends:
            assert inode.layout is not None
            inode.layout = layouts.with_mirror(inode.layout, volatile.layout)
            client.record(RecordType.LAYOUT, inode, actor, parent=inode.parent)
            return
        if bytes_on_mdt_of(volatile.layout) and not bytes_on_mdt_of(inode.layout):
            yield from self._resync_on_mdt(client, actor, inode)
        old, inode.layout = inode.layout, volatile.layout
        client.record(RecordType.LAYOUT, inode, actor, parent=inode.parent)
        if bytes_on_mdt_of(old) and not bytes_on_mdt_of(inode.layout):
            yield from restore_times(client, inode, actor)
        if old is not None:
            # Lustre destroys the old objects some moments later
            client.engine.after(client.jitter(0.5), placement.release, old)

    def _change_mirrors(self, client: Client, actor: Actor, inode: Inode, start_seconds: float) -> Steps[None]:
        """Resynchronise the mirrors, or keep only the one with the wanted layout, which is first made in sync."""
        assert inode.layout is not None
        kept = self._kept(inode.layout)
        if self.layout.mirror_count > 1 or (kept and layouts.is_stale(kept)):
            resync = Resync(self.path)
            yield from resync.steps(client, actor, start_seconds)
            self.copied_bytes += resync.copied_bytes
        if self.layout.mirror_count > 1:
            return
        yield client.jitter(start_seconds)
        check_movable(inode)
        if not (kept := self._kept(inode.layout)) or layouts.is_stale(kept):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), inode.path)
        yield from client.mdcs[inode.mdt_index].ask("layout", actor.job_id)
        check_movable(inode)  # again: the request took time
        number = kept[0].mirror_id
        removed = Layout(tuple(part for part in inode.layout.components if part.mirror_id != number))
        inode.layout = layouts.with_one_mirror(inode.layout, number)
        client.record(RecordType.LAYOUT, inode, actor, parent=inode.parent)
        client.engine.after(client.jitter(0.5), client.servers.placement.release, removed)

    def _kept(self, present: Layout) -> tuple[Component, ...]:
        """The mirror with the wanted layout; empty without one."""
        return next((parts for parts in mirrors(present) if same_shape(Layout(parts), self.layout)), ())

    def _resync_on_mdt(self, client: Client, actor: Actor, inode: Inode) -> Steps[None]:
        """Write the part of the file for the MDT from the old layout, which is still the only one in sync."""
        client.record(RecordType.LAYOUT, inode, actor, parent=inode.parent)
        size = min(bytes_on_mdt_of(self.layout), inode.size_bytes)
        if size:
            yield from client.data.read(FileHandle(inode, actor, 1, 0.0, writable=False), 0, size, direct=True)
            yield from client.mdcs[inode.mdt_index].transfer(True, size, actor.job_id)
        check_movable(inode)
        client.record(RecordType.RESYNC, inode, actor)


def copy_data(client: Client, source: FileHandle, volatile: Inode, copy: Copy) -> Steps[None]:
    """Copy all data of a file to another. Raises OSError EBUSY when a process opens the file for writing."""
    target = FileHandle(volatile, source.actor, OPEN_CREATE, 0.0, writable=True)
    size = source.inode.size_bytes
    atime = source.inode.atime
    for offset in range(0, size, CALL_BYTES):
        length = min(CALL_BYTES, size - offset)
        yield from client.data.read(source, offset, length, direct=True)
        check_movable(source.inode)
        yield from client.data.write(target, offset, length, direct=True)
        check_movable(source.inode)
        copy.copied_bytes += length
    source.inode.atime = atime  # lfs opens files with O_NOATIME


def open_with_lease(client: Client, inode: Inode, actor: Actor) -> Steps[None]:
    """Open a file under a lease. Other clients first write their dirty pages."""
    if inode.write_back is not None:
        yield inode.write_back()
    yield from client.mdcs[inode.mdt_index].ask("open", actor.job_id)
    client.record(RecordType.OPEN, inode, actor, LEASE_FLAGS, open_mode=OPEN_MODE_BASE | LEASE_FLAGS)


def restore_times(client: Client, inode: Inode, actor: Actor) -> Steps[None]:
    """Restore the modification time, which the truncation of the data on the MDT has changed."""
    kept, version = inode.mtime, inode.content
    inode.mtime = client.time
    yield from client.mdcs[inode.mdt_index].ask("setattr", actor.job_id)
    if inode.content == version:
        inode.mtime = kept


def bytes_on_mdt_of(layout: Layout | None) -> int:
    """Bytes of each file with this layout that are stored on the MDT."""
    first = layout.components[0] if layout is not None and layout.components else None
    return (first.extent_end or 0) if first is not None and first.on_mdt else 0


def with_pool_name(layout: Layout, inode: Inode) -> Layout:
    """Name pools as Lustre 2.17 does: data on the MDT gets the pool name of the directory's default."""
    directory = inode.parent
    while directory is not None and directory.layout is None:
        directory = directory.parent
    pools = pools_of(directory.layout) if directory is not None and directory.layout is not None else ()
    return replace(layout, components=tuple(
        replace(part, pool=pools[-1]) if part.on_mdt and not part.pool and pools else part
        for part in layout.components))


def check_movable(inode: Inode) -> None:
    if inode.is_directory:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), inode.path)
    if inode.unlinked:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), inode.path)
    if inode.writers or (inode.lease_broken and inode.migrating):
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), inode.path)


class Resync(Copy):
    """A resync: it writes all stale mirrors, one after the other."""

    def steps(self, client: Client, actor: Actor, start_seconds: float) -> Steps[None]:
        yield client.jitter(start_seconds)
        inode = client.servers.namespace.lookup(self.path)
        check_movable(inode)
        inode.migrating, inode.lease_broken = True, False
        try:
            yield from open_with_lease(client, inode, actor)
            assert inode.layout is not None
            for parts in filter(layouts.is_stale, mirrors(inode.layout)):
                yield from self._copy(client, actor, inode, parts)
            yield from client.mdcs[inode.mdt_index].ask("layout", actor.job_id)
            check_movable(inode)
            if inode.layout.mirror_count > 1:
                inode.layout = layouts.with_synced_mirrors(inode.layout)
            client.record(RecordType.RESYNC, inode, actor)
        finally:
            inode.migrating = False
            yield from client.mdcs[inode.mdt_index].ask("close", actor.job_id)
            client.record(RecordType.CLOSE, inode, actor, LEASE_FLAGS)

    def _copy(self, client: Client, actor: Actor, inode: Inode, parts: tuple[Component, ...]) -> Steps[None]:
        shadow = Inode(inode.fid, inode.mdt_index, None, inode.name, client.time)
        shadow.layout = client.servers.placement.reach(Layout(parts), max(inode.size_bytes, 1))
        assert inode.layout is not None
        new = {part.component_id: part for part in shadow.layout.components}
        whole = tuple(new.get(part.component_id, part) for part in inode.layout.components)
        inode.layout = replace(inode.layout, components=whole)
        yield from copy_data(client, FileHandle(inode, actor, 1, 0.0, writable=False), shadow, self)
