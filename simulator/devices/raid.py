"""A RAID group of hard disks: full stripes are cheap, pieces of a stripe are expensive.

The model counts the busy time of the disks. A full stripe costs each of its disks the transfer of a chunk. A smaller
write must update the parity: it first reads the rest of the stripe (or the old data and parity, whichever needs fewer
reads), and the heads return for the write. An I/O that does not continue at the end of the last I/O costs each of its
disks a seek and half a revolution. A small gap costs at most the time in which it passes below the heads.

The elevator takes waiting I/Os in ascending order and submits neighbours together, so pieces of a stripe that wait at
the same time become a full stripe. An overdue I/O goes first. Chunks of a declustered group (GridRAID, dRAID) rotate
over all disks, so the cost of a stripe is spread evenly.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, field
from math import sqrt
from typing import Literal

from simulator.devices.device import Disks, Io
from simulator.engine import Engine


@dataclass(frozen=True, slots=True)
class RaidSettings:
    """One group. The defaults are 41 disks of 6 TB in stripes of 8 + 2."""

    kind: Literal["raid"] = field(default="raid", kw_only=True)
    disks: int = 41
    data: int = 8
    parity: int = 2
    chunk_bytes: int = 512 << 10
    disk_bytes_per_second: float = 190e6
    """Mean rate over the radius: the outer tracks reach about 220 MB/s, the inner ones half."""
    seek_seconds: float = 0.016
    settle_seconds: float = 0.001
    revolutions_per_minute: int = 7200
    link_bytes_per_second: float = 7e9
    """Bandwidth limit of controllers and cables."""
    native_queue: int = 32
    """Queue depth of a disk, which reorders I/O by rotational position (NCQ, TCQ)."""
    ahead_seconds: float = 0.02
    """Work submitted to the disks ahead, for their own command queues."""
    deadline_seconds: float = 2.0
    merge_bytes_max: int = 16 << 20
    size_bytes: int = 180 << 40


class Raid(Disks):
    """A RAID group with one queue."""

    def __init__(self, engine: Engine, settings: RaidSettings) -> None:
        super().__init__(engine)
        self.partial_stripes = 0
        self._settings = settings
        self._sequence = 0
        self._sorted: list[tuple[int, int, Io]] = []
        self._oldest: deque[tuple[int, int, Io]] = deque()
        self._gone: set[int] = set()
        self._free_at = 0.0
        self._head_bytes = 0
        self._timer = False

    def submit(self, io: Io) -> None:
        io.queued_at = self._engine.now
        self.queued += 1
        self._sequence += 1
        entry = (io.position_bytes, self._sequence, io)
        insort(self._sorted, entry)
        self._oldest.append(entry)
        if not self._timer:
            self._timer = True
            self._engine.after(max(self._free_at - self._engine.now - self._settings.ahead_seconds, 0.0), self._work)

    def _work(self) -> None:
        self._timer = False
        while self._sorted:
            early = self._free_at - self._engine.now - self._settings.ahead_seconds
            if early > 1e-9:  # less is a rounding error, and time would not advance
                self._timer = True
                self._engine.after(early, self._work)
                return
            self._start(self._run_of(self._choose()))

    def _choose(self) -> int:
        """Index of the next I/O: overdue first, then the nearest in the direction of travel."""
        while self._oldest[0][1] in self._gone:  # served early; removed here only, as the middle of a deque is slow
            self._gone.discard(self._oldest.popleft()[1])
        oldest = self._oldest[0]
        if self._engine.now - oldest[2].queued_at > self._settings.deadline_seconds:
            return bisect_left(self._sorted, oldest)
        index = bisect_left(self._sorted, (self._head_bytes, 0))
        return index if index < len(self._sorted) else 0

    def _run_of(self, index: int) -> list[Io]:
        first = self._sorted[index][2]
        end, last = first.position_bytes, index
        while last < len(self._sorted):
            io = self._sorted[last][2]
            too_much = io.position_bytes + io.size_bytes - first.position_bytes > self._settings.merge_bytes_max
            # the first one is served whatever its size
            if io.position_bytes != end or io.write is not first.write or (too_much and last > index):
                break
            end += io.size_bytes
            last += 1
        taken = self._sorted[index:last]
        del self._sorted[index:last]
        self._gone.update(number for _, number, _ in taken)
        return [io for _, _, io in taken]

    def _start(self, run: list[Io]) -> None:
        settings, now = self._settings, self._engine.now
        first, size = run[0].position_bytes, sum(io.size_bytes for io in run)
        positioning, gap_seconds = self._way(first)
        busy, span = self.cost(run[0].write, first, size, positioning)
        busy, span = busy + gap_seconds * (settings.data + settings.parity), span + gap_seconds
        share = max(busy / settings.disks, size / settings.link_bytes_per_second) * self.slowdown
        start = max(now, self._free_at)
        self._free_at = start + share
        self._head_bytes = first + size
        self._engine.after(start + max(share, span * self.slowdown) - now, self._finish_all, run)

    def _finish_all(self, run: list[Io]) -> None:
        self.queued -= len(run)
        for io in run:
            io.done()

    def _way(self, first: int) -> tuple[float, float]:
        """Seconds of each disk to position its heads, or to let a gap pass below them."""
        settings = self._settings
        distance = first - self._head_bytes
        if distance == 0:
            return 0.0, 0.0
        share = min(abs(distance) / settings.size_bytes, 1.0)
        seek = max(settings.seek_seconds * sqrt(share), settings.settle_seconds) + self._turning()
        gap_seconds = distance / settings.data / settings.disk_bytes_per_second
        return (0.0, gap_seconds) if 0 < gap_seconds < seek else (seek, 0.0)

    def _turning(self) -> float:
        """Rotational delay until the next I/O of a disk, which picks the first of several."""
        settings = self._settings
        waiting = len(self._sorted) * (1 + settings.parity) / settings.disks
        return 60.0 / settings.revolutions_per_minute / (2.0 + min(waiting, settings.native_queue))

    def cost(self, write: bool, first: int, size: int, positioning: float) -> tuple[float, float]:
        """Cost of one contiguous I/O: busy seconds of all disks together, and seconds from start to end."""
        settings = self._settings
        stripe = settings.data * settings.chunk_bytes
        head = min(-first % stripe, size)
        whole, tail = divmod(size - head, stripe)
        chunk = settings.chunk_bytes / settings.disk_bytes_per_second
        if not write:
            chunks = -(-size // settings.chunk_bytes)
            seconds = min(size, settings.chunk_bytes) / settings.disk_bytes_per_second
            rebuilt = 1 + self.missing_disks * (settings.data - 1) / settings.disks
            moved = min(chunks, settings.disks)
            rows = -(-chunks // settings.disks)
            return (chunks * seconds + moved * positioning) * rebuilt, positioning + seconds * rows
        disks = settings.data + settings.parity
        busy = whole * disks * chunk + min(whole * disks, settings.disks) * positioning
        span = positioning + chunk * -(-whole * disks // settings.disks) if whole else 0.0
        for piece, at in ((head, first % stripe), (tail, 0)):
            if piece:
                part_busy, part_span = self._partial(piece, at, positioning)
                busy, span = busy + part_busy, max(span, part_span)
        return busy, span

    def _partial(self, size: int, within: int, positioning: float) -> tuple[float, float]:
        """Cost of a partial stripe: read for the parity, move the heads back, write."""
        settings = self._settings
        self.partial_stripes += 1
        first, last = within // settings.chunk_bytes, (within + size - 1) // settings.chunk_bytes
        written = last - first + 1
        complete = max((within + size) // settings.chunk_bytes - -(-within // settings.chunk_bytes), 0)
        others, same = settings.data - complete, written + settings.parity
        reads = min(others, same)
        turned = 60.0 / settings.revolutions_per_minute
        again = settings.settle_seconds + self._turning()
        back = again if same > others or self._sorted else turned  # a busy disk does not wait for a revolution
        seconds = min(size, settings.chunk_bytes) / settings.disk_bytes_per_second
        busy = reads * (positioning + seconds) + (written + settings.parity) * (back + seconds)
        return busy, positioning + back + 2 * seconds
