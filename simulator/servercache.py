"""What an OST keeps in memory: pages of objects for reading, small writes that are answered before they are on disk."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from lustre.fid import Fid
from simulator.rpc import Fragment

CHUNK_BYTES = 64 << 10


class ServerCache:
    """Chunks of objects, the one used longest ago goes first. A size of 0 keeps nothing.

    >>> cache = ServerCache(1 << 20, 0)
    >>> cache.passed(Fid(1, 1), [(0, 65536)])
    >>> cache.holds(Fid(1, 1), [(4096, 4096)]), cache.holds(Fid(1, 1), [(0, 131072)]), cache.hits, cache.misses
    (True, False, 1, 1)
    """

    def __init__(self, max_bytes: int, write_back_bytes_max: int) -> None:
        self.hits = self.misses = 0
        self._chunks_max = max_bytes // CHUNK_BYTES
        self._write_back_bytes_max = write_back_bytes_max
        self._chunks: OrderedDict[tuple[Fid, int], None] = OrderedDict()
        self._dropped: set[Fid] = set()

    def answers_early(self, size_bytes: int) -> bool:
        """Whether a write of that size is answered from memory."""
        return size_bytes <= self._write_back_bytes_max

    def passed(self, fid: Fid, fragments: Iterable[Fragment]) -> None:
        """Bytes of an object went by, in whichever direction."""
        if not self._chunks_max:
            return
        self._dropped.discard(fid)
        for key in _chunks(fid, fragments):
            self._chunks[key] = None
            self._chunks.move_to_end(key)
        while len(self._chunks) > self._chunks_max:
            self._chunks.popitem(last=False)

    def holds(self, fid: Fid, fragments: list[Fragment]) -> bool:
        """Whether a read needs no disk; counts it as hit or miss."""
        if not self._chunks_max:
            return False
        hit = fid not in self._dropped and all(key in self._chunks for key in _chunks(fid, fragments))
        self.hits += hit
        self.misses += not hit
        return hit

    def drop(self, fid: Fid) -> None:
        """The object is gone; its chunks leave when room is needed."""
        if self._chunks_max:
            self._dropped.add(fid)


def _chunks(fid: Fid, fragments: Iterable[Fragment]) -> Iterable[tuple[Fid, int]]:
    for offset, size in fragments:
        for number in range(offset // CHUNK_BYTES, (offset + size - 1) // CHUNK_BYTES + 1):
            yield fid, number
