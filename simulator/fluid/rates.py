"""The rate of every flow and the wait at every target, so that no target exceeds its capacity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lustre.layout.model import Layout
from simulator.devices import DeviceSettings
from simulator.fluid.flows import CHECKPOINT_IOS_PER_FILE, Demand, Flow, IoKind, busy_seconds, flow_of, latency_seconds
from simulator.jobs import Job
from simulator.jobs.job import DirectoryJob, FileJob
from simulator.jobs.large_files import Streaming, stream_paths
from simulator.servers.journal import BLOCK_BYTES, JournalSettings
from simulator.servers.mdt import Mdt
from simulator.servers.namespace import Inode, Namespace
from simulator.servers.ost import Ost
from simulator.servers.placement import ROOM_BYTES_MIN
from simulator.servers.tbf import Tbf
from simulator.settings import ClusterSettings

BALANCE_ROUNDS = 300
_JOURNAL_BLOCKS_IO = IoKind(True, 4 * BLOCK_BYTES)
_COMMIT_RECORD_IO = IoKind(True, BLOCK_BYTES)
_CHECKPOINT_IO = IoKind(True, 4 * BLOCK_BYTES, scattered=True)


@dataclass(frozen=True, slots=True)
class TargetGroup:
    """Targets with the same settings and the same load."""

    device: DeviceSettings
    journal: JournalSettings
    journal_device: DeviceSettings | None
    slowdown: float
    targets: int


@dataclass(slots=True)
class GroupState:
    """State of one group: the wait of each request, and the demand at that wait."""

    wait: float = 1e-4
    commit: float = 0.005
    demand: float = 0.0


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

    state: GroupState
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
) -> tuple[list[float], list[GroupState], float]:  # fmt: skip
    """Solve for the operations per second of each flow, the state of each group, and the wait at the MDTs."""
    states = [GroupState() for _ in groups]
    waits: list[list[list[Wait]]] = [[[] for _ in flow.stages] for flow in flows]
    loads: list[list[Load]] = [[] for _ in groups]
    for each in placed:
        demand = each.demand
        for number, share in each.shares(group_of).items():
            group = groups[number]
            idle_seconds = latency_seconds(group.device, demand.io) * group.slowdown
            waits[each.flow][each.stage].append(Wait(
                states[number], _slowest_of(demand.targets), idle_seconds, min(demand.rpcs, 1.0), demand.sync))
            loads[number].append(Load(each.flow, demand.targets, share, demand.rpcs,
                                      busy_seconds(group.device, demand.io), sync=demand.sync, objects=demand.objects))
    balances = [_GroupBalance(*of_group) for of_group in zip(states, groups, loads, strict=True)]
    metadata_wait = 0.0
    rates = [0.0] * len(flows)
    for round_number in range(BALANCE_ROUNDS):
        weight = 0.5 if round_number < BALANCE_ROUNDS // 2 else 0.15
        rates = [_flow_rate(flow, stages, metadata_wait) for flow, stages in zip(flows, waits, strict=True)]
        for balance in balances:
            balance.update(rates)
            state = balance.state
            state.wait = min(max(state.wait * max(state.demand, 1e-3) ** weight, 1e-7), 1e4)
        work = sum([rate * flow.metadata_seconds for rate, flow in zip(rates, flows, strict=True)]) / metadata_cores
        metadata_wait = min(max(metadata_wait, 1e-6) * max(work, 1e-3) ** weight, 1e4)
    return rates, states, metadata_wait


def _flow_rate(flow: Flow, stages: Iterable[Iterable[Wait]], metadata_wait: float) -> float:
    seconds = flow.think_seconds + flow.metadata_seconds + (metadata_wait if flow.metadata_seconds else 0.0)
    for waits in stages:
        slowest = 0.0
        for state, longest, idle_seconds, rpcs, sync in waits:
            took = (state.wait * longest + idle_seconds) * rpcs
            slowest = max(slowest, took, 1.5 * state.commit * longest if sync else 0.0)
        seconds += slowest
    return min(flow.rate_max, flow.concurrency / seconds)


def _slowest_of(targets: int) -> float:
    return sum(1 / number for number in range(1, min(targets, 64) + 1))


class _GroupBalance:
    def __init__(self, state: GroupState, group: TargetGroup, loads: Sequence[Load]) -> None:
        self.state = state
        self._group = group
        self._loads = loads
        self._commit_seconds = latency_seconds(group.journal_device or group.device, _COMMIT_RECORD_IO)
        self._journal_busy = [busy_seconds(group.device, io) for io in (_JOURNAL_BLOCKS_IO, _COMMIT_RECORD_IO)
                              if group.journal_device is None]  # fmt: skip
        self._checkpoint_busy = busy_seconds(group.device, _CHECKPOINT_IO)

    def update(self, rates: Sequence[float]) -> None:
        used = [0.0, 0.0]
        syncs = objects = 0.0
        targets = self._group.targets
        for flow, demand_targets, share, rpcs, busy, sync, objects_each in self._loads:
            operations = rates[flow] * demand_targets * share / targets
            _add_busy_time(used, busy, operations * rpcs)
            syncs += operations * sync
            objects += operations * objects_each
        commits = self._commits(syncs)
        for busy in self._journal_busy:
            _add_busy_time(used, busy, commits)
        _add_busy_time(used, self._checkpoint_busy, objects * CHECKPOINT_IOS_PER_FILE)
        self.state.demand = max(used) * self._group.slowdown

    def _commits(self, syncs: float) -> float:
        """Journal commits per second. A request that arrives during a commit joins the next."""
        state, group = self.state, self._group
        wait = state.wait if group.journal_device is None else 0.0
        each = 2 * (wait + self._commit_seconds)
        state.commit = each + min(group.journal.batch_seconds, each)
        return syncs / (1 + syncs * state.commit)


def _add_busy_time(used: list[float], busy: Iterable[float], times: float) -> None:
    for limit, share in enumerate(busy):
        used[limit] += share * times


@dataclass(frozen=True, slots=True)
class FlowRates:
    """Rates of all flows, constant until something changes."""

    flows: Sequence[Flow]
    per_second: Sequence[float]
    """Operations per second of each flow."""
    placed: Sequence[Placed]
    wait_seconds: Mapping[int, float]
    """By OST, the wait of an I/O behind the I/Os of the flows."""
    metadata_wait_seconds: float = 0.0
    """Wait of a request at an MDT behind the requests of the flows."""


class RateSolver:
    """Computes rates from the present state of a cluster."""

    def __init__(
        self, settings: ClusterSettings, namespace: Namespace, osts: Sequence[Ost], mdts: Sequence[Mdt], tbf: Tbf
    ) -> None:  # fmt: skip
        self._settings = settings
        self._namespace = namespace
        self._osts = osts
        self._mdts = mdts
        self._tbf = tbf

    def rates(
        self, jobs: Iterable[Job], pool_shares: Mapping[str, Mapping[str, float]], others: Sequence[Flow] = ()
    ) -> FlowRates:  # fmt: skip
        """Rates of running jobs. ``pool_shares``: by job, the share of its files in each pool."""
        flows = [*(self._flow(job, pool_shares.get(job.job_id, {})) for job in jobs), *others]
        placed = [Placed(index, stage, number, demand, self._targets_of(one.job, demand))
                  for index, one in enumerate(flows) for stage, demands in enumerate(one.stages)
                  for number, demand in enumerate(demands)]
        stuck = {each.flow for each in placed
                 if not each.targets or any(self._osts[target].health.away for target in each.targets)}
        flows = [replace(one, rate_max=0.0) if n in stuck else self._limited(one) for n, one in enumerate(flows)]
        groups, group_of = self._groups(placed)
        cores = sum(mdt.settings.cores / mdt.settings.work_factor for mdt in self._mdts)
        rates, states, metadata_wait = balance_flows(flows, placed, groups, group_of, cores)
        waits = {target: states[group].wait for target, group in group_of.items()}
        return FlowRates(flows, rates, placed, waits, metadata_wait)

    def _limited(self, one: Flow) -> Flow:
        """A flow within the rule of the OSS for its job."""
        limit = self._tbf.limit(one.job.job_id, one.job.nodes)
        rpcs = sum(demand.targets * demand.rpcs * (2 if demand.sync and demand.objects else 1)
                   for stage in one.stages for demand in stage)
        return replace(one, rate_max=min(one.rate_max, limit / rpcs)) if rpcs and limit < float("inf") else one

    def _flow(self, job: Job, pool_shares: Mapping[str, float]) -> Flow:
        inode = self._place(job)
        layout = inode.layout or self._namespace.root.layout
        now = replace(job, layout=layout)
        found = flow_of(now, self._settings.clients[0], self._size_of, pool_shares)
        away = self._mdts[inode.mdt_index].health.away and found.metadata_seconds
        return replace(found, rate_max=0.0) if away else found

    def _place(self, job: Job) -> Inode:
        """The file or directory whose layout decides where a job's bytes go."""
        if isinstance(job, DirectoryJob):
            return self._namespace.lookup(job.directories()[0][0])
        try:
            return self._namespace.lookup(job.path)
        except FileNotFoundError:  # the job creates its file
            return self._namespace.lookup(job.path.rpartition("/")[0])

    def _targets_of(self, job: Job, demand: Demand) -> tuple[int, ...]:
        """OSTs of a file's objects; for new files, the OSTs of the pool with enough space."""
        if isinstance(job, FileJob) and not demand.objects:
            names = stream_paths(job) if isinstance(job, Streaming) else [job.path]
            found: set[int] = set()
            for name in names:
                found |= self._objects(name, demand.pool)
            if found:
                return tuple(sorted(found))
        pool = self._settings.pools[demand.pool] if demand.pool else tuple(range(len(self._osts)))
        if not demand.objects:
            return pool
        fit = [index for index in pool if self._takes_files(self._osts[index])]
        return tuple([index for index in fit if not self._osts[index].degraded] or fit)

    def _objects(self, path: str, pool: str) -> set[int]:
        try:
            layout = self._namespace.lookup(path).layout
        except FileNotFoundError:
            return set()
        parts = (layout or Layout(())).components
        return {stripe.ost_index for part in parts if part.pool == pool for stripe in part.objects}

    def _takes_files(self, ost: Ost) -> bool:
        return not ost.health.away and ost.store.space().avail_bytes >= ROOM_BYTES_MIN

    def _size_of(self, pool: str) -> int:
        return len(self._settings.pools[pool]) if pool else len(self._osts)

    def _groups(self, placed: Sequence[Placed]) -> tuple[list[TargetGroup], dict[int, int]]:
        """The groups, and the number of the group of each target."""
        demands: dict[int, list[int]] = {}
        for number, each in enumerate(placed):
            for target in each.targets:
                demands.setdefault(target, []).append(number)
        alike: dict[tuple[object, ...], list[int]] = {}
        for target in sorted(demands):
            ost = self._osts[target]
            alike.setdefault((ost.settings, ost.device.slowdown, tuple(demands[target])), []).append(target)
        groups = []
        for members in alike.values():
            ost = self._osts[members[0]]
            made = ost.settings
            groups.append(
                TargetGroup(made.device, made.journal, made.journal_device, ost.device.slowdown, len(members)))
        return groups, {target: group for group, members in enumerate(alike.values()) for target in members}
