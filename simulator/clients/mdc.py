"""The metadata client: one mount's connection to one MDT."""

from __future__ import annotations

from collections import deque

from simulator import counters
from simulator.counters import Histogram, Stats, microseconds
from simulator.engine import Completion, Engine, Steps
from simulator.servers.mdt import Mdt
from simulator.servers.namespace import Inode

_REQUESTS: dict[str, tuple[str, str]] = {
    "open": ("", "intent_lock"),
    "mknod": ("ldlm_ibits_enqueue", "create"),
    "close": ("mds_close", "close"),
    "unlink": ("", "unlink"),
    "mkdir": ("", "create"),
    "getattr": ("mds_getattr_lock", "getattr"),
    "setattr": ("", "setattr"),
    "getxattr": ("mds_getxattr", "getxattr"),
    "setxattr": ("", "setxattr"),
    "sync": ("mds_sync", "fsync"),
    "statfs": ("mds_statfs", ""),
    "layout": ("ldlm_ibits_enqueue", "intent_lock"),
    "rename": ("", "rename"),
    "glimpse": ("ldlm_ibits_enqueue", ""),
    "readpage": ("", "read_page"),
}
"""Counters of an operation in ``stats`` and ``md_stats`` of the mdc."""
_MODIFYING = frozenset(("mknod", "unlink", "mkdir", "setattr", "setxattr", "rename", "close"))


class Mdc:
    """The connection of one client to one MDT."""

    max_rpcs_in_flight = 8
    max_mod_rpcs_in_flight = 7

    def __init__(self, engine: Engine, name: str, mdt: Mdt, network_seconds: float) -> None:
        self.name = name
        self.mdt = mdt
        self.stats = Stats(counters.MDC_STATS, engine.now)
        self.md_stats = Stats(counters.MDC_MD_STATS, engine.now)
        self._waited, self._active = self.stats["req_waittime"], self.stats["req_active"]
        self.modifying = Histogram()
        self.modifying_in_flight = 0
        self.in_flight = 0
        self._engine = engine
        self._network_seconds = network_seconds
        self._waiting: deque[Completion] = deque()

    def transfer(self, write: bool, size_bytes: int, job_id: str) -> Steps[None]:
        yield from self._round_trip(self.mdt.data(write, size_bytes, job_id))

    def _free_slot(self) -> Steps[None]:
        while self.in_flight >= self.max_rpcs_in_flight:  # another request may have taken the slot that became free
            turn = Completion()
            self._waiting.append(turn)
            yield turn

    def _round_trip(self, work: Steps[None]) -> Steps[None]:
        self.in_flight += 1
        yield self._network_seconds
        yield from work
        yield self._network_seconds
        self.in_flight -= 1
        if self._waiting:
            self._waiting.popleft().succeed()

    def batch(self, operation: str, names: int, job_id: str) -> Steps[None]:
        """Send one request for several names. It costs one round trip and the work for each name."""
        yield from self._free_slot()
        began = self._engine.now
        yield from self._round_trip(self.mdt.work(operation, job_id, names=names))
        self.stats.tally("req_waittime", microseconds(self._engine.now - began))
        self.md_stats.count("intent_getattr_async", names)

    def ask(
        self, operation: str, job_id: str, directory: Inode | None = None, inode: Inode | None = None
    ) -> Steps[None]:  # fmt: skip
        """Send one request and wait for the answer. ``directory`` is the directory that changes or is searched for a
        name, ``inode`` the affected file.
        """
        yield from self._free_slot()
        began = self._engine.now
        request, md_counter = _REQUESTS[operation]
        if operation in _MODIFYING:
            self.modifying_in_flight += 1
            self.modifying.tally(self.modifying_in_flight)
        self._active.tally(self.in_flight + 1)
        yield from self._round_trip(self.mdt.work(operation, job_id, directory, inode=inode))
        self.modifying_in_flight -= operation in _MODIFYING
        waited = microseconds(self._engine.now - began)
        self._waited.tally(waited)
        if request:
            self.stats.tally(request, 1 if request == "ldlm_ibits_enqueue" else waited)
        if md_counter:
            self.md_stats.tally(md_counter)
