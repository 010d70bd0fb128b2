"""Read-ahead: a client that sees a file read in order fetches what will be asked for next.

The window doubles with every read that goes on where the last one ended, from one chunk to the largest allowed, and
falls back to nothing at the first that does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simulator import shapes
from simulator.engine import Completion, Engine, Steps
from simulator.tally import Stats

PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class ReadAheadSettings:
    """Tunables of ``llite.*``."""

    max_mib: int = 256
    max_per_file_mib: int = 64
    chunk_bytes: int = 1 << 20


class ReadAhead:
    """Counters of one mount: ``read_ahead_stats``."""

    def __init__(self, engine: Engine, settings: ReadAheadSettings) -> None:
        self.settings = settings
        self.stats = Stats(shapes.READ_AHEAD, engine.now)


class Window:
    """Read-ahead of one open file."""

    def __init__(self, owner: ReadAhead, fetch: Callable[[int, int], Completion]) -> None:
        self._owner = owner
        self._fetch = fetch
        self._expected = 0
        self._window = 0
        self._chunks: dict[int, Completion] = {}

    def read(self, offset: int, size_bytes: int, file_bytes: int) -> Steps[None]:
        """Wait for the chunks of a read; those ahead of it are asked for and not waited for."""
        settings, stats = self._owner.settings, self._owner.stats
        chunk = settings.chunk_bytes
        in_order = offset == self._expected
        self._expected = offset + size_bytes
        limit = settings.max_per_file_mib * (1 << 20) // chunk
        self._window = min(max(self._window * 2, 1), limit) if in_order else 0
        if not in_order:
            stats.count("readpage_not_consecutive", 1)
            self._chunks.clear()
        first, last = offset // chunk, (offset + size_bytes - 1) // chunk
        wanted = range(first, last + 1)
        pages = -(-size_bytes // PAGE_BYTES)
        known = sum(number in self._chunks for number in wanted) * pages // len(wanted)
        stats.count("hits", known)
        stats.count("misses", pages - known)
        for number in range(first, last + 1 + self._window):
            start = number * chunk
            if number not in self._chunks and start < file_bytes:
                self._chunks[number] = self._fetch(start, min(chunk, file_bytes - start))
                if number > last:
                    stats.tally("readahead_pages", chunk // PAGE_BYTES)
        for number in wanted:
            if number in self._chunks:
                yield self._chunks[number]
        for number in [number for number in self._chunks if number < last]:
            del self._chunks[number]
