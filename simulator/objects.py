"""The objects on one OST: what files consist of below their layout, and the room they take."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

from lustre.fid import Fid
from lustre.filesystem import Space
from simulator.blocks import BlockAllocator, BlockMap
from simulator.locks import ExtentLocks

BLOCK_BYTES = 4096


class StoredObject:
    """One object. It takes room from its first byte to its last: holes inside a component are not modelled."""

    __slots__ = ("_blocks", "end_bytes", "fid", "locks", "start_bytes")

    def __init__(self, fid: Fid) -> None:
        self.fid = fid
        self.start_bytes = -1
        self.end_bytes = 0
        self.locks = ExtentLocks()
        self._blocks = BlockMap()

    @property
    def position_bytes(self) -> int:
        """Where on the disk it begins."""
        return self._blocks.first

    def runs(self, offset: int, size_bytes: int) -> list[tuple[int, int]]:
        """Where on the disk a piece of it lies."""
        return self._blocks.runs(offset, size_bytes)

    def take(self, allocator: BlockAllocator, start_bytes: int, end_bytes: int) -> None:
        """Have a place on the disk for a piece of it."""
        self._blocks.take(allocator, start_bytes, end_bytes)

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
        self.withheld_bytes = 0
        """Taken by somebody this model knows nothing about."""
        self.created = 0
        self.destroyed = 0
        self._sequence = 0x280000401 + ost_index * 0x40000000
        self._blocks = BlockAllocator(capacity.size_bytes)

    def create(self) -> StoredObject:
        """A new empty object; its place on the disk is chosen when it is written to."""
        self.created += 1
        stored = StoredObject(Fid(self._sequence, self.created + 1))
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
        stored.take(self._blocks, start_bytes, end_bytes)
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
        free = max(capacity.size_bytes - capacity.overhead_bytes - self.used_bytes - self.withheld_bytes, 0)
        avail = max(free - int(capacity.size_bytes * capacity.reserved_share), 0)
        return Space(capacity.size_bytes, free, avail)

    @property
    def inodes_free(self) -> int:
        """Objects that could still be created."""
        return max(self.capacity.inodes - self.capacity.overhead_inodes - len(self.objects), 0)
