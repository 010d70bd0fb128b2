"""What applications do with bytes.

Direct writes go out at once and are safe when they return. Buffered writes return when the pages are copied; they go
out when a whole RPC has come together, at fsync, when a connection may hold no more of them, when somebody else wants
the lock, or some seconds after the file was closed, whichever comes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator import mirrors
from simulator.dirty import WriteBack
from simulator.engine import Completion, Steps, gather
from simulator.handle import FileHandle
from simulator.namespace import Inode
from simulator.placement import Extent, bytes_on_mdt, covers, extents, within
from simulator.reach import Reach
from simulator.readahead import Window
from simulator.transfer import Transfer

if TYPE_CHECKING:
    from simulator.client import Client


class DataPath:
    """Reads and writes of one mount."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._transfer = Transfer(client)
        self.write_back = WriteBack(client, self._transfer)
        self._reach = Reach(client, self.write_back)

    def write(self, handle: FileHandle, offset: int, size_bytes: int, *, direct: bool) -> Steps[None]:
        """One call that writes, component by component."""
        client, inode, began = self._client, handle.inode, self._client.engine.now
        at, end = offset, offset + size_bytes
        while at < end:
            layout = inode.layout
            if layout is not None and (not covers(layout, end) or mirrors.in_sync(layout)):
                stop = yield from self._reach.next_part(handle, at, end)
            else:
                stop = within(layout, at, end)
            yield from self._write_part(handle, at, stop - at, direct=direct)
            at = stop
        inode.wrote(end, client.time)
        client.stats.tally("write_bytes", size_bytes)
        client.stats.tally("write", client.since(began))

    def read(self, handle: FileHandle, offset: int, size_bytes: int, *, direct: bool) -> Steps[int]:
        """One call that reads; how many bytes it got. What the client has in its cache costs nothing but the copy."""
        client, inode, began = self._client, handle.inode, self._client.engine.now
        size = max(min(size_bytes, inode.size_bytes - offset), 0)
        if size == 0:
            return 0
        if direct:
            yield self._fetch(handle, offset, size, direct=True)
        elif client.cache.has(inode.fid, offset + size):
            yield self._copying(size)
            client.stats.tally("cached_read_bytes", size)
        else:
            assert handle.window is not None
            yield from handle.window.read(offset, size, inode.size_bytes)
            if handle.window.from_front:
                client.cache.keep(inode.fid, offset + size)
        inode.atime = client.time
        client.stats.tally("read_bytes", size)
        client.stats.tally("read", client.since(began))
        return size

    def fsync(self, handle: FileHandle) -> Steps[None]:
        """Write out what is dirty, then have each OST that holds a part, and the MDT, make it safe."""
        client, inode, began = self._client, handle.inode, self._client.engine.now
        yield from self.write_back.flush(handle)
        parts = inode.layout.components if inode.layout is not None else ()
        osts = sorted({stripe.ost_index for part in parts for stripe in part.objects})
        job_id = handle.actor.job_id
        yield gather([client.engine.spawn(client.oscs[index].sync(job_id)) for index in osts])
        yield from client.mdcs[inode.mdt_index].ask("sync", job_id)
        client.stats.tally("fsync", client.since(began))

    def window(self, handle: FileHandle) -> Window:
        """Read-ahead for a file just opened."""

        def fetch(start: int, size: int) -> Completion:
            return self._fetch(handle, start, size, direct=False)

        return Window(self._client.read_ahead, fetch, handle.inode.fid)

    def _write_part(self, handle: FileHandle, offset: int, size: int, *, direct: bool) -> Steps[None]:
        client, inode = self._client, handle.inode
        pieces = self._written(inode, offset, size)
        on_mdt = bytes_on_mdt(inode.layout, offset, size) if inode.layout is not None else 0
        sent = [self._transfer.to_mdt(handle, on_mdt, write=True)] if on_mdt else []
        if direct:
            yield gather([*sent, *self._transfer.all(handle, pieces, write=True, direct=True)])
            return
        yield self._copying(size)
        yield from self._transfer.hold(handle, pieces)
        handle.on_mdt += sent
        self.write_back.soil(handle, pieces)
        yield from self.write_back.send_what_must_go(handle)
        client.cache.keep(inode.fid, offset + size)
        client.stats.count("hybrid_noswitch", 1)

    def _copying(self, size_bytes: int) -> float:
        return self._client.jitter(self._client.settings.copy_seconds_per_mib * size_bytes / (1 << 20))

    def _written(self, inode: Inode, offset: int, size: int) -> list[Extent]:
        if inode.layout is None:
            return []
        return extents(mirrors.to_write(inode.layout, self._client.servers.osts_for_mirrors), offset, size)

    def _fetch(self, handle: FileHandle, start: int, size: int, *, direct: bool) -> Completion:
        if handle.inode.layout is None:
            return gather([])
        layout = mirrors.to_read(handle.inode.layout, self._client.servers.osts)
        on_mdt = bytes_on_mdt(layout, start, size)
        sent = [self._transfer.to_mdt(handle, on_mdt, write=False)] if on_mdt else []
        sent += self._transfer.all(handle, extents(layout, start, size), write=False, direct=direct)
        return sent[0] if len(sent) == 1 else gather(sent)
