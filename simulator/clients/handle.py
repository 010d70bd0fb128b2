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

    __slots__ = (
        "_dirty", "_dirty_bytes", "actor", "flags", "inode", "locked", "on_mdt", "opened_at", "window", "writable",
    )  # fmt: skip

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
        self._dirty_bytes: dict[tuple[int, Fid], int] = {}
        """Sum of the dirty bytes of each object."""

    @property
    def dirty(self) -> bool:
        return bool(self._dirty)

    def mark_dirty(self, pieces: list[Extent]) -> int:
        """Mark pages as dirty; returns the number of newly dirty bytes."""
        more = 0
        for piece in pieces:
            key = piece.ost_index, piece.fid
            fragments = merged_fragments([*self._dirty.get(key, ()), (piece.offset, piece.size_bytes)])
            dirty_bytes = sum([size for _, size in fragments])
            more += dirty_bytes - self._dirty_bytes.get(key, 0)
            self._dirty[key], self._dirty_bytes[key] = fragments, dirty_bytes
        return more

    def has_dirty(self, least_bytes: int) -> bool:
        return max(self._dirty_bytes.values(), default=-1) >= least_bytes

    def clean(self, least_bytes: int = 0) -> list[Extent]:
        """Remove and return the dirty pieces of every object with at least ``least_bytes`` dirty bytes."""
        taken: list[Extent] = []
        for key, dirty_bytes in list(self._dirty_bytes.items()):
            if dirty_bytes >= least_bytes:
                taken += [Extent(*key, *fragment) for fragment in self._dirty.pop(key)]
                del self._dirty_bytes[key]
        return taken
