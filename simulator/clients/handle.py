"""An open file: who opened it and how, and its dirty pages that no OST has yet."""

from __future__ import annotations

from lustre.fid import Fid
from simulator.clients.readahead import ReadAheadWindow
from simulator.engine import Completion
from simulator.network import Fragment, merged_fragments
from simulator.servers.changelog import Actor
from simulator.servers.namespace import Inode
from simulator.servers.placement import Extent


class FileHandle:
    """One open file descriptor."""

    __slots__ = ("_dirty", "actor", "flags", "inode", "locked", "on_mdt", "opened_at", "window", "writable")

    def __init__(self, inode: Inode, actor: Actor, flags: int, now: float, *, writable: bool) -> None:
        self.inode = inode
        self.actor = actor
        self.flags = flags
        self.opened_at = now
        self.writable = writable
        self.locked: set[Fid] = set()
        self.window: ReadAheadWindow | None = None
        self.on_mdt: list[Completion] = []
        """Data on its way to the MDT."""
        self._dirty: dict[tuple[int, Fid], list[Fragment]] = {}

    @property
    def dirty(self) -> bool:
        """Whether there is something to write out."""
        return bool(self._dirty)

    def mark_dirty(self, pieces: list[Extent]) -> int:
        """Pages were written to: how many bytes more are dirty now."""
        before = self.dirty_bytes
        for piece in pieces:
            key = piece.ost_index, piece.fid
            self._dirty[key] = merged_fragments([*self._dirty.get(key, ()), (piece.offset, piece.size_bytes)])
        return self.dirty_bytes - before

    @property
    def dirty_bytes(self) -> int:
        """Bytes to write out."""
        return sum(size for fragments in self._dirty.values() for _, size in fragments)

    def clean(self, least_bytes: int = 0) -> list[Extent]:
        """Take out the dirty pieces of every object that has at least so many bytes of them."""
        taken: list[Extent] = []
        for (ost_index, fid), fragments in list(self._dirty.items()):
            if sum(size for _, size in fragments) >= least_bytes:
                taken += [Extent(ost_index, fid, offset, size) for offset, size in fragments]
                del self._dirty[ost_index, fid]
        return taken
