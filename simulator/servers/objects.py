"""The objects on one OST: the space they take, and where ldiskfs places their bytes on the disk.

Writes above a certain size take whole windows, whose length is a power of two and which are aligned to it. Each window
follows the last allocated window of any file, so files written at the same time lie side by side in the order of their
writes, and the disks see one stream. Small files come from a separate region, packed without gaps. A window reserves
the place for its part of the file even before a hole: if the first component of a file is elsewhere, its tail follows
an empty piece.
"""

from __future__ import annotations

import errno
import os
from bisect import bisect_right
from dataclasses import dataclass

from lustre.fid import Fid
from lustre.filesystem import Space
from simulator.servers.locks import ExtentLocks

BLOCK_BYTES = 4096


class StoredObject:
    """One object. It takes space from its first byte to its last; holes inside a component are not modelled."""

    __slots__ = ("blocks", "end_bytes", "fid", "locks", "start_bytes")

    def __init__(self, fid: Fid) -> None:
        self.fid = fid
        self.start_bytes = -1
        self.end_bytes = 0
        self.locks = ExtentLocks()
        self.blocks = BlockMap()

    @property
    def allocated_bytes(self) -> int:
        """Space of the object, in whole blocks."""
        if self.start_bytes < 0:
            return 0
        first, last = self.start_bytes // BLOCK_BYTES, -(-self.end_bytes // BLOCK_BYTES)
        return (last - first) * BLOCK_BYTES


@dataclass(frozen=True, slots=True)
class Capacity:
    """Capacity of a target. ``reserved_share`` is free but not available, as the reserve of ldiskfs."""

    size_bytes: int
    inodes: int
    reserved_share: float = 0.065
    overhead_bytes: int = 1528 << 10
    overhead_inodes: int = 260


class ObjectStore:
    """The objects of one OST by FID, and the space they take."""

    def __init__(self, ost_index: int, capacity: Capacity) -> None:
        self.capacity = capacity
        self._room_bytes = capacity.size_bytes - capacity.overhead_bytes
        self._usable_bytes = self._room_bytes - int(capacity.size_bytes * capacity.reserved_share)
        self.objects: dict[Fid, StoredObject] = {}
        self.used_bytes = 0
        self.withheld_bytes = 0
        """Space that a fault withholds from the model."""
        self.created = 0
        self._sequence = 0x280000401 + ost_index * 0x40000000
        self._blocks = BlockAllocator(capacity.size_bytes)

    def create(self) -> StoredObject:
        """Create an empty object. Disk space is allocated at the first write."""
        self.created += 1
        stored = StoredObject(Fid(self._sequence, self.created + 1))
        self.objects[stored.fid] = stored
        return stored

    def grow(self, stored: StoredObject, start_bytes: int, end_bytes: int) -> int:
        """Allocate space for a write; returns its bytes. Raises OSError ENOSPC, and allocates nothing, on a full
        target.
        """
        before = stored.allocated_bytes
        old = stored.start_bytes, stored.end_bytes
        stored.start_bytes = start_bytes if old[0] < 0 else min(old[0], start_bytes)
        stored.end_bytes = max(old[1], end_bytes)
        more = stored.allocated_bytes - before
        if more > self.avail_bytes:
            stored.start_bytes, stored.end_bytes = old  # nothing of it is allocated
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.used_bytes += more
        stored.blocks.take(self._blocks, start_bytes, end_bytes)
        return more

    def destroy(self, fid: Fid) -> int:
        """Destroy an object; returns the bytes that it frees."""
        freed = self.objects.pop(fid).allocated_bytes
        self.used_bytes -= freed
        return freed

    def space(self) -> Space:
        """Space as statfs shows it."""
        return Space(self.capacity.size_bytes, self._free_bytes, self.avail_bytes)

    @property
    def _free_bytes(self) -> int:
        return max(self._room_bytes - self.used_bytes - self.withheld_bytes, 0)

    @property
    def avail_bytes(self) -> int:
        return max(self._usable_bytes - self.used_bytes - self.withheld_bytes, 0)

    @property
    def inodes_free(self) -> int:
        return max(self.capacity.inodes - self.capacity.overhead_inodes - len(self.objects), 0)


_FAR = 1 << 62
SMALL_BYTES = 64 << 10
WINDOW_BYTES = 4 << 20


class BlockAllocator:
    """Free space of one target, allocated from two regions."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        self._large = 0
        self._small = size_bytes // 4 * 3

    def window(self, start: int, end: int, *, small: bool) -> tuple[int, int, int]:
        """Allocate a window for bytes of an object: start and end in the object, and position on the disk."""
        if small:
            first, last = start // BLOCK_BYTES * BLOCK_BYTES, -(-end // BLOCK_BYTES) * BLOCK_BYTES
            position, self._small = self._small, self._small + last - first
            return first, last, position % self._size_bytes
        base = start // WINDOW_BYTES * WINDOW_BYTES
        if end - base > WINDOW_BYTES:
            length = -(-(end - base) // WINDOW_BYTES) * WINDOW_BYTES
            position = self._aligned(WINDOW_BYTES, length)
        else:
            length = 1 << (end - base - 1).bit_length()
            position = self._aligned(length, length)
        return base, base + length, position

    def _aligned(self, to: int, length: int) -> int:
        position = -(-self._large // to) * to
        if position + length > self._size_bytes:
            position = 0
        self._large = position + length
        return position


class BlockMap:
    """The pieces of one object, sorted, without overlaps.

    >>> allocator = BlockAllocator(1 << 40)
    >>> tail, stream = BlockMap(), BlockMap()
    >>> tail.take(allocator, 1 << 20, 4 << 20); stream.take(allocator, 0, 4 << 20)
    >>> tail.runs(1 << 20, 3 << 20), stream.runs(0, 4 << 20)
    ([(1048576, 3145728)], [(4194304, 4194304)])
    """

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[tuple[int, int, int]] = []

    @property
    def first(self) -> int:
        """Disk position of the first piece; 0 before the first write."""
        return self._pieces[0][2] if self._pieces else 0

    def take(self, allocator: BlockAllocator, start: int, end: int) -> None:
        """Allocate windows for all bytes of a write."""
        pieces = self._pieces
        while start < end:
            index = bisect_right(pieces, (start, _FAR, 0))
            before = pieces[index - 1][1] if index else 0
            if before > start:
                start = before
                continue
            after = pieces[index][0] if index < len(pieces) else _FAR
            small = end <= SMALL_BYTES and not pieces
            first, last, position = allocator.window(start, min(end, after), small=small)
            low, high = max(first, before), min(last, after)
            pieces.insert(index, (low, high, position + low - first))
            start = high

    def runs(self, start: int, size: int) -> list[tuple[int, int]]:
        """Disk ranges of a read or write. Unwritten bytes have none and count as at the first position."""
        pieces, end = self._pieces, start + size
        index = max(bisect_right(pieces, (start, _FAR, 0)) - 1, 0)
        if pieces and pieces[index][0] <= start and end <= pieces[index][1]:
            return [(pieces[index][2] + start - pieces[index][0], size)]
        found: list[tuple[int, int]] = []
        while index < len(pieces) and pieces[index][0] < end:
            first, last, position = pieces[index]
            low, high = max(start, first), min(end, last)
            if low < high:
                found.append((position + low - first, high - low))
            index += 1
        return joined_runs(found) or [(self.first, size)]


def joined_runs(runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join ranges that are neighbours on the disk.

    >>> joined_runs([(0, 4096), (4096, 4096), (16384, 512)])
    [(0, 8192), (16384, 512)]
    """
    result: list[tuple[int, int]] = []
    for position, size in runs:
        if result and sum(result[-1]) == position:
            result[-1] = (result[-1][0], result[-1][1] + size)
        else:
            result.append((position, size))
    return result
