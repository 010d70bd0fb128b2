"""Where on the disk an object's bytes go, as ldiskfs chooses it.

Writes of some size take whole windows, a power of two in length and aligned to it, each right behind the last one taken
for anybody: files written at the same time lie side by side in the order of their writes, and the disks see one
stream. Small files come from a region of their own, packed without gaps. A window holds its place for the part of the
file it stands for, also where a hole stays in front: the tail of a file whose first component is elsewhere lies behind
an empty piece.
"""

from __future__ import annotations

from bisect import bisect_right

_FAR = 1 << 62
SMALL_BYTES = 64 << 10
WINDOW_BYTES = 4 << 20
PACK_BYTES = 4096


class BlockAllocator:
    """Free space of one target: two places from which it is taken."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        self._large = 0
        self._small = size_bytes // 4 * 3

    def window(self, start: int, end: int, *, small: bool) -> tuple[int, int, int]:
        """A piece for bytes of an object: where in the object it starts and ends, and where on the disk."""
        if small:
            first, last = start // PACK_BYTES * PACK_BYTES, -(-end // PACK_BYTES) * PACK_BYTES
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
        """A place on the disk that tells objects apart; 0 before the first write."""
        return self._pieces[0][2] if self._pieces else 0

    def take(self, allocator: BlockAllocator, start: int, end: int) -> None:
        """Have a place for all bytes of a write."""
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
        """Where the bytes of a read or write lie; bytes nobody wrote lie nowhere and count as at the beginning."""
        pieces, end = self._pieces, start + size
        index = max(bisect_right(pieces, (start, _FAR, 0)) - 1, 0)
        found: list[tuple[int, int]] = []
        while index < len(pieces) and pieces[index][0] < end:
            first, last, position = pieces[index]
            low, high = max(start, first), min(end, last)
            if low < high:
                found.append((position + low - first, high - low))
            index += 1
        return joined_runs(found) or [(self.first, size)]


def joined_runs(runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same with neighbours on the disk joined.

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
