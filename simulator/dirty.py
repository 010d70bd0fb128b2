"""Dirty pages: when they go out, and who has to wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lustre.fid import Fid
from simulator.engine import Completion, Steps, gather
from simulator.handle import FileHandle
from simulator.placement import Extent
from simulator.transfer import Transfer

if TYPE_CHECKING:
    from simulator.client import Client

PAGE_BYTES = 4096


class WriteBack:
    """Dirty pages of one mount."""

    def __init__(self, client: Client, transfer: Transfer) -> None:
        self._client = client
        self._transfer = transfer
        self._holders: dict[Fid, FileHandle] = {}
        transfer.flush_object = self._flush_object

    def soil(self, handle: FileHandle, pieces: list[Extent]) -> None:
        """Pages were written to."""
        for piece in pieces:
            self._client.oscs[piece.ost_index].dirty_bytes += handle.soil([piece])
            self._holders[piece.fid] = handle

    def clean(self, handle: FileHandle, least_bytes: int = 0) -> list[Extent]:
        """Take out what is dirty, of the objects that have at least so much of it."""
        pieces = handle.clean(least_bytes)
        for piece in pieces:
            self._client.oscs[piece.ost_index].dirty_bytes -= piece.size_bytes
            self._holders.pop(piece.fid, None)
        return pieces

    def flush(self, handle: FileHandle, least_bytes: int = 0) -> Steps[None]:
        """Write out what is dirty, and wait for it."""
        pieces = self.clean(handle, least_bytes)
        on_mdt = [sent for sent in handle.on_mdt if not sent.done]
        handle.on_mdt.clear()
        yield gather([*on_mdt, *self._transfer.all(handle, pieces, write=True, direct=False)])

    def send_what_must_go(self, handle: FileHandle) -> Steps[None]:
        """Send what makes a whole RPC; wait while a connection has more unwritten pages than it may."""
        if not handle.dirty:
            return
        limits = self._client.settings.osc
        sent = self._client.engine.spawn(self.flush(handle, limits.max_pages_per_rpc * PAGE_BYTES))
        if any(osc.unwritten_bytes > limits.max_dirty_bytes for osc in self._client.oscs):
            yield sent
            yield from self.flush(handle)

    def later(self, handle: FileHandle) -> None:
        """A file was closed with dirty pages: they go out after a while, or when somebody needs them to."""
        client = self._client
        handle.inode.write_back = lambda: client.engine.spawn(self.flush(handle))
        client.engine.after(client.settings.write_back_seconds, self._due, handle)

    def _due(self, handle: FileHandle) -> None:
        handle.inode.write_back = None
        if handle.inode.unlinked:
            self.clean(handle)
        else:
            self._client.engine.spawn(self.flush(handle))

    def _flush_object(self, fid: Fid) -> Completion:
        """Somebody else wants the lock of an object."""
        handle = self._holders.get(fid)
        if handle is None:
            return gather([])
        self._client.cache.drop(handle.inode.fid)
        return self._client.engine.spawn(self.flush(handle))
