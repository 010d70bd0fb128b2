"""An open file: its opener, its flags, and its dirty pages."""

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
        """Transfers to the MDT in progress."""
        self._dirty: dict[tuple[int, Fid], list[Fragment]] = {}

    @property
    def dirty(self) -> bool:
        """Whether the file has dirty pages."""
        return bool(self._dirty)

    def mark_dirty(self, pieces: list[Extent]) -> int:
        """Mark pages as dirty; returns the number of newly dirty bytes."""
        before = self.dirty_bytes
        for piece in pieces:
            key = piece.ost_index, piece.fid
            self._dirty[key] = merged_fragments([*self._dirty.get(key, ()), (piece.offset, piece.size_bytes)])
        return self.dirty_bytes - before

    @property
    def dirty_bytes(self) -> int:
        """Number of dirty bytes."""
        return sum(size for fragments in self._dirty.values() for _, size in fragments)

    def clean(self, least_bytes: int = 0) -> list[Extent]:
        """Remove and return the dirty pieces of every object with at least ``least_bytes`` dirty bytes."""
        taken: list[Extent] = []
        for (ost_index, fid), fragments in list(self._dirty.items()):
            if sum(size for _, size in fragments) >= least_bytes:
                taken += [Extent(ost_index, fid, offset, size) for offset, size in fragments]
                del self._dirty[ost_index, fid]
        return taken
