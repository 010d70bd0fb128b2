"""Reads and writes of one mount: dirty pages, layout changes that writes cause, and RPCs under extent locks.

Direct writes are sent immediately and are safe when they return. Buffered writes return when the pages are copied.
Dirty pages are sent at the first of these events: they fill a whole RPC, fsync, the connection reaches its limit of
dirty pages, another client requests the lock, or some seconds have passed since the file was closed.

If a write reaches a component without objects, or a mirrored file, the layout must change first. The client sends a
request to the MDT, which revokes the layout lock from every holder, including this client. The client then loses its
cached data below that layout, so it first sends the dirty pages of the part already written, and the writer waits.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from lustre.changelog.record import RecordType
from lustre.fid import Fid
from lustre.layout.model import Layout
from simulator.clients.mount import Mount
from simulator.clients.readahead import ReadAheadWindow
from simulator.engine import COMPLETE, Completion, Steps, gather
from simulator.network import Fragment, merged_fragments
from simulator.servers import layouts
from simulator.servers.changelog import SERVER, Actor
from simulator.servers.namespace import Inode
from simulator.servers.placement import Extent, bytes_on_mdt, extents, is_instantiated, writable_end

PAGE_BYTES = 4096


@dataclass(eq=False, slots=True)
class FileHandle:
    """One open file descriptor."""

    inode: Inode
    actor: Actor
    flags: int
    opened_at: float
    writable: bool
    locked: set[Fid] = field(default_factory=set)
    window: ReadAheadWindow | None = None
    on_mdt: list[Completion] = field(default_factory=list)
    """Transfers to the MDT in progress."""
    _dirty: dict[tuple[int, Fid], list[Fragment]] = field(default_factory=dict)

    @property
    def dirty(self) -> bool:
        return bool(self._dirty)

    def mark_dirty(self, piece: Extent) -> int:
        """Mark pages as dirty; returns the number of newly dirty bytes."""
        key = piece.ost_index, piece.fid
        before = self._dirty.get(key, [])
        self._dirty[key] = merged_fragments([*before, (piece.offset, piece.size_bytes)])
        return _bytes_of(self._dirty[key]) - _bytes_of(before)

    def has_dirty(self, least_bytes: int) -> bool:
        return any(_bytes_of(fragments) >= least_bytes for fragments in self._dirty.values())

    def clean(self, least_bytes: int) -> list[Extent]:
        """Remove and return the dirty pieces of every object with at least ``least_bytes`` dirty bytes."""
        full = [key for key, fragments in self._dirty.items() if _bytes_of(fragments) >= least_bytes]
        return [Extent(*key, *fragment) for key in full for fragment in self._dirty.pop(key)]


def _bytes_of(fragments: list[Fragment]) -> int:
    return sum([size for _, size in fragments])


def _locked_range(piece: Extent) -> tuple[int, int]:
    first, last = piece.offset // PAGE_BYTES, -(-(piece.offset + piece.size_bytes) // PAGE_BYTES)
    return first * PAGE_BYTES, last * PAGE_BYTES


class Transfer:
    """Sends the data of one mount to the targets, and writes its dirty pages back."""

    def __init__(self, mount: Mount) -> None:
        self._mount = mount
        self._holders: dict[Fid, FileHandle] = {}
        """By object, the handle with its dirty pages."""

    def all(self, handle: FileHandle, pieces: Iterable[Extent], *, write: bool, direct: bool) -> list[Completion]:
        return [self.one(handle, piece, write=write, direct=direct) for piece in pieces]

    def one(self, handle: FileHandle, piece: Extent, *, write: bool, direct: bool) -> Completion:
        """Send one piece as soon as its lock is granted."""
        osc = self._mount.oscs[piece.ost_index]
        stored = osc.ost.store.objects.get(piece.fid)
        if stored is None:
            gone = Completion()
            gone.fail(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), handle.inode.name))
            return gone
        if not direct and piece.fid not in handle.locked:
            handle.locked.add(piece.fid)
            osc.enqueue_lock()
        start, end = _locked_range(piece)
        flush = partial(self._flush_object, piece.fid)
        # none while the lock is called back: new I/O must not go under it
        lock = stored.locks.known(self._mount.index, start, end, write, flush)
        if lock is None and write and not direct:
            # Dirty pages go under the lock they were written under. The server may have called it back, and the client
            # that requested it waits for these pages: they must not wait for a new lock.
            return osc.transfer(True, stored, piece.offset, piece.size_bytes, handle.actor.job_id, sync=False)
        if lock is None:
            def under_a_new_lock() -> Steps[None]:
                osc.enqueue_lock()
                granted = yield from stored.locks.ask(self._mount.index, start, end, write, flush,
                                                      network_seconds=self._mount.settings.network_seconds)
                try:
                    yield osc.transfer(write, stored, piece.offset, piece.size_bytes, handle.actor.job_id, sync=direct)
                finally:
                    granted.put(COMPLETE)

            return self._mount.engine.spawn(under_a_new_lock())
        lock.using += 1
        sent = osc.transfer(write, stored, piece.offset, piece.size_bytes, handle.actor.job_id, sync=direct)
        sent.then(lock.put)
        return sent

    def hold(self, handle: FileHandle, pieces: Iterable[Extent]) -> Steps[None]:
        """Acquire the locks for writing pages. The server first calls back conflicting locks."""
        for piece in pieces:
            osc = self._mount.oscs[piece.ost_index]
            stored = osc.ost.store.objects.get(piece.fid)
            if stored is not None:
                start, end = _locked_range(piece)
                flush = partial(self._flush_object, piece.fid)
                if stored.locks.known(self._mount.index, start, end, True, flush) is None:
                    osc.enqueue_lock()
                    away = self._mount.settings.network_seconds
                    lock = stored.locks.ask(self._mount.index, start, end, True, flush, network_seconds=away)
                    (yield from lock).put(COMPLETE)

    def to_mdt(self, handle: FileHandle, size_bytes: int, *, write: bool) -> Completion:
        """Send or fetch data that is stored on the MDT."""
        mdc = self._mount.mdcs[handle.inode.mdt_index]
        return self._mount.engine.spawn(mdc.transfer(write, size_bytes, handle.actor.job_id))

    def mark_dirty(self, handle: FileHandle, pieces: list[Extent]) -> None:
        for piece in pieces:
            self._mount.oscs[piece.ost_index].dirty_bytes += handle.mark_dirty(piece)
            self._holders[piece.fid] = handle

    def clean(self, handle: FileHandle, least_bytes: int = 0) -> list[Extent]:
        """Remove and return the dirty pieces of objects with at least ``least_bytes`` dirty bytes."""
        pieces = handle.clean(least_bytes)
        for piece in pieces:
            self._mount.oscs[piece.ost_index].dirty_bytes -= piece.size_bytes
            self._holders.pop(piece.fid, None)
        return pieces

    def flush(self, handle: FileHandle, least_bytes: int = 0) -> Steps[None]:
        pieces = self.clean(handle, least_bytes)  # before any wait: no second flush must send the same pages
        on_mdt = [sent for sent in handle.on_mdt if not sent.done]
        handle.on_mdt.clear()
        yield gather([*on_mdt, *self.all(handle, pieces, write=True, direct=False)])

    def send_full_rpcs(self, handle: FileHandle) -> Steps[None]:
        """Send full RPCs. Wait while a connection has more dirty pages than its limit."""
        if not handle.dirty:
            return
        limits = self._mount.settings.osc
        full_bytes = limits.max_pages_per_rpc * PAGE_BYTES
        sent = COMPLETE
        if handle.on_mdt or handle.has_dirty(full_bytes):
            sent = self._mount.engine.spawn(self.flush(handle, full_bytes))
        if max([osc.unwritten_bytes for osc in self._mount.oscs]) > limits.max_dirty_bytes:
            yield sent
            yield from self.flush(handle)

    def later(self, handle: FileHandle) -> None:
        """Write the dirty pages of a closed file after some seconds, or earlier on request."""
        mount = self._mount
        handle.inode.write_back = lambda: mount.engine.spawn(self.flush(handle))
        mount.engine.after(mount.settings.write_back_seconds, self._due, handle)

    def _due(self, handle: FileHandle) -> None:
        handle.inode.write_back = None
        if handle.inode.unlinked:
            self.clean(handle)  # nobody can read it any more: its pages are not written
        else:
            self._mount.engine.spawn(self.flush(handle))

    def _flush_object(self, fid: Fid) -> Completion:
        handle = self._holders.get(fid)
        if handle is None:
            return gather([])
        self._mount.cache.drop(handle.inode.fid)  # without the lock, cached pages may be out of date
        return self._mount.engine.spawn(self.flush(handle))


class DataPath:
    """Reads and writes of one mount, and the layout changes that its writes cause."""

    def __init__(self, mount: Mount) -> None:
        self._mount = mount
        self.transfer = Transfer(mount)
        self._osts = mount.servers.osts_for_mirrors

    def write(self, handle: FileHandle, offset: int, size_bytes: int, *, direct: bool) -> Steps[None]:
        """Write a range with one call, component by component."""
        mount, inode, began = self._mount, handle.inode, self._mount.engine.now
        at, end = offset, offset + size_bytes
        while at < end:
            layout = inode.layout
            if layout is not None and (not is_instantiated(layout, end) or layouts.mirrors_in_sync(layout)):
                stop = yield from self._make_writable(handle, at, end)
            else:
                stop = writable_end(layout, at, end)
            yield from self._write_part(handle, at, stop - at, direct=direct)
            at = stop
        inode.wrote(end, mount.time)
        mount.stats.tally("write_bytes", size_bytes)
        mount.stats.tally("write", mount.since(began))

    def read(self, handle: FileHandle, offset: int, size_bytes: int, *, direct: bool) -> Steps[int]:
        """Read a range with one call; returns the number of bytes. Cached bytes cost only the time of the copy."""
        mount, inode, began = self._mount, handle.inode, self._mount.engine.now
        size = max(min(size_bytes, inode.size_bytes - offset), 0)
        if size == 0:
            return 0
        if direct:
            yield self._fetch(handle, offset, size, direct=True)
        elif mount.cache.has(inode.fid, offset + size):
            yield self._copying(size)
            mount.stats.tally("cached_read_bytes", size)
        else:
            assert handle.window is not None
            yield from handle.window.read(offset, size, inode.size_bytes)
            if handle.window.from_front:
                mount.cache.keep(inode.fid, offset + size)
        inode.atime = mount.time
        mount.stats.tally("read_bytes", size)
        mount.stats.tally("read", mount.since(began))
        return size

    def fsync(self, handle: FileHandle) -> Steps[None]:
        """Write the dirty pages, then sync every OST of the file and its MDT."""
        mount, inode, began = self._mount, handle.inode, self._mount.engine.now
        yield from self.transfer.flush(handle)
        parts = inode.layout.components if inode.layout is not None else ()
        osts = sorted({stripe.ost_index for part in parts for stripe in part.objects})
        job_id = handle.actor.job_id
        yield gather([mount.engine.spawn(mount.oscs[index].sync(job_id)) for index in osts])
        yield from mount.mdcs[inode.mdt_index].ask("sync", job_id)
        mount.stats.tally("fsync", mount.since(began))

    def window(self, handle: FileHandle) -> ReadAheadWindow:
        return ReadAheadWindow(self._mount.read_ahead, partial(self._fetch, handle, direct=False), handle.inode.fid)

    def _write_part(self, handle: FileHandle, offset: int, size: int, *, direct: bool) -> Steps[None]:
        mount, inode = self._mount, handle.inode
        pieces = self._written(inode, offset, size)
        on_mdt = bytes_on_mdt(inode.layout, offset, size) if inode.layout is not None else 0
        sent = [self.transfer.to_mdt(handle, on_mdt, write=True)] if on_mdt else []
        if direct:
            yield gather([*sent, *self.transfer.all(handle, pieces, write=True, direct=True)])
            return
        yield self._copying(size)
        yield from self.transfer.hold(handle, pieces)
        handle.on_mdt += sent
        self.transfer.mark_dirty(handle, pieces)
        yield from self.transfer.send_full_rpcs(handle)
        mount.cache.keep(inode.fid, offset + size)
        mount.stats.count("hybrid_noswitch", 1)

    def _copying(self, size_bytes: int) -> float:
        return self._mount.jitter(self._mount.settings.copy_seconds_per_mib * size_bytes / (1 << 20))

    def _written(self, inode: Inode, offset: int, size: int) -> list[Extent]:
        if inode.layout is None:
            return []
        return extents(layouts.mirror_to_write(inode.layout, self._osts), offset, size)

    def _fetch(self, handle: FileHandle, start: int, size: int, *, direct: bool) -> Completion:
        if handle.inode.layout is None:
            return gather([])
        layout = layouts.mirror_to_read(handle.inode.layout, self._mount.servers.osts)
        on_mdt = bytes_on_mdt(layout, start, size)
        sent = [self.transfer.to_mdt(handle, on_mdt, write=False)] if on_mdt else []
        sent += self.transfer.all(handle, extents(layout, start, size), write=False, direct=direct)
        return sent[0] if len(sent) == 1 else gather(sent)

    def _make_writable(self, handle: FileHandle, offset: int, end: int) -> Steps[int]:
        """Make the bytes from an offset writable. Returns the end of the range that needs no further change."""
        inode = handle.inode
        assert inode.layout is not None
        if layouts.mirrors_in_sync(inode.layout):
            yield from self._ask(handle)
            # another process may have changed it meanwhile
            if inode.layout is not None and layouts.mirrors_in_sync(inode.layout):
                inode.layout = layouts.with_stale_mirrors(inode.layout, self._osts)
                self._record(handle, RecordType.FLR_WRITE)
        end = writable_end(inode.layout, offset, end)
        ready = self._ready_up_to(inode.layout, offset, end)
        if ready > offset or inode.layout is None:
            return ready
        yield from self._ask(handle)
        # another process may have made the objects meanwhile
        if inode.layout is not None and not is_instantiated(layouts.mirror_to_write(inode.layout, self._osts), end):
            only = layouts.mirror_to_write(inode.layout, self._osts)
            inode.layout = self._mount.servers.placement.reach(inode.layout, offset + 1, only)
            inode.lease_broken = True
            self._record(handle, RecordType.LAYOUT)
        ready = self._ready_up_to(inode.layout, offset, end)
        if ready <= offset:
            raise OSError(errno.ENODATA, os.strerror(errno.ENODATA), inode.name)  # the layout ends before the offset
        return ready

    def _ask(self, handle: FileHandle) -> Steps[None]:
        if handle.dirty:
            yield from self.transfer.flush(handle)
        yield from self._mount.mdcs[handle.inode.mdt_index].ask("layout", "")  # the MDT counts it for no job

    def _record(self, handle: FileHandle, kind: RecordType) -> None:
        inode = handle.inode
        known = inode.parent if self._mount.rng.random() < 0.5 else None  # the MDT does not always know the parent
        self._mount.record(kind, inode, SERVER, parent=known)

    def _ready_up_to(self, layout: Layout | None, offset: int, end: int) -> int:
        """End of the range from an offset whose components have objects."""
        if layout is None:
            return end
        missing = [part.extent_start for part in layouts.mirror_to_write(layout, self._osts).components
                   if "init" not in part.flags and (part.extent_end is None or part.extent_end > offset)]  # fmt: skip
        return max(min([end, *missing]), offset)
