"""System calls of a program on a mount. Each takes processor time on its node and service time at the targets."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from lustre.fid import Fid
from simulator.costs import CALLER, CallCosts
from simulator.engine import Steps
from simulator.network import NETWORK_SECONDS
from simulator.servers.namespace import Inode

if TYPE_CHECKING:
    from simulator.cluster import Cluster
    from simulator.servers.mdt import Mdt
    from simulator.servers.ost import Ost

NAMES_PER_PAGE = 100
GLIMPSE_USEC, STATFS_USEC = 50, 10
"""Service time of an OST for a glimpse (size of an object) and for statfs."""
RETRY_SECONDS = 0.1
"""Interval at which a request to an absent target is sent again."""


class Calls:
    """Waits for the duration of a call. Raises OSError ETIMEDOUT for a target that is absent too long."""

    def __init__(self, cluster: Cluster, costs: CallCosts) -> None:
        self._cluster = cluster
        self._costs = costs

    def status(self, path: str) -> None:
        inode = self._found(path)
        if self._costs.attributes_cached and inode is not None and not inode.is_directory:
            self._take(self._computing(0.0, self._costs.cached_processor_seconds))
            return
        self.to_mdt(path, "getattr")
        inode = self._found(path)
        parts = inode.layout.components if inode is not None and inode.layout and not inode.is_directory else ()
        if osts := sorted({stripe.ost_index for part in parts for stripe in part.objects}):
            self._take(self._glimpses(osts))

    def set_default(self, directory: str) -> None:
        self.to_mdt(directory, "open", "setxattr", "close")
        if self._costs.default_processor_seconds:
            self._take(self._computing(0.0, self._costs.default_processor_seconds))

    def read_directory(self, path: str) -> None:
        inode = self._found(path)
        pages = 0 if inode is None else 1 + len(inode.children) // NAMES_PER_PAGE
        self.to_mdt(path, "open", *["readpage"] * pages, "close")

    def to_mdt(self, where: str | Fid, *requests: str) -> None:
        """Make system calls to the MDT of a path or FID, one after the other."""
        inode = self._found(where)
        index = 0 if inode is None else inode.mdt_index  # the first MDT answers that the file does not exist
        self._take(self._requests(index, requests))

    def _found(self, where: str | Fid) -> Inode | None:
        names = self._cluster.namespace
        with self._cluster.lock, suppress(OSError):
            return names.by_fid(where) if isinstance(where, Fid) else names.lookup(where)
        return None

    def statfs(self) -> None:
        self._take(self._statfs())

    def take_records(self, records: int, walked: int = 0) -> None:
        """Process a number of changelog records, after a walk over uncleared ones."""
        seconds = self._costs.call_processor_seconds + records * self._costs.record_processor_seconds
        self._take(self._computing(self._costs.call_seconds + walked * self._costs.kept_record_seconds, seconds))

    def read_counters(self) -> None:
        self._take(self._computing(self._costs.look_seconds, self._costs.look_processor_seconds))

    def _take(self, steps: Steps[None]) -> None:
        if not self._costs.charged:
            return
        with self._cluster.lock:
            ended = self._cluster.engine.spawn(steps)
        self._cluster.wait_for(ended)
        if ended.error is not None:
            raise ended.error

    def _call(self) -> Steps[None]:
        return self._computing(self._costs.call_seconds, self._costs.call_processor_seconds)

    def _requests(self, mdt_index: int, requests: Iterable[str]) -> Steps[None]:
        mdc = self._cluster.clients[0].mdcs[mdt_index]
        for request in requests:
            yield from self._call()
            yield from self._answering(mdc.mdt)
            yield from mdc.ask(request, CALLER)

    def _glimpses(self, indices: Iterable[int]) -> Steps[None]:
        for index in indices:
            yield from self._answering(self._cluster.osts[index])
        yield NETWORK_SECONDS
        for index in indices:
            self._cluster.osts[index].tally(CALLER, "getattr", GLIMPSE_USEC)
        yield NETWORK_SECONDS + GLIMPSE_USEC / 1e6

    def _statfs(self) -> Steps[None]:
        yield from self._call()
        yield NETWORK_SECONDS
        for ost in self._cluster.osts:
            if not ost.health.away:
                ost.stats.tally("statfs", STATFS_USEC)
        yield NETWORK_SECONDS

    def _computing(self, seconds: float, processor_seconds: float) -> Steps[None]:
        if seconds:
            yield seconds
        yield from self._cluster.processors.work(self._costs, processor_seconds)

    def _answering(self, target: Mdt | Ost) -> Steps[None]:
        until = self._cluster.now + self._costs.timeout_seconds
        while target.health.away:
            if self._cluster.now >= until:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), target.name)
            yield RETRY_SECONDS
