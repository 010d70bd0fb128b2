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
        "_dirty", "actor", "flags", "inode", "locked", "on_mdt", "opened_at", "window", "writable",
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
