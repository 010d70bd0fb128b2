"""Copy a file's data under a lease, holes left out, and read the copy back from its targets before it is used."""

from __future__ import annotations

import errno
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

from lustre.errors import Busy, LustreError
from lustre.filesystem import Calls, Status

PAGE_BYTES = mmap.PAGESIZE
"""64 KiB on some ARM nodes; reading past the page cache needs whole ones."""
CHUNK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece that was copied, and its checksum."""

    offset: int
    length: int
    checksum: int


def copy(calls: Calls, source: int, copy_to: int, status: Status, chunk_bytes: int = CHUNK_BYTES) -> list[Chunk]:
    """Copy the data and give the copy its size. Raises Busy as soon as the lease is broken or the file gets shorter."""
    size_bytes = status.size_bytes
    chunks = []
    reached = 0
    for offset, length in _pieces(calls, source, status, chunk_bytes):
        must_hold(calls, source)
        data = _read_whole(calls, source, offset, length)
        _write_whole(calls, copy_to, data, offset)
        chunks.append(Chunk(offset, length, crc32(data)))
        reached = offset + length
    if reached < size_bytes:  # it ends in a hole
        calls.truncate(copy_to, size_bytes)
    return chunks


def compare(calls: Calls, source: int, copied_to: int, chunks: list[Chunk]) -> None:
    """Read the copy back, past the cache it was written through. Raises LustreError when a byte differs."""
    calls.drop_cache(copied_to)
    for chunk in chunks:
        must_hold(calls, source)
        data = _read_whole(calls, copied_to, chunk.offset, chunk.length)
        if crc32(data) != chunk.checksum:
            raise LustreError(errno.EIO, f"the copy reads differently at byte {chunk.offset}; it is thrown away")


def must_hold(calls: Calls, source: int) -> None:
    """Raise Busy when the lease is gone."""
    if not calls.lease_held(source):
        raise Busy(errno.EBUSY, "somebody opened it for writing, truncated or removed it")


def _pieces(calls: Calls, source: int, status: Status, chunk_bytes: int) -> Iterator[tuple[int, int]]:
    """Offsets and lengths of all pages that hold data, in order. Holes are left out by whole pages only.

    A file that takes as much room as it has bytes has no holes worth a request: where they are is not asked.
    """
    at, size_bytes = 0, status.size_bytes
    if status.held_bytes >= size_bytes:
        yield from ((start, min(chunk_bytes, size_bytes - start)) for start in range(0, size_bytes, chunk_bytes))
        return
    while at < size_bytes:
        found = calls.next_data(source, at)
        if found is None or found[0] >= size_bytes:
            return
        start = found[0] - found[0] % PAGE_BYTES
        end = min(-(-max(found[1], found[0] + 1) // PAGE_BYTES) * PAGE_BYTES, size_bytes)
        for offset in range(start, end, chunk_bytes):
            yield offset, min(chunk_bytes, end - offset)
        at = end


def _read_whole(calls: Calls, descriptor: int, offset: int, length: int) -> bytes:
    parts = []
    while length:
        part = calls.read(descriptor, length, offset)
        if not part:
            raise Busy(errno.EBUSY, f"it ends at byte {offset} now")
        parts.append(part)
        offset += len(part)
        length -= len(part)
    return b"".join(parts)


def _write_whole(calls: Calls, descriptor: int, data: bytes, offset: int) -> None:
    while data:
        written = calls.write(descriptor, data, offset)
        if written <= 0:
            raise LustreError(errno.EIO, f"nothing could be written at byte {offset}")
        data = data[written:]
        offset += written
