"""The object storage client: one mount's connection to one OST. It collects, limits and counts RPCs.

Simultaneous requests are merged: pieces of one object become one RPC, up to the maximum RPC size.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial

from simulator import counters
from simulator.counters import PAGE_BYTES, Histogram, Stats, microseconds
from simulator.engine import Completion, Engine, Steps, gather
from simulator.network import NetworkAdapter, Rpc
from simulator.servers.objects import StoredObject
from simulator.servers.ost import Ost


@dataclass(frozen=True, slots=True)
class OscSettings:
    """Tunables of ``osc.*``."""

    max_rpcs_in_flight: int = 8
    max_pages_per_rpc: int = 1024
    max_dirty_bytes: int = 64 << 20
    gather_seconds: float = 0.0005
    """Time that a piece waits for further pieces of the same RPC."""


class Osc:
    """The connection of one client to one OST."""

    def __init__(
        self, engine: Engine, name: str, ost: Ost, settings: OscSettings, wire: NetworkAdapter, network_seconds: float
    ) -> None:  # fmt: skip
        self.name = name
        self.mount = name.rpartition("-")[2]
        self.ost = ost
        self.settings = settings
        self.stats = Stats(counters.OSC_STATS, engine.now)
        self.histograms = [{name: Histogram() for name in counters.RPC_TABLES} for _ in ("reads", "writes")]
        self.in_flight = [0, 0]
        self.direct_in_flight = 0
        self.dirty_bytes = 0
        self.writing_bytes = 0
        """Bytes of writes without an answer."""
        self.locks = 0
        self._engine = engine
        self._network_seconds = network_seconds
        self._wire = wire
        self._waited, self._active = self.stats["req_waittime"], self.stats["req_active"]
        self._gathering: list[Rpc] = []
        self._ready: deque[Rpc] = deque()

    @property
    def unwritten_bytes(self) -> int:
        """Dirty bytes plus bytes in flight. ``max_dirty_mb`` limits the sum."""
        return self.dirty_bytes + self.writing_bytes

    @property
    def pages_waiting(self) -> tuple[int, int]:
        waiting = [*self._gathering, *self._ready]
        pages = [(rpc.write, -(-rpc.size_bytes // PAGE_BYTES)) for rpc in waiting]
        return sum(n for write, n in pages if not write), sum(n for write, n in pages if write)

    def transfer(
        self, write: bool, stored: StoredObject, offset: int, size: int, job_id: str, sync: bool
    ) -> Completion:  # fmt: skip
        """Read or write a piece of an object in one or several RPCs. Completes when all are answered."""
        step = self.settings.max_pages_per_rpc * PAGE_BYTES
        last = offset + size
        self.writing_bytes += size * write  # until the answer: the dirty limit counts bytes in flight, too
        if not self._gathering:
            self._engine.after(self.settings.gather_seconds, self._unplug)
        if size <= step:
            return self._add(Rpc(write, stored, [(offset, size)], size, job_id, sync=sync), step)
        pieces = [(at, min(step, last - at)) for at in range(offset, last, step)]
        return gather([self._add(Rpc(write, stored, [piece], piece[1], job_id, sync=sync), step) for piece in pieces])

    def _add(self, rpc: Rpc, size_bytes_max: int) -> Completion:
        for known in self._gathering:  # contiguous or not: one RPC holds several fragments
            if known.merge(rpc, size_bytes_max):
                return known.done
        self._gathering.append(rpc)
        return rpc.done

    def _unplug(self) -> None:
        self._ready.extend(self._gathering)
        self._gathering.clear()
        self._send()

    def _send(self) -> None:
        ready, in_flight, in_flight_max = self._ready, self.in_flight, self.settings.max_rpcs_in_flight
        while ready and in_flight[0] + in_flight[1] < in_flight_max:
            rpc = ready.popleft()
            in_flight[rpc.write] += 1
            self.direct_in_flight += rpc.sync
            rpc.sent_at, rpc.sender = self._engine.now, self.mount
            self._count_sent(rpc)
            sending = self._wire.seconds(True, rpc.size_bytes) if rpc.write else 0.0
            self._engine.after(self._network_seconds + sending, self.ost.bulk.serve, rpc, partial(self._reply, rpc))

    def _reply(self, rpc: Rpc, served: Completion) -> None:
        receiving = 0.0 if rpc.write else self._wire.seconds(False, rpc.size_bytes)
        self._engine.after(self._network_seconds + receiving, self._answered, rpc, served.error)

    def _answered(self, rpc: Rpc, error: OSError | None) -> None:
        self.in_flight[rpc.write] -= 1
        self.writing_bytes -= rpc.size_bytes * rpc.write
        self.direct_in_flight -= rpc.sync
        seconds = self._engine.now - rpc.sent_at
        waited = microseconds(seconds)
        self._waited.tally(waited)
        self.stats["ost_write" if rpc.write else "ost_read"].tally(waited)
        self.histograms[rpc.write]["latency"].tally_log2(int(seconds * 1e9) >> 10)  # units of 1024 ns, as in the kernel
        if error is None:
            self.stats["write_bytes" if rpc.write else "read_bytes"].tally(rpc.size_bytes)
            rpc.done.succeed()
        else:
            rpc.done.fail(error)
        self._send()  # the answer has freed a slot

    def sync(self, job_id: str) -> Steps[None]:
        began = self._engine.now
        yield self._network_seconds
        yield from self.ost.sync(job_id, self.mount)
        yield self._network_seconds
        self.request("ost_sync", self._engine.now - began)

    def glimpse(self, job_id: str) -> Steps[None]:
        """Request the size of an object without revoking a lock."""
        began = self._engine.now
        yield self._network_seconds
        yield from self.ost.getattr(job_id)
        yield self._network_seconds
        self._waited.tally(microseconds(self._engine.now - began))
        self.stats.tally("ldlm_glimpse_enqueue", 1)

    def request(self, name: str, seconds: float) -> None:
        waited = microseconds(seconds)
        self._waited.tally(waited)
        self._active.tally(1 + sum(self.in_flight))
        self.stats.tally(name, waited)

    def enqueue_lock(self) -> None:
        """Count a granted extent lock, which the client keeps until the file is deleted."""
        self.locks += 1
        self.stats.tally("ldlm_extent_enqueue", 1)

    def cancel_lock(self, seconds: float) -> None:
        """Count the return of an extent lock."""
        if self.locks:
            self.locks -= 1
            self.request("ldlm_cancel", seconds)

    def _count_sent(self, rpc: Rpc) -> None:
        side = self.histograms[rpc.write]
        side["pages"].tally_log2(-(-rpc.size_bytes // PAGE_BYTES))
        side["in_flight"].tally(self.in_flight[rpc.write])
        side["offset"].tally_log2(rpc.fragments[0][0] // PAGE_BYTES + 1)
        self._active.tally(self.in_flight[0] + self.in_flight[1])
