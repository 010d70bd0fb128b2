"""Read-ahead: a client that recognises a pattern in the reads of a file fetches the next pages in advance.

Sequential: the window doubles with every read that continues at the end of the last read, from one chunk to the limit.
Strided: the reads have one length and one distance; the client fetches the next pieces, and more pieces each time the
stride continues. Clients up to 2.13 compare pages and lose a stride whose length is not a multiple of a page; later
clients compare bytes. Any other read ends the pattern.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from simulator import counters
from simulator.counters import PAGE_BYTES, Stats
from simulator.engine import Completion, Engine, Steps, gather

PAGES_KEPT = 1 << 16
STRIDES_SEEN_MIN = 2


@dataclass(frozen=True, slots=True)
class ReadAheadSettings:
    """Tunables of ``llite.*``."""

    max_mib: int = 256
    max_per_file_mib: int = 64
    chunk_bytes: int = 1 << 20
    strides_ahead: int = 8
    strides_by_bytes: bool = True
    """False for clients before 2.14."""


class ReadAhead:
    """Counters of one mount (``read_ahead_stats``), and the pages that small reads fetched, for all files."""

    def __init__(self, engine: Engine, settings: ReadAheadSettings) -> None:
        self.settings = settings
        self.stats = Stats(counters.READ_AHEAD_STATS, engine.now)
        self._pages: OrderedDict[tuple[object, int], None] = OrderedDict()

    def keep(self, file: object, pages: range) -> None:
        for page in pages:
            self._pages[file, page] = None
        while len(self._pages) > PAGES_KEPT:
            self._pages.popitem(last=False)

    def has(self, file: object, page: int) -> bool:
        return (file, page) in self._pages


class ReadAheadWindow:
    """Read-ahead of one open file."""

    def __init__(self, owner: ReadAhead, fetch: Callable[[int, int], Completion], file: object = None) -> None:
        self._owner = owner
        self._fetch = fetch
        self._file = file
        self._expected = 0
        self._window = 0
        self._chunks: dict[int, Completion] = {}
        self._last = (-1, 0)
        self._distance = self._distance_bytes = 0
        self._same = 0
        self._strides: dict[int, Completion] = {}
        self.from_front = True
        """Whether all bytes up to the last read have been read."""

    def read(self, offset: int, size_bytes: int, file_bytes: int) -> Steps[None]:
        """Wait for the pages of a read, but not for the pages fetched ahead."""
        in_order = offset == self._expected
        self._expected = offset + size_bytes
        self.from_front = self.from_front and in_order
        if in_order or size_bytes >= self._owner.settings.chunk_bytes:
            yield from self._by_chunks(offset, size_bytes, file_bytes, in_order=in_order)
        else:
            yield from self._by_pages(offset, size_bytes, file_bytes)

    def _by_chunks(self, offset: int, size_bytes: int, file_bytes: int, *, in_order: bool) -> Steps[None]:
        settings, stats = self._owner.settings, self._owner.stats
        chunk = settings.chunk_bytes
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

    def _by_pages(self, offset: int, size_bytes: int, file_bytes: int) -> Steps[None]:
        owner = self._owner
        pages = _pages(offset, size_bytes)
        missing = [page for page in pages if not owner.has(self._file, page)]
        owner.stats.count("hits", len(pages) - len(missing))
        owner.stats.count("misses", len(missing))
        strided = self._follows_a_stride(offset, size_bytes)
        if not strided:
            owner.stats.count("readpage_not_consecutive", 1)
            self._strides.clear()
        waiting = [self._strides.pop(offset)] if offset in self._strides else []
        if missing and not waiting:
            first = missing[0] * PAGE_BYTES
            waiting.append(self._fetch(first, min(len(missing) * PAGE_BYTES, file_bytes - first)))
            owner.keep(self._file, range(missing[0], missing[-1] + 1))
        if strided:
            self._fetch_strides(offset, size_bytes, file_bytes)
        yield gather(waiting)

    def _fetch_strides(self, offset: int, size_bytes: int, file_bytes: int) -> None:
        ahead = min(1 << (self._same - STRIDES_SEEN_MIN), self._owner.settings.strides_ahead)
        for number in range(1, ahead + 1):
            start = offset + number * self._distance_bytes
            if start in self._strides or start + size_bytes > file_bytes or start < 0:
                continue
            pages = _pages(start, size_bytes)
            self._strides[start] = self._fetch(pages.start * PAGE_BYTES, len(pages) * PAGE_BYTES)
            self._owner.stats.tally("readahead_pages", len(pages))
            self._owner.keep(self._file, pages)

    def _follows_a_stride(self, offset: int, size_bytes: int) -> bool:
        if self._owner.settings.strides_by_bytes:
            place, distance = (offset, size_bytes), offset - self._last[0]
        else:
            pages = _pages(offset, size_bytes)
            place, distance = (pages.start, len(pages)), pages.start - self._last[0]
        again = distance == self._distance and place[1] == self._last[1]
        self._same = self._same + 1 if again else 0
        self._last, self._distance = place, distance
        self._distance_bytes = distance if self._owner.settings.strides_by_bytes else distance * PAGE_BYTES
        return self._same >= STRIDES_SEEN_MIN


def _pages(offset: int, size_bytes: int) -> range:
    return range(offset // PAGE_BYTES, (offset + size_bytes - 1) // PAGE_BYTES + 1)
