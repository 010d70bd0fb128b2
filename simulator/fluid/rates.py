"""How fast every job goes at the moment, and how long everybody waits for each target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from lustre.layout.model import Layout
from simulator.choice import ROOM_BYTES_MIN
from simulator.fluid.balance import Group, balanced
from simulator.fluid.flows import Demand, Flow, flow
from simulator.jobs import Job
from simulator.jobs.shapes import InDirectory, OnFile
from simulator.jobs.streaming import Streaming, paths
from simulator.mdt import Mdt
from simulator.namespace import Inode, Namespace
from simulator.ost import Ost
from simulator.settings import ClusterSettings

Key: TypeAlias = tuple[int, int, int]
"""Number of a flow, of its stage, of the demand in it."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Constant until something changes."""

    flows: Sequence[Flow]
    per_second: Sequence[float]
    """Operations of each flow."""
    targets: Mapping[Key, tuple[int, ...]]
    wait_seconds: Mapping[int, float]
    """By OST, what an I/O waits behind those of the flows."""
    metadata_wait_seconds: float = 0.0
    """What a request to an MDT waits behind theirs."""

    def demands(self) -> Iterable[tuple[int, int, int, Demand]]:
        """Every demand with its key."""
        for index, stage, number in self.targets:
            yield index, stage, number, self.flows[index].stages[stage][number]


class Balance:
    """Knows the cluster; asks it anew each time."""

    def __init__(
        self, settings: ClusterSettings, namespace: Namespace, osts: Sequence[Ost], mdts: Sequence[Mdt]
    ) -> None:  # fmt: skip
        self._settings = settings
        self._namespace = namespace
        self._osts = osts
        self._mdts = mdts

    def rates(
        self, jobs: Iterable[Job], kept: Mapping[str, Mapping[str, float]], others: Sequence[Flow] = ()
    ) -> Rates:  # fmt: skip
        """Of jobs at work; ``kept`` says by job what share of its files lies in which pool."""
        flows = [*(self._flow(job, kept.get(job.job_id, {})) for job in jobs), *others]
        used: dict[Key, tuple[int, ...]] = {}
        for index, one in enumerate(flows):
            for stage, demands in enumerate(one.stages):
                for number, demand in enumerate(demands):
                    used[index, stage, number] = self._targets_of(one.job, demand)
        stuck = {key[0] for key, targets in used.items() if not targets or any(self._osts[t].away for t in targets)}
        flows = [replace(one, rate_max=0.0) if n in stuck else one for n, one in enumerate(flows)]
        groups, members = self._groups(used)
        number_of = {target: group for group, targets in enumerate(members) for target in targets}
        places = {key: _shares(targets, number_of) for key, targets in used.items()}
        cores = sum(mdt.settings.cores / mdt.settings.work_factor for mdt in self._mdts)
        rates, states, metadata_wait = balanced(flows, groups, places, cores)
        waits = {target: states[group].wait for target, group in number_of.items()}
        return Rates(flows, rates, used, waits, metadata_wait)

    def _flow(self, job: Job, kept: Mapping[str, float]) -> Flow:
        inode = self._place(job)
        layout = inode.layout or self._namespace.root.layout
        now = replace(job, layout=layout)
        found = flow(now, self._settings.clients[0], self._size_of, kept)
        away = self._mdts[inode.mdt_index].health.away and found.metadata_seconds
        return replace(found, rate_max=0.0) if away else found

    def _place(self, job: Job) -> Inode:
        """The file or directory whose layout says where its bytes go."""
        if isinstance(job, InDirectory):
            return self._namespace.lookup(job.directories()[0][0])
        try:
            return self._namespace.lookup(job.path)
        except FileNotFoundError:  # it makes its file
            return self._namespace.lookup(job.path.rpartition("/")[0])

    def _targets_of(self, job: Job, demand: Demand) -> tuple[int, ...]:
        """The OSTs its objects lie on; for new files those of the pool that take some."""
        if isinstance(job, OnFile) and not demand.objects:
            names = paths(job) if isinstance(job, Streaming) else [job.path]
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
        return not ost.away and ost.store.space().avail_bytes >= ROOM_BYTES_MIN

    def _size_of(self, pool: str) -> int:
        return len(self._settings.pools[pool]) if pool else len(self._osts)

    def _groups(self, used: Mapping[Key, tuple[int, ...]]) -> tuple[list[Group], list[list[int]]]:
        """Targets that are the same and carry the same load."""
        demands: dict[int, list[Key]] = {}
        for key, targets in used.items():
            for target in targets:
                demands.setdefault(target, []).append(key)
        alike: dict[tuple[object, ...], list[int]] = {}
        for target in sorted(demands):
            ost = self._osts[target]
            alike.setdefault((ost.settings, ost.device.slowdown, tuple(demands[target])), []).append(target)
        groups = []
        for members in alike.values():
            ost = self._osts[members[0]]
            made = ost.settings
            groups.append(Group(made.device, made.journal, made.journal_device, ost.device.slowdown, len(members)))
        return groups, list(alike.values())


def _shares(targets: Sequence[int], number_of: Mapping[int, int]) -> dict[int, float]:
    """By group, the share of a demand's targets that lie in it."""
    counts: dict[int, int] = {}
    for target in targets:
        counts[number_of[target]] = counts.get(number_of[target], 0) + 1
    return {group: count / len(targets) for group, count in counts.items()}
