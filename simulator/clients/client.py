"""A client mount as applications call it: name operations, and statahead for ``ls -l``.

Each name operation (create, open, close, unlink, stat) is a request to one MDT and its answer.

Statahead: a client that recognises ``ls -l`` requests the attributes of the next names before they are needed. It sends
one request per name, a window of them at a time; from 2.16 on, many names go in one batched request. The OSTs hold the
sizes of files with objects, so these are requested ahead too (asynchronous glimpse lock, AGL).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from random import Random
from typing import TypeVar

from lustre.changelog.record import RecordType
from lustre.fid import Fid
from lustre.layout.model import Layout
from simulator.clients.data import DataPath, FileHandle
from simulator.clients.mount import ClientSettings, Mount, Servers
from simulator.counters import microseconds
from simulator.engine import Completion, Engine, Steps, gather
from simulator.servers.changelog import CLOSE_CREATE, OPEN_CREATE, OPEN_MODE_BASE, Actor
from simulator.servers.namespace import Inode

T = TypeVar("T")
OPEN_READ, OPEN_WRITE = 1, 2
DESTROY_SECONDS = 0.5
"""Time from an unlink until the MDT requests the destruction of the objects."""


class Client(Mount):
    """A mount with the operations that applications call: on names, and on data (``data``)."""

    def __init__(self, engine: Engine, index: int, settings: ClientSettings, servers: Servers, rng: Random) -> None:
        super().__init__(engine, index, settings, servers, rng)
        self.data = DataPath(self)
        self._looking_up: dict[Fid, Completion] = {}

    def mkdir(self, parent: Inode, name: str, actor: Actor) -> Steps[Inode]:
        """Create a directory. It inherits its parent's default layout if the parent has its own."""
        servers, began = self.servers, self.engine.now
        index = parent.shard(name)
        yield from self._alone(parent, self.mdcs[index].ask("mkdir", actor.job_id, parent))
        inode = servers.namespace.add(parent, name, index, self.time, uid=actor.uid, directory=True,
                                      client_index=self.index)
        inode.layout = parent.layout if parent.parent is not None else None
        inode.shards = servers.namespace.default_shards(parent, inode)
        self.record(RecordType.MKDIR, inode, actor, parent=parent, name=name)
        self.stats.tally("mkdir", self.since(began))
        return inode

    def create(self, parent: Inode, name: str, actor: Actor) -> Steps[FileHandle]:
        """Create a file and open it for writing. Its layout is the default of the directory, or else of the file
        system.
        """
        servers, began = self.servers, self.engine.now
        self._check_permission()
        shard = parent.shard(name)
        layout = yield from self._alone(parent, self._with_objects(parent, shard, actor))
        try:
            inode = servers.namespace.add(parent, name, shard, self.time, uid=actor.uid, client_index=self.index)
        except FileExistsError:  # the name was taken while objects were made
            servers.placement.release(layout)
            raise
        inode.layout = layout
        inode.data_lock = self.index if layout.components[0].on_mdt else -1
        servers.mdts[shard].tally(actor.job_id, "open", self.since(began))
        self.record(RecordType.CREATE, inode, actor, parent=parent, name=name)
        mode = OPEN_MODE_BASE | OPEN_CREATE
        self.record(RecordType.OPEN, inode, actor, OPEN_CREATE, parent=parent, open_mode=mode)
        self.stats.tally("mknod", self.since(began))
        inode.handles.append((self.index, actor.uid, True))
        return self._opened(inode, actor, OPEN_CREATE, began, writable=True)

    def open(self, inode: Inode, actor: Actor, *, write: bool = False) -> Steps[FileHandle]:
        """Open a file. A client asks the MDT once for all processes that have a file open in one mode
        (``ll_file_open``), and the MDT records one open for each user and mode, until the last close (``mdd_open``).
        """
        began = self.engine.now
        mode = OPEN_WRITE if write else OPEN_READ
        self._check_permission()
        yield from self._processed()
        handle, others = (self.index, actor.uid, write), tuple(inode.handles)
        inode.handles.append(handle)
        if handle not in others:
            yield from self.mdcs[inode.mdt_index].ask("open", actor.job_id, inode.parent)
        if inode.unlinked:  # removed while the request was under way
            raise _gone(inode)
        if (actor.uid, write) not in {other[1:] for other in others}:
            self.record(RecordType.OPEN, inode, actor, mode, open_mode=OPEN_MODE_BASE | mode)
        return self._opened(inode, actor, mode, began, writable=write)

    def close(self, handle: FileHandle) -> Steps[None]:
        """Close a file. Its dirty pages are written some seconds later."""
        inode, began = handle.inode, self.engine.now
        whose = self.index, handle.actor.uid, handle.writable
        inode.handles.remove(whose)
        others = tuple(inode.handles)
        if whose not in others:
            yield from self.mdcs[inode.mdt_index].ask("close", handle.actor.job_id)
            if whose[1:] not in {other[1:] for other in others}:
                flags = CLOSE_CREATE if handle.flags == OPEN_CREATE else handle.flags
                self.record(RecordType.CLOSE, inode, handle.actor, flags)
        inode.writers -= handle.writable
        if handle.dirty:
            self.data.transfer.later(handle)
        self.stats.tally("openclosetime", microseconds(self.engine.now - handle.opened_at))
        self.stats.tally("close", self.since(began))

    def unlink(self, inode: Inode, actor: Actor) -> Steps[None]:
        """Remove a file and its name. The OSTs destroy its objects later, when the MDT requests it."""
        servers, began = self.servers, self.engine.now
        parent, name = inode.parent, inode.name
        removal = self.mdcs[inode.mdt_index].ask("unlink", actor.job_id, parent)
        yield from (removal if parent is None else self._alone(parent, removal))
        if inode.unlinked:  # by another process, likewise
            raise _gone(inode)
        servers.namespace.remove(inode, self.time)
        self.cache.drop(inode.fid)
        if inode.layout is not None:
            for part in inode.layout.components:
                for stripe in part.objects:
                    self.oscs[stripe.ost_index].cancel_lock(self.jitter(0.003))
            self.engine.after(self.jitter(DESTROY_SECONDS), servers.placement.release, inode.layout)
            inode.layout = None
        self.record(RecordType.UNLINK, inode, actor, 1, parent=parent, name=name)
        self.stats.tally("unlink", self.since(began))

    def getattr(self, inode: Inode, actor: Actor) -> Steps[None]:
        """Do what stat(2) does: request the attributes of a file."""
        began = self.engine.now
        yield from self.attributes(inode, actor)
        self.stats.tally("getattr", self.since(began))

    def attributes(self, inode: Inode, actor: Actor) -> Steps[None]:
        """Request the attributes from the MDT and the size from the OSTs of the file."""
        mdc = self.mdcs[inode.mdt_index]
        lookup = mdc.ask("getattr", actor.job_id, inode.parent, inode)
        if self.settings.parallel_lookups or inode.parent is None:
            yield from self._processed()
            yield from lookup
        else:
            yield from self._alone(inode.parent, lookup)
        yield from self.glimpse(inode, actor)

    def glimpse(self, inode: Inode, actor: Actor) -> Steps[None]:
        """Request the size from every object. For data on the MDT, the MDT asks the client that holds the lock."""
        if inode.data_lock not in {-1, self.index}:
            yield from self.mdcs[inode.mdt_index].ask("glimpse", actor.job_id)
            yield 2 * self.settings.network_seconds
        stripes = [stripe for part in (inode.layout.components if inode.layout else ()) for stripe in part.objects]
        if len(stripes) == 1:
            yield from self.oscs[stripes[0].ost_index].glimpse(actor.job_id)
        elif stripes:
            glimpses = [self.engine.spawn(self.oscs[stripe.ost_index].glimpse(actor.job_id)) for stripe in stripes]
            yield gather(glimpses)

    def _with_objects(self, parent: Inode, shard: int, actor: Actor) -> Steps[Layout]:
        """Let the MDT create a file with its first objects, and wait for objects that no OST has in advance."""
        servers = self.servers
        yield from self.mdcs[shard].ask("mknod", actor.job_id, parent)
        layout = servers.placement.create(parent.layout or servers.namespace.root.layout)
        targets = {stripe.ost_index for part in layout.components for stripe in part.objects}
        if waiting := max((servers.osts[index].precreated.seconds() for index in targets), default=0.0):
            yield waiting
        return layout

    def _processed(self) -> Steps[None]:
        if seconds := self.settings.name_seconds:
            yield self.jitter(seconds)

    def _alone(self, directory: Inode, steps: Steps[T]) -> Steps[T]:
        """Run steps while no other process of this node changes the directory.

        The kernel holds the lock of the directory (``i_rwsem``, before 4.7 ``i_mutex``) during the request to the MDT:
        for changes in all releases, for lookups before 4.7.
        """
        turn, before = Completion(), self._looking_up.get(directory.fid)
        self._looking_up[directory.fid] = turn  # the last in the queue: the next one waits for it
        if before is not None:
            yield before
        try:
            yield from self._processed()
            return (yield from steps)
        finally:
            if self._looking_up[directory.fid] is turn:  # nobody has queued behind it
                del self._looking_up[directory.fid]
            turn.succeed()

    def _opened(self, inode: Inode, actor: Actor, flags: int, began: float, *, writable: bool) -> FileHandle:
        handle = FileHandle(inode, actor, flags, self.engine.now, writable=writable)
        handle.window = self.data.window(handle)
        inode.writers += writable
        inode.lease_broken |= writable
        self.stats.tally("open", self.since(began))
        self.stats.tally("opencount", 1)
        return handle

    def _check_permission(self) -> None:
        for _ in range(4):
            self.stats.tally("inode_permission", microseconds(self.jitter(0.00002)))


def _gone(inode: Inode) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), inode.name)


NAMES_PER_READDIR = 16384
"""Names in one answer to readdir: 256 pages of 64."""
STATS_BEFORE_STATAHEAD = 2
"""Number of names stat'ed in directory order before statahead starts."""


class Statahead:
    """Statahead of one process that walks through one directory."""

    def __init__(self, client: Client, names: Sequence[Inode], actor: Actor) -> None:
        self._client = client
        self._names = names
        self._actor = actor
        self._ready: dict[int, Completion] = {}
        self._requested = 0

    def stat(self, number: int) -> Steps[None]:
        """Get the attributes of one name, from statahead if it has requested them."""
        client, counters = self._client, self._client.statahead
        began = client.engine.now
        if number == STATS_BEFORE_STATAHEAD:
            counters["statahead total"] += 1
            counters["list_total"] += 1
        if number >= STATS_BEFORE_STATAHEAD:
            self._ask_ahead(number)
        if number in self._ready:
            counters["hit_total"] += 1
            yield self._ready.pop(number)
            yield client.jitter(0.000005)
        else:
            counters["miss_total"] += 1
            yield from client.attributes(self._names[number], self._actor)
        client.stats.tally("getattr", client.since(began))
        client.stats.tally("inode_permission", 1)

    def _ask_ahead(self, number: int) -> None:
        settings = self._client.settings.statahead
        if not settings.max_names:
            return
        last = min(number + settings.max_names, len(self._names))
        batch = settings.batch_max or 1
        self._requested = max(self._requested, number)
        end = last == len(self._names)
        while self._requested < last and (last - self._requested >= batch or end or self._requested == number):
            some = range(self._requested, min(self._requested + batch, last))
            inodes = [self._names[i] for i in some]
            done = self._client.engine.spawn(self._fetch(inodes))
            self._ready.update(dict.fromkeys(some, done))
            self._requested = some.stop

    def _fetch(self, inodes: Sequence[Inode]) -> Steps[None]:
        client = self._client
        mdc = client.mdcs[inodes[0].mdt_index]
        yield from mdc.batch("getattr", len(inodes), self._actor.job_id)
        client.statahead["agl total"] += sum(inode.layout is not None for inode in inodes)
        yield gather([client.engine.spawn(client.glimpse(inode, self._actor)) for inode in inodes])
