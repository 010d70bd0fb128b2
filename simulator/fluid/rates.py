"""The rate of every flow and the wait at every target, so that no target exceeds its capacity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lustre.layout.model import Layout
from simulator.clients.mount import ClientSettings
from simulator.cluster import Cluster
from simulator.fluid.flows import CHECKPOINT_IOS_PER_FILE, Demand, Flow, IoKind, cost_of, flow_of
from simulator.jobs import Job
from simulator.jobs.job import DirectoryJob, FileJob
from simulator.jobs.large_files import Streaming, stream_paths
from simulator.servers.journal import BATCH_SECONDS, BLOCK_BYTES
from simulator.servers.namespace import Inode
from simulator.servers.ost import OstSettings
from simulator.servers.placement import ROOM_BYTES_MIN

BALANCE_ROUNDS = 300
_JOURNAL_BLOCKS_IO = IoKind(True, 4 * BLOCK_BYTES)
_COMMIT_RECORD_IO = IoKind(True, BLOCK_BYTES)
_CHECKPOINT_IO = IoKind(True, 4 * BLOCK_BYTES, scattered=True)


class TargetGroup:
    """Targets with the same settings and the same load: the wait of each request, and the demand at that wait."""

    def __init__(self, settings: OstSettings, slowdown: float, targets: int) -> None:
        self.device = settings.device
        self.slowdown = slowdown
        self.wait, self.commit, self.demand = 1e-4, 0.005, 0.0
        self.loads: list[Load] = []
        self._targets = targets
        self._own_journal_device = settings.journal_device is not None
        self._commit_seconds = cost_of(settings.journal_device or self.device, _COMMIT_RECORD_IO).latency_seconds
        self._journal_busy = [cost_of(self.device, io).busy_seconds for io in (_JOURNAL_BLOCKS_IO, _COMMIT_RECORD_IO)
                              if not self._own_journal_device]  # fmt: skip
        self._checkpoint_busy = cost_of(self.device, _CHECKPOINT_IO).busy_seconds

    def update(self, rates: Sequence[float], weight: float) -> None:
        """Move the wait towards that at which the demand is what the targets can serve."""
        used = [0.0, 0.0]
        syncs = objects = 0.0
        for flow, demand_targets, share, rpcs, busy, sync, objects_each in self.loads:
            operations = rates[flow] * demand_targets * share / self._targets
            _add_busy_time(used, busy, operations * rpcs)
            syncs += operations * sync
            objects += operations * objects_each
        commits = self._commits(syncs)
        for busy in self._journal_busy:
            _add_busy_time(used, busy, commits)
        _add_busy_time(used, self._checkpoint_busy, objects * CHECKPOINT_IOS_PER_FILE)
        self.demand = max(used) * self.slowdown
        # the wait is at rest where the demand is 1
        self.wait = min(max(self.wait * max(self.demand, 1e-3) ** weight, 1e-7), 1e4)

    def _commits(self, syncs: float) -> float:
        """Journal commits per second. A request that arrives during a commit joins the next."""
        each = 2 * ((0.0 if self._own_journal_device else self.wait) + self._commit_seconds)
        self.commit = each + min(BATCH_SECONDS, each)
        return syncs / (1 + syncs * self.commit)


def _add_busy_time(used: list[float], busy: Iterable[float], times: float) -> None:
    for limit, share in enumerate(busy):
        used[limit] += share * times


@dataclass(frozen=True, slots=True)
class Placed:
    """A demand of a flow, and its targets."""

    flow: int
    stage: int
    number: int
    """Number of the demand in its stage."""
    demand: Demand
    targets: tuple[int, ...]

    def shares(self, group_of: Mapping[int, int]) -> dict[int, float]:
        """For each group, the share of the targets in it."""
        counts: dict[int, int] = {}
        for target in self.targets:
            counts[group_of[target]] = counts.get(group_of[target], 0) + 1
        return {group: count / len(self.targets) for group, count in counts.items()}


class Wait(NamedTuple):
    """What a demand waits for at one group: constants of the rate of its flow."""

    group: TargetGroup
    longest: float
    """Ratio of the longest of the waits at the demand's targets to their mean."""
    idle_seconds: float
    rpcs: float
    """RPCs to each target, at most one: further ones are under way at the same time."""
    sync: bool


class Load(NamedTuple):
    """What a demand uses of one target of a group: constants of the demand on it."""

    flow: int
    targets: int
    share: float
    rpcs: float
    busy_seconds: tuple[float, ...]
    """Seconds of each limit of the device that one RPC takes."""
    sync: bool
    objects: float


def balance_flows(
    flows: Sequence[Flow], placed: Iterable[Placed], groups: Sequence[TargetGroup], group_of: Mapping[int, int],
    metadata_cores: float,
) -> tuple[list[float], float]:  # fmt: skip
    """Solve for the operations per second of each flow, the wait at each group, and the wait at the MDTs."""
    waits: list[list[list[Wait]]] = [[[] for _ in flow.stages] for flow in flows]
    for each in placed:
        demand = each.demand
        for number, share in each.shares(group_of).items():
            group = groups[number]
            cost = cost_of(group.device, demand.io)
            waits[each.flow][each.stage].append(Wait(
                group, _slowest_of(demand.targets), cost.latency_seconds * group.slowdown, min(demand.rpcs, 1.0),
                demand.sync))
            group.loads.append(Load(each.flow, demand.targets, share, demand.rpcs, cost.busy_seconds,
                                    sync=demand.sync, objects=demand.objects))
    metadata_wait = 0.0
    rates = [0.0] * len(flows)
    for round_number in range(BALANCE_ROUNDS):
        # large steps first, then small ones that do not overshoot
        weight = 0.5 if round_number < BALANCE_ROUNDS // 2 else 0.15
        rates = [_flow_rate(flow, stages, metadata_wait) for flow, stages in zip(flows, waits, strict=True)]
        for group in groups:
            group.update(rates, weight)
        work = sum([rate * flow.metadata_seconds for rate, flow in zip(rates, flows, strict=True)]) / metadata_cores
        metadata_wait = min(max(metadata_wait, 1e-6) * max(work, 1e-3) ** weight, 1e4)
    return rates, metadata_wait


def _flow_rate(flow: Flow, stages: Iterable[Iterable[Wait]], metadata_wait: float) -> float:
    seconds = flow.think_seconds + flow.metadata_seconds + (metadata_wait if flow.metadata_seconds else 0.0)
    for waits in stages:
        slowest = 0.0
        for group, longest, idle_seconds, rpcs, sync in waits:
            took = (group.wait * longest + idle_seconds) * rpcs
            slowest = max(slowest, took, 1.5 * group.commit * longest if sync else 0.0)
        seconds += slowest
    return min(flow.rate_max, flow.concurrency / seconds)


def _slowest_of(targets: int) -> float:
    return sum(1 / number for number in range(1, min(targets, 64) + 1))


@dataclass(frozen=True, slots=True)
class FlowRates:
    """Rates of all flows, constant until something changes."""

    flows: Sequence[Flow]
    per_second: Sequence[float]
    """Operations per second of each flow."""
    placed: Sequence[Placed]
    wait_seconds: Mapping[int | None, float]
    """By OST, the wait of an I/O behind the I/Os of the flows; by None that of a request at an MDT behind theirs."""


class RateSolver:
    """Computes rates from the present state of a cluster."""

    def __init__(self, cluster: Cluster, client: ClientSettings) -> None:
        self._cluster = cluster
        self._client = client

    def rates(
        self, jobs: Iterable[Job], pool_shares: Mapping[str, Mapping[str, float]], others: Sequence[Flow] = ()
    ) -> FlowRates:  # fmt: skip
        """Rates of running jobs. ``pool_shares``: by job, the share of its files in each pool."""
        flows = [*(self._flow(job, pool_shares.get(job.job_id, {})) for job in jobs), *others]
        placed = [Placed(index, stage, number, demand, self._targets_of(one.job, demand))
                  for index, one in enumerate(flows) for stage, demands in enumerate(one.stages)
                  for number, demand in enumerate(demands)]
        stuck = {each.flow for each in placed
                 if not each.targets or any(self._cluster.osts[target].health.away for target in each.targets)}
        flows = [replace(one, rate_max=0.0) if n in stuck else self._limited(one) for n, one in enumerate(flows)]
        groups, group_of = self._groups(placed)
        cores = sum(mdt.settings.cores / mdt.settings.work_factor for mdt in self._cluster.mdts)
        rates, metadata_wait = balance_flows(flows, placed, groups, group_of, cores)
        waits: dict[int | None, float] = {target: groups[group].wait for target, group in group_of.items()}
        waits[None] = metadata_wait
        return FlowRates(flows, rates, placed, waits)

    def _limited(self, one: Flow) -> Flow:
        """A flow within the rule of the OSS for its job."""
        limit = self._cluster.tbf.limit(one.job.job_id, one.job.nodes)
        rpcs = sum(demand.targets * demand.rpcs * (2 if demand.sync and demand.objects else 1)
                   for stage in one.stages for demand in stage)
        return replace(one, rate_max=min(one.rate_max, limit / rpcs)) if rpcs and limit < float("inf") else one

    def _flow(self, job: Job, pool_shares: Mapping[str, float]) -> Flow:
        inode = self._place(job)
        layout = inode.layout or self._cluster.namespace.root.layout
        now = replace(job, layout=layout)
        found = flow_of(now, self._client, self._size_of, pool_shares)
        away = self._cluster.mdts[inode.mdt_index].health.away and found.metadata_seconds
        return replace(found, rate_max=0.0) if away else found

    def _place(self, job: Job) -> Inode:
        """The file or directory whose layout decides where a job's bytes go."""
        if isinstance(job, DirectoryJob):
            return self._cluster.namespace.lookup(job.directories()[0][0])
        try:
            return self._cluster.namespace.lookup(job.path)
        except FileNotFoundError:  # the job creates its file
            return self._cluster.namespace.lookup(job.path.rpartition("/")[0])

    def _targets_of(self, job: Job, demand: Demand) -> tuple[int, ...]:
        """OSTs of a file's objects; for new files, the OSTs of the pool with enough space."""
        if isinstance(job, FileJob) and not demand.objects:
            names = stream_paths(job) if isinstance(job, Streaming) else [job.path]
            found: set[int] = set()
            for name in names:
                found |= self._objects(name, demand.pool)
            if found:
                return tuple(sorted(found))
        osts = self._cluster.osts
        pool = self._cluster.settings.pools[demand.pool] if demand.pool else tuple(range(len(osts)))
        if not demand.objects:
            return pool
        fit = [index for index in pool
               if not osts[index].health.away and osts[index].store.avail_bytes >= ROOM_BYTES_MIN]
        return tuple([index for index in fit if not osts[index].degraded] or fit)

    def _objects(self, path: str, pool: str) -> set[int]:
        try:
            layout = self._cluster.namespace.lookup(path).layout
        except FileNotFoundError:
            return set()
        parts = (layout or Layout(())).components
        return {stripe.ost_index for part in parts if part.pool == pool for stripe in part.objects}

    def _size_of(self, pool: str) -> int:
        return len(self._cluster.settings.pools[pool]) if pool else len(self._cluster.osts)

    def _groups(self, placed: Sequence[Placed]) -> tuple[list[TargetGroup], dict[int, int]]:
        """The groups, and the number of the group of each target."""
        demands: dict[int, list[int]] = {}
        for number, each in enumerate(placed):
            for target in each.targets:
                demands.setdefault(target, []).append(number)
        alike: dict[tuple[OstSettings, float, tuple[int, ...]], list[int]] = {}
        for target in sorted(demands):
            ost = self._cluster.osts[target]
            alike.setdefault((ost.settings, ost.disks.slowdown, tuple(demands[target])), []).append(target)
        groups = [TargetGroup(settings, slowdown, len(members)) for (settings, slowdown, _), members in alike.items()]
        return groups, {target: group for group, members in enumerate(alike.values()) for target in members}
