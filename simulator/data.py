"""What applications do with bytes.

Direct writes go out at once and are safe when they return. Buffered writes return when the pages are copied; they go
out when a whole RPC has come together, at fsync, or some seconds after the file was closed, whichever comes first.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from lustre.changelog import RecordType
from simulator.changelog import SERVER
from simulator.engine import Completion, Steps, gather
from simulator.handle import FileHandle
from simulator.namespace import Inode
from simulator.placement import Extent, covers, extents
from simulator.readahead import Window

if TYPE_CHECKING:
    from simulator.client import Client

PAGE_BYTES = 4096
COPY_SECONDS_PER_MIB = 0.002


class DataPath:
    """Reads and writes of one mount."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def write(self, handle: FileHandle, offset: int, size_bytes: int, *, direct: bool) -> Steps[None]:
        """One call that writes."""
        client, inode, began = self._client, handle.inode, self._client.engine.now
        yield from self._reach(inode, offset + size_bytes)
        pieces = self._pieces(inode, offset, size_bytes)
        if direct:
            yield gather([self._send(handle, piece, write=True, direct=True) for piece in pieces])
        else:
            yield client.jitter(COPY_SECONDS_PER_MIB * size_bytes / (1 << 20))
            self._soil(handle, pieces)
            yield from self._write_full_rpcs(handle)
            client.cache.keep(inode.fid, offset + size_bytes)
            client.stats.count("hybrid_noswitch", 1)
        inode.wrote(offset + size_bytes, client.time)
        client.stats.tally("write_bytes", size_bytes)
        client.stats.tally("write", client.since(began))

    def read(self, handle: FileHandle, offset: int, size_bytes: int, *, direct: bool) -> Steps[int]:
        """One call that reads; how many bytes it got. What the client has in its cache costs nothing but the copy."""
        client, inode, began = self._client, handle.inode, self._client.engine.now
        size = max(min(size_bytes, inode.size_bytes - offset), 0)
        if size == 0:
            return 0
        if direct:
            pieces = self._pieces(inode, offset, size)
            yield gather([self._send(handle, piece, write=False, direct=True) for piece in pieces])
        elif client.cache.has(inode.fid, offset + size):
            yield client.jitter(COPY_SECONDS_PER_MIB * size / (1 << 20))
            client.stats.tally("cached_read_bytes", size)
        else:
            assert handle.window is not None
            yield from handle.window.read(offset, size, inode.size_bytes)
            client.cache.keep(inode.fid, offset + size)
        inode.atime = client.time
        client.stats.tally("read_bytes", size)
        client.stats.tally("read", client.since(began))
        return size

    def fsync(self, handle: FileHandle) -> Steps[None]:
        """Write out what is dirty, then have each OST that holds a part, and the MDT, make it safe."""
        client, inode, began = self._client, handle.inode, self._client.engine.now
        yield from self._flush(handle)
        parts = inode.layout.components if inode.layout is not None else ()
        osts = sorted({stripe.ost_index for part in parts for stripe in part.objects})
        job_id = handle.actor.job_id
        yield gather([client.engine.spawn(client.oscs[index].sync(job_id)) for index in osts])
        yield from client.mdcs[inode.mdt_index].ask("sync", job_id)
        client.stats.tally("fsync", client.since(began))

    def window(self, handle: FileHandle) -> Window:
        """Read-ahead for a file just opened."""
        return Window(self._client.read_ahead, lambda start, size: self._fetch(handle, start, size))

    def write_back_later(self, handle: FileHandle) -> None:
        """A file was closed with dirty pages: they go out after a while, or when somebody needs them to."""
        client = self._client
        handle.inode.write_back = lambda: client.engine.spawn(self._flush(handle))
        client.engine.after(client.settings.write_back_seconds, self._write_back, handle)

    def _write_back(self, handle: FileHandle) -> None:
        handle.inode.write_back = None
        if handle.inode.unlinked:
            self._clean(handle)
        else:
            self._client.engine.spawn(self._flush(handle))

    def _reach(self, inode: Inode, end_bytes: int) -> Steps[None]:
        """Give components their objects before the first write reaches them. The MDT does it, for no job."""
        client = self._client
        if inode.layout is None or covers(inode.layout, end_bytes):
            return
        yield from client.mdcs[inode.mdt_index].ask("layout", "")
        if inode.layout is not None and not covers(inode.layout, end_bytes):
            inode.layout = client.servers.placement.reach(inode.layout, end_bytes)
            inode.lease_broken = True
            known = inode.parent if client.rng.random() < 0.5 else None  # the MDT may not have the parent at hand
            client.record(RecordType.LAYOUT, inode, SERVER, parent=known)

    def _pieces(self, inode: Inode, offset: int, size_bytes: int) -> list[Extent]:
        return extents(inode.layout, offset, size_bytes) if inode.layout is not None else []

    def _send(self, handle: FileHandle, piece: Extent, *, write: bool, direct: bool) -> Completion:
        osc = self._client.oscs[piece.ost_index]
        stored = osc.ost.store.objects.get(piece.fid)
        if stored is None:
            gone = Completion()
            gone.fail(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), handle.inode.name))
            return gone
        if not direct and piece.fid not in handle.locked:
            handle.locked.add(piece.fid)
            osc.enqueue_lock()
        return osc.transfer(write, stored, piece.offset, piece.size_bytes, handle.actor.job_id, direct)

    def _fetch(self, handle: FileHandle, start: int, size_bytes: int) -> Completion:
        pieces = self._pieces(handle.inode, start, size_bytes)
        return gather([self._send(handle, piece, write=False, direct=False) for piece in pieces])

    def _soil(self, handle: FileHandle, pieces: list[Extent]) -> None:
        for piece in pieces:
            self._client.oscs[piece.ost_index].dirty_bytes += handle.soil([piece])

    def _clean(self, handle: FileHandle, least_bytes: int = 0) -> list[Extent]:
        pieces = handle.clean(least_bytes)
        for piece in pieces:
            self._client.oscs[piece.ost_index].dirty_bytes -= piece.size_bytes
        return pieces

    def _flush(self, handle: FileHandle, least_bytes: int = 0) -> Steps[None]:
        pieces = self._clean(handle, least_bytes)
        yield gather([self._send(handle, piece, write=True, direct=False) for piece in pieces])

    def _write_full_rpcs(self, handle: FileHandle) -> Steps[None]:
        """Send what makes a whole RPC; wait for it only when an OSC may hold no more unsent pages."""
        limits = self._client.settings.osc
        sent = self._client.engine.spawn(self._flush(handle, limits.max_pages_per_rpc * PAGE_BYTES))
        if any(osc.pages_waiting[1] * PAGE_BYTES > limits.max_dirty_bytes for osc in self._client.oscs):
            yield sent
