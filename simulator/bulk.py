"""Bulk reads and writes of one OST: service threads, places on the disk, caches, the disk itself, the journal.

A write goes to the disk at once; when the client wants it safe (direct I/O) the answer waits for the journal as well.
What a job waits for is therefore nothing but the queue of the device, its own I/Os and everybody else's.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from simulator import shapes
from simulator.brw import BrwStats
from simulator.devices import Io
from simulator.engine import Completion, Engine, Steps
from simulator.rpc import Rpc
from simulator.servercache import ServerCache
from simulator.tally import Stats, microseconds

if TYPE_CHECKING:
    from simulator.ost import Ost

Reply: TypeAlias = Callable[[OSError | None], None]
BITMAP_BYTES = 128 << 20
INODES_PER_BLOCK = 16


class Bulk:
    """Bulk RPCs of one OST, and their counters."""

    def __init__(self, engine: Engine, ost: Ost) -> None:
        self.brw = BrwStats(engine.now)
        self.service = Stats(shapes.OST_IO, engine.now)
        """``ost_io`` of the node's service threads, the part of this OST."""
        self.cache = ServerCache(ost.settings.read_cache_bytes, ost.settings.write_back_bytes_max)
        self.active = 0
        self.read_bytes = 0
        self.written_bytes = 0
        self._engine = engine
        self._ost = ost
        self._in_flight = [0, 0]

    def serve(self, rpc: Rpc, reply: Reply) -> None:
        """An RPC has arrived; ``reply`` takes the error, or None."""
        self._engine.spawn(self._serve(rpc)).then(lambda served: reply(served.error))

    def again(self, rpc: Rpc) -> Completion:
        """A client sends a write again that the target had answered and lost before it was safe."""
        return self._transfer(rpc)

    def _serve(self, rpc: Rpc) -> Steps[None]:
        ost = self._ost
        while ost.health.away:
            yield ost.health.back
        arrived = self._engine.now
        self.active += 1
        self._count_service(ost.jitter(0.0004))
        mib = rpc.size_bytes / (1 << 20)
        prepared = ost.jitter(ost.settings.preparing_seconds + ost.settings.preparing_seconds_per_mib * mib)
        yield prepared
        try:
            if rpc.write:
                self._allocate(rpc)
            self._count(rpc, prepared)
            if not rpc.write and self.cache.holds(rpc.stored.fid, rpc.fragments):
                return
            stored = self._transfer(rpc)
            self.cache.passed(rpc.stored.fid, rpc.fragments)
            if rpc.write and rpc.sync:
                yield ost.journal.commit()  # both are on their way at the same time
            elif rpc.write and self.cache.answers_early(rpc.size_bytes):
                return
            yield stored
            while ost.health.gone:  # no answer comes from a server that is down; the client asks again
                yield ost.health.back
        finally:
            self.active -= 1
            name = "ost_write" if rpc.write else "ost_read"
            self.service.tally(name, microseconds(self._engine.now - arrived))

    def _allocate(self, rpc: Rpc) -> None:
        store = self._ost.store
        if rpc.stored.fid not in store.objects:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        first, last = rpc.fragments[0], rpc.fragments[-1]
        number = rpc.stored.fid.object_id
        blocks: tuple[tuple[str, int], ...] = (("inode", number // INODES_PER_BLOCK),)
        if store.grow(rpc.stored, first[0], last[0] + last[1]):
            blocks += ("extents", number), ("bitmap", rpc.stored.position_bytes // BITMAP_BYTES)
        self._ost.journal.change(*blocks, redo=rpc)

    def _count(self, rpc: Rpc, prepared_seconds: float) -> None:
        operation, unit = ("write", "write_bytes") if rpc.write else ("read", "read_bytes")
        self._ost.tally(rpc.job_id, unit, rpc.size_bytes)
        self._ost.tally(rpc.job_id, operation, microseconds(prepared_seconds))
        if rpc.write:
            self.written_bytes += rpc.size_bytes
        else:
            self.read_bytes += rpc.size_bytes

    def _transfer(self, rpc: Rpc) -> Completion:
        """All of an RPC's I/O to the device."""
        done = Completion()
        began = self._engine.now
        runs = [run for offset, size in rpc.fragments for run in rpc.stored.runs(offset, size)]
        left = len(runs)
        in_flight = self._in_flight
        self.brw.begin(rpc.write, rpc.size_bytes, left, in_flight[rpc.write] + 1)
        in_flight[rpc.write] += left

        def one_done() -> None:
            nonlocal left
            left -= 1
            in_flight[rpc.write] -= 1
            if left == 0:
                self.brw.end(rpc.write, self._engine.now - began)
                done.succeed()

        for place, size in runs:
            self._ost.device.submit(Io(rpc.write, place, size, one_done))
        return done

    def _count_service(self, waited_seconds: float) -> None:
        service = self.service
        service.tally("req_waittime", microseconds(waited_seconds))
        service.tally("req_qdepth", 0)
        service.tally("req_active", self.active)
        service.tally("req_timeout", 5)
        service.tally("reqbuf_avail", 64)
