"""From pieces of files to RPCs: each under a lock of its object, to the connection of its target."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from lustre.fid import Fid
from simulator.engine import Completion, Steps
from simulator.handle import FileHandle
from simulator.locks import Lock
from simulator.objects import StoredObject
from simulator.osc import Osc
from simulator.placement import Extent
from simulator.rpc import NETWORK_SECONDS

if TYPE_CHECKING:
    from simulator.client import Client

GRAIN_BYTES = 4096
_DONE = Completion()
_DONE.succeed()


class Transfer:
    """The way out of one mount."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.flush_object: Callable[[Fid], Completion] = lambda fid: _DONE
        """What is called when somebody else wants a lock: write out what is dirty of an object."""

    def all(self, handle: FileHandle, pieces: Iterable[Extent], *, write: bool, direct: bool) -> list[Completion]:
        """Send every piece."""
        return [self.one(handle, piece, write=write, direct=direct) for piece in pieces]

    def one(self, handle: FileHandle, piece: Extent, *, write: bool, direct: bool) -> Completion:
        """Send one piece, once its lock is there."""
        osc = self._client.oscs[piece.ost_index]
        stored = osc.ost.store.objects.get(piece.fid)
        if stored is None:
            gone = Completion()
            gone.fail(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), handle.inode.name))
            return gone
        if not direct and piece.fid not in handle.locked:
            handle.locked.add(piece.fid)
            osc.enqueue_lock()
        start, end = _grains(piece)
        flush = partial(self.flush_object, piece.fid)
        lock = stored.locks.known(self._client.index, start, end, write, flush)
        if lock is None and write and not direct:
            return self._under_its_lock(osc, stored, handle, piece)
        if lock is None:
            asking = stored.locks.ask(self._client.index, start, end, write, flush, NETWORK_SECONDS)
            return self._client.engine.spawn(self._locked(asking, osc, stored, handle, piece, write, direct))
        lock.using += 1
        sent = osc.transfer(write, stored, piece.offset, piece.size_bytes, handle.actor.job_id, direct)
        sent.then(lock.put)
        return sent

    def _under_its_lock(self, osc: Osc, stored: StoredObject, handle: FileHandle, piece: Extent) -> Completion:
        """Dirty pages go out under the lock they were dirtied under, and ask for none.

        That lock may be on its way back; who wants it waits for these pages, and they cannot wait for him.
        """
        return osc.transfer(True, stored, piece.offset, piece.size_bytes, handle.actor.job_id, False)

    def hold(self, handle: FileHandle, pieces: Iterable[Extent]) -> Steps[None]:
        """Have the locks below which pages may be dirtied; what others hold is called back first."""
        for piece in pieces:
            osc = self._client.oscs[piece.ost_index]
            stored = osc.ost.store.objects.get(piece.fid)
            if stored is not None:
                start, end = _grains(piece)
                flush = partial(self.flush_object, piece.fid)
                if stored.locks.known(self._client.index, start, end, True, flush) is None:
                    osc.enqueue_lock()
                    asked = stored.locks.ask(self._client.index, start, end, True, flush, NETWORK_SECONDS)
                    (yield from asked).put(_DONE)

    def to_mdt(self, handle: FileHandle, size_bytes: int, *, write: bool) -> Completion:
        """Data of a file that lies on its MDT."""
        mdc = self._client.mdcs[handle.inode.mdt_index]
        return self._client.engine.spawn(mdc.transfer(write, size_bytes, handle.actor.job_id))

    def _locked(
        self, asking: Steps[Lock], osc: Osc, stored: StoredObject, handle: FileHandle, piece: Extent, write: bool,
        direct: bool,
    ) -> Steps[None]:  # fmt: skip
        osc.enqueue_lock()
        lock = yield from asking
        try:
            yield osc.transfer(write, stored, piece.offset, piece.size_bytes, handle.actor.job_id, direct)
        finally:
            lock.put(_DONE)


def _grains(piece: Extent) -> tuple[int, int]:
    """Locks cover whole pages."""
    return piece.offset // GRAIN_BYTES * GRAIN_BYTES, -(-(piece.offset + piece.size_bytes) // GRAIN_BYTES) * GRAIN_BYTES
