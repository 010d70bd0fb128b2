"""A cluster of flows, with the targets, names and faults of the event model. Time advances from change to change.

The event model runs migrations (by tierd or by a user) and resyncs one by one. Their mount is modelled, and their I/O
waits behind the flows at every target. For the other flows, their bytes are a flow of its own.

RPCs of flows are counted in bulk in the counters of the targets. Fractions are carried over to the next count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from simulator.cluster import Cluster
from simulator.fluid.files import FlowFiles
from simulator.fluid.flows import Demand, Flow, mover_flows
from simulator.fluid.rates import FlowRates, RateSolver
from simulator.jobs import Job
from simulator.jobs.large_files import RandomWriter, SharedFile, StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.servers.namespace import Inode
from simulator.servers.ost import Ost
from simulator.settings import ClusterSettings

REBALANCE_SECONDS = 10.0
"""Interval at which flows are balanced again, for gradual changes such as moved files."""
SETTLE_SECONDS = 0.25
"""Maximum interval between two counts of flows, if time advances in smaller steps."""


class FluidCluster(Cluster):
    """A cluster of flows. It has the parameter files of servers; of mounts, only the mover's is modelled."""

    def __init__(self, settings: ClusterSettings, jobs: Iterable[Job] = ()) -> None:
        self._wait_seconds: Mapping[int | None, float] = {}
        super().__init__(replace(settings, clients=settings.clients[:1]))
        self.mounts = len(settings.clients)
        self._balance = RateSolver(self, settings.clients[0])
        self._fractions: dict[tuple[str, int, int, int], float] = {}
        """Parts of an RPC that are not counted yet: by job, stage, demand in it, and target."""
        self._files: dict[str, FlowFiles] = {}
        self._written: dict[str, list[Inode]] = {}
        """By job, the large files that it has open for writing. Lustre gives a migration no lease on them."""
        self._nids = tuple(client.nid for client in settings.clients)
        """NIDs of the clients, whose mounts are not modelled one by one."""
        self._rates: FlowRates | None = None
        self._settled_at = 0.0
        self._moved_at = 0.0
        self._moved_bytes: dict[str, tuple[int, int]] = {}
        for target in self.targets:
            target.health.changing = self.about_to_change
        self.engine.after(REBALANCE_SECONDS, self._rebalance)
        for job in jobs:
            self.add(job)

    def live(self, until: float, awaited: Collection[object] | None = None) -> None:
        with self.lock:
            super().live(until, awaited)
            if awaited is None or self.now > self._settled_at + SETTLE_SECONDS:
                self.settle()

    def about_to_change(self) -> None:
        self.settle()
        self._rates = None  # computed again when they are wanted

    def _queue_wait(self, ost_index: int | None) -> Callable[[], float]:
        return lambda: self._wait_seconds.get(ost_index, 0.0)

    def _rebalance(self) -> None:
        self.about_to_change()
        self.engine.after(REBALANCE_SECONDS, self._rebalance)

    def settle(self) -> None:
        since, now = self._settled_at, self.engine.now
        if now <= since:
            return
        current = self._current()
        for one, rate in zip(current.flows, current.per_second, strict=True):
            if not one.single:
                self._log(one, rate, since, now)
                if isinstance(one.job, SmallFileWriter):
                    self._make_files(one.job, rate, since, now)
                for inode in self._written.get(one.job.job_id, ()) if rate else ():
                    inode.wrote(inode.size_bytes, now + self.epoch - self.now)
        self._count_rpcs(current, since, now)
        self._settled_at = now

    def processes_on(self, nid: str) -> int:
        return sum(int(getattr(job, "threads", getattr(job, "processes_count", 1)))
                   for job in self._jobs.values() for rank in range(job.nodes)
                   if self._nids[(job.client + rank) % len(self._nids)] == nid)

    def stop(self, job_id: str) -> None:
        with self.lock:
            self.about_to_change()
            del self._jobs[job_id]
            for inode in self._written.pop(job_id, ()):
                inode.writers -= 1

    def _start(self, job: Job) -> None:
        self.about_to_change()
        self._jobs[job.job_id] = job
        if isinstance(job, StreamingWriter | RandomWriter) or (isinstance(job, SharedFile) and job.write):
            files = self._written[job.job_id] = [self.namespace.lookup(path) for path, _ in job.files()]
            for inode in files:
                inode.writers += 1
                inode.lease_broken = True
        if job.stop_seconds < float("inf"):
            self.engine.after(job.stop_seconds - self.now, self._end, job)

    def _end(self, job: Job) -> None:
        if self._jobs.get(job.job_id) is job:  # not a successor of the same name
            self.stop(job.job_id)

    def _log(self, one: Flow, rate: float, at: float, until: float) -> None:
        while at < until:
            next_second = min(float(int(at) + 1), until)
            self.log.add(one.job.job_id, at, round(rate * one.size_bytes * (next_second - at)))
            at = next_second

    def _make_files(self, job: SmallFileWriter, rate: float, since: float, until: float) -> None:
        files = self._files.get(job.job_id)
        if files is None or files.job.directory != job.directory:
            number = 0 if files is None else files.number
            files = self._files[job.job_id] = FlowFiles(self, job, self._nids, number)
        files.create(rate * (until - since), since, until)

    def _current(self) -> FlowRates:
        if self._rates is None:
            shares = {job_id: files.shares() for job_id, files in self._files.items()}
            self._rates = self._balance.rates(self._jobs.values(), shares, self._mover())
            self._wait_seconds = self._rates.wait_seconds
        return self._rates

    def _mover(self) -> list[Flow]:
        seconds = max(self.engine.now - self._moved_at, 1.0)  # directly after the last one there is no rate to speak of
        self._moved_at = self.engine.now
        rates = {}
        for pool, members in self.settings.pools.items():
            bulk = [self.osts[index].bulk for index in members]
            moved = sum(b.read_bytes for b in bulk), sum(b.written_bytes for b in bulk)
            before = self._moved_bytes.get(pool, (0, 0))
            rates[pool] = (moved[0] - before[0]) / seconds, (moved[1] - before[1]) / seconds
            self._moved_bytes[pool] = moved
        return mover_flows(rates)

    def _count_rpcs(self, rates: FlowRates, since: float, until: float) -> None:
        """Count the RPCs of all flows over a span at constant rates, and carry fractions over."""
        for placed in rates.placed:
            one, demand, targets = rates.flows[placed.flow], placed.demand, placed.targets
            if one.single or not targets:
                continue
            each = rates.per_second[placed.flow] * (until - since) * demand.targets * demand.rpcs / len(targets)
            for target in targets:
                key = (one.job.job_id, placed.stage, placed.number, target)
                whole = self._fractions.get(key, 0.0) + each
                self._fractions[key] = whole % 1
                if whole >= 1:
                    self._count(self.osts[target], one.job.job_id, demand, int(whole), until)

    def _count(self, ost: Ost, job_id: str, demand: Demand, rpcs: int, now: float) -> None:
        name = "write" if demand.io.write else "read"
        usec = round(1e6 * (ost.settings.preparing_seconds
                            + ost.settings.preparing_seconds_per_mib * demand.io.size_bytes / (1 << 20)))  # fmt: skip
        counts = [(f"{name}_bytes", demand.io.size_bytes), (name, usec)]
        if demand.sync and demand.objects:
            counts.append(("sync", usec))
        for counter, value in counts:
            ost.stats[counter].bulk(rpcs, value)
            ost.jobs.bulk(job_id, counter, rpcs, value, now)
