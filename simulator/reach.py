"""A write comes to a component that has no objects yet, or to a file with copies: the layout has to change first.

The client asks the MDT; the layout lock is taken away from whoever has it, itself included. With the lock goes what the
client has in its cache below that layout, so dirty pages of the part already written are written out first, and the
writer waits for them.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from lustre.changelog.record import RecordType
from lustre.layout.model import Layout
from simulator import mirrors
from simulator.changelog import SERVER
from simulator.dirty import WriteBack
from simulator.engine import Steps
from simulator.handle import FileHandle
from simulator.placement import covers, within

if TYPE_CHECKING:
    from simulator.client import Client


class Reach:
    """Layout changes that writes of one mount bring about."""

    def __init__(self, client: Client, write_back: WriteBack) -> None:
        self._client = client
        self._write_back = write_back
        self._osts = client.servers.osts_for_mirrors

    def next_part(self, handle: FileHandle, offset: int, end: int) -> Steps[int]:
        """Make the bytes from an offset writable; how far they are without another change."""
        inode = handle.inode
        assert inode.layout is not None
        if mirrors.in_sync(inode.layout):
            yield from self._ask(handle)
            if inode.layout is not None and mirrors.in_sync(inode.layout):
                inode.layout = mirrors.written(inode.layout, self._osts)
                self._record(handle, RecordType.FLR_WRITE)
        end = within(inode.layout, offset, end)
        ready = self._ready_up_to(inode.layout, offset, end)
        if ready > offset or inode.layout is None:
            return ready
        yield from self._ask(handle)
        if inode.layout is not None and not covers(mirrors.to_write(inode.layout, self._osts), end):
            only = mirrors.to_write(inode.layout, self._osts)
            component_end = self._component_end(inode.layout, offset, end)
            inode.layout = self._client.servers.placement.reach(inode.layout, component_end, only)
            inode.lease_broken = True
            self._record(handle, RecordType.LAYOUT)
        ready = self._ready_up_to(inode.layout, offset, end)
        if ready <= offset:
            raise OSError(errno.ENODATA, os.strerror(errno.ENODATA), inode.name)  # the layout ends before
        return ready

    def _ask(self, handle: FileHandle) -> Steps[None]:
        """The MDT gives components their objects for no job."""
        if handle.dirty:
            yield from self._write_back.flush(handle)
        yield from self._client.mdcs[handle.inode.mdt_index].ask("layout", "")

    def _record(self, handle: FileHandle, kind: RecordType) -> None:
        inode = handle.inode
        known = inode.parent if self._client.rng.random() < 0.5 else None  # the MDT may not have the parent at hand
        self._client.record(kind, inode, SERVER, parent=known)

    def _component_end(self, layout: Layout, offset: int, end: int) -> int:
        """As far as the component at an offset goes, or the write."""
        for part in mirrors.to_write(layout, self._osts).components:
            inside = part.extent_start <= offset and (part.extent_end is None or offset < part.extent_end)
            if inside and "extension" not in part.flags:
                return end if part.extent_end is None else min(end, part.extent_end)
        return end

    def _ready_up_to(self, layout: Layout | None, offset: int, end: int) -> int:
        """How far from an offset the components have their objects."""
        if layout is None:
            return end
        missing = [part.extent_start for part in mirrors.to_write(layout, self._osts).components
                   if "init" not in part.flags and (part.extent_end is None or part.extent_end > offset)]  # fmt: skip
        return max(min([end, *missing]), offset)
