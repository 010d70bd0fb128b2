"""The objects on one OST: what files consist of below their layout, and the room they take."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

from lustre.fid import Fid
from lustre.filesystem import Space

BLOCK_BYTES = 4096
_LARGE_BYTES = 8 << 20


class StoredObject:
    """One object. It takes room from its first byte to its last: holes inside a component are not modelled."""

    __slots__ = ("end_bytes", "fid", "position_bytes", "start_bytes")

    def __init__(self, fid: Fid, position_bytes: int) -> None:
        self.fid = fid
        self.position_bytes = position_bytes
        self.start_bytes = -1
        self.end_bytes = 0

    @property
    def allocated_bytes(self) -> int:
        """Room it takes, in whole blocks."""
        if self.start_bytes < 0:
            return 0
        first, last = self.start_bytes // BLOCK_BYTES, -(-self.end_bytes // BLOCK_BYTES)
        return (last - first) * BLOCK_BYTES


@dataclass(frozen=True, slots=True)
class Capacity:
    """Room of a target. ``reserved_share`` is what ldiskfs keeps back: free, but not available."""

    size_bytes: int
    inodes: int
    reserved_share: float = 0.065
    overhead_bytes: int = 1528 << 10
    overhead_inodes: int = 260


class ObjectStore:
    """Objects by FID, with their room accounted for."""

    def __init__(self, ost_index: int, capacity: Capacity) -> None:
        self.capacity = capacity
        self.objects: dict[Fid, StoredObject] = {}
        self.used_bytes = 0
        self.created = 0
        self.destroyed = 0
        self._sequence = 0x280000401 + ost_index * 0x40000000
        self._next_position = 0

    def create(self) -> StoredObject:
        """A new empty object; neighbours in time are neighbours on the disk."""
        self.created += 1
        stored = StoredObject(Fid(self._sequence, self.created + 1), self._next_position)
        self._next_position = (self._next_position + _LARGE_BYTES // 8) % self.capacity.size_bytes
        self.objects[stored.fid] = stored
        return stored

    def grow(self, stored: StoredObject, start_bytes: int, end_bytes: int) -> int:
        """Take room for a write; how much it took. Raises OSError ENOSPC and takes nothing when there is not enough."""
        before = stored.allocated_bytes
        old = stored.start_bytes, stored.end_bytes
        stored.start_bytes = start_bytes if old[0] < 0 else min(old[0], start_bytes)
        stored.end_bytes = max(old[1], end_bytes)
        more = stored.allocated_bytes - before
        if more > self.space().avail_bytes:
            stored.start_bytes, stored.end_bytes = old
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.used_bytes += more
        if stored.end_bytes - stored.start_bytes > _LARGE_BYTES // 8 and more:
            self._next_position = max(self._next_position, stored.position_bytes + stored.end_bytes)
        return more

    def destroy(self, fid: Fid) -> int:
        """Give an object's room back; how much it was."""
        stored = self.objects.pop(fid)
        self.destroyed += 1
        self.used_bytes -= stored.allocated_bytes
        return stored.allocated_bytes

    def space(self) -> Space:
        """Room as statfs shows it."""
        capacity = self.capacity
        free = max(capacity.size_bytes - capacity.overhead_bytes - self.used_bytes, 0)
        avail = max(free - int(capacity.size_bytes * capacity.reserved_share), 0)
        return Space(capacity.size_bytes, free, avail)

    @property
    def inodes_free(self) -> int:
        """Objects that could still be created."""
        return max(self.capacity.inodes - self.capacity.overhead_inodes - len(self.objects), 0)
