"""A cluster of flows: time goes from change to change."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from simulator import description
from simulator.fluid.balance import Group, balanced
from simulator.fluid.flows import Flow, flow
from simulator.fluid.target import FluidTarget
from simulator.jobs import Job
from simulator.settings import ClusterSettings
from simulator.throughput import Throughput


class FluidCluster:
    """Targets and jobs. The interface is that of :class:`simulator.cluster.Cluster`, as far as it goes."""

    def __init__(self, settings: ClusterSettings, jobs: Iterable[Job] = ()) -> None:
        self.settings = settings
        self.now = 0.0
        self.log = Throughput()
        names = (f"{settings.fsname}-OST{index:04x}" for index in range(len(settings.osts)))
        self.targets = tuple(FluidTarget(name, ost) for name, ost in zip(names, settings.osts, strict=True))
        self._jobs = {job.job_id: job for job in jobs}
        self._first: dict[str, int] = {}
        self._rates: list[tuple[Flow, float, dict[int, float]]] | None = None

    def target(self, name: str) -> FluidTarget:
        """A target by ``OST0003`` or its full name. Raises LookupError."""
        for target in self.targets:
            if target.name.lower().endswith(name.lower()):
                return target
        raise LookupError(f"no target {name}")

    def slow_down(self, ost_index: int, factor: float) -> None:
        """From now on a target's device takes so many times as long; 1 heals it."""
        self.targets[ost_index].slowdown = factor
        self._rates = None

    def change(self, job_id: str, values: dict[str, object]) -> None:
        """Have a job go on with other values of its fields."""
        wrong: list[str] = []
        self._jobs[job_id] = description.changed(self._jobs[job_id], values, wrong, job_id)
        if wrong:
            raise ValueError("; ".join(wrong))
        self._rates = None

    def advance(self, seconds: float) -> None:
        """Let so much time pass."""
        end = self.now + seconds
        while self.now < end:
            until = min([end, *(time for time in self._changes() if time > self.now)])
            self._flow_until(until)
            if until in self._changes():
                self._rates = None

    def throughput(self, job_id: str, since: float, until: float) -> list[float]:
        """MB/s of a job in each whole virtual second of an interval."""
        return self.log.per_second(job_id, since, until)

    def rate(self, job_id: str) -> float:
        """Operations per second of a job, now."""
        return sum(rate for one, rate, _ in self._current() if one.job.job_id == job_id)

    def write_parameters(self, root: Path) -> int:
        """Bring the servers' parameter files below a root up to date; how many were written."""
        epoch_ns = self.settings.epoch_seconds * 10**9
        files = [file for target in self.targets for file in target.files(epoch_ns, self.now)]
        for path, text in files:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return len(files)

    def _changes(self) -> list[float]:
        return [time for job in self._jobs.values() for time in (job.start_seconds, job.stop_seconds)]

    def _flow_until(self, until: float) -> None:
        for one, rate, loads in self._current():
            self._log(one, rate, until)
            for index, share in loads.items():
                self.targets[index].carry(one, rate * share * (until - self.now), until)
        self.now = until

    def _log(self, one: Flow, rate: float, until: float) -> None:
        at = self.now
        while at < until:
            next_second = min(float(int(at) + 1), until)
            self.log.add(one.job.job_id, at, round(rate * one.size_bytes * (next_second - at)))
            at = next_second

    def _current(self) -> list[tuple[Flow, float, dict[int, float]]]:
        if self._rates is None:
            self._rates = self._balance()
        return self._rates

    def _balance(self) -> list[tuple[Flow, float, dict[int, float]]]:
        client = self.settings.clients[0]
        active = [job for job in self._jobs.values() if job.start_seconds <= self.now < job.stop_seconds]
        flows = [flow(job, client, self._size_of) for job in active]
        used = {
            (index, stage, number): self._targets_of(one, stage, number)
            for index, one in enumerate(flows)
            for stage, demands in enumerate(one.stages)
            for number, _ in enumerate(demands)
        }
        groups, members = self._groups(used)
        places = {
            key: {group: len(set(targets) & set(members[group])) / len(targets)
                  for group in range(len(groups)) if set(targets) & set(members[group])}
            for key, targets in used.items()
        }  # fmt: skip
        cores = sum(mdt.cores / mdt.work_factor for mdt in self.settings.mdts)
        rates = balanced(flows, groups, places, cores)
        loads: list[dict[int, float]] = [{} for _ in flows]
        for (index, stage, number), targets in used.items():
            demand = flows[index].stages[stage][number]
            for target in targets:
                share = demand.targets * demand.rpcs / len(targets)
                loads[index][target] = loads[index].get(target, 0.0) + share
        return list(zip(flows, rates, loads, strict=True))

    def _targets_of(self, one: Flow, stage: int, number: int) -> tuple[int, ...]:
        """The targets its objects lie on: all of the pool for a job of many files, else the next in turn."""
        demand = one.stages[stage][number]
        pool = self.settings.pools[demand.pool] if demand.pool else tuple(range(len(self.targets)))
        layout = one.job.layout
        stripes = layout.components[0].stripe_count if layout is not None else 1
        objects = (len(pool) if stripes < 0 else max(stripes, 1)) * one.job.nodes
        if demand.objects or objects >= len(pool):
            return pool
        key = one.job.job_id
        first = self._first.setdefault(key, sum(self._width(other) for other in self._first))
        return tuple(pool[(first + i) % len(pool)] for i in range(objects))

    def _size_of(self, pool: str) -> int:
        return len(self.settings.pools[pool]) if pool else len(self.targets)

    def _width(self, job_id: str) -> int:
        layout = self._jobs[job_id].layout
        return max(layout.components[0].stripe_count if layout is not None else 1, 1) * self._jobs[job_id].nodes

    def _groups(self, used: dict[tuple[int, int, int], tuple[int, ...]]) -> tuple[list[Group], list[tuple[int, ...]]]:
        by_load: dict[tuple[object, ...], list[int]] = {}
        sets = {key: frozenset(targets) for key, targets in used.items()}
        for index, target in enumerate(self.targets):
            demands = tuple(key for key, targets in sets.items() if index in targets)
            if demands:
                by_load.setdefault((target.settings, target.slowdown, demands), []).append(index)
        groups, members = [], []
        for indices in by_load.values():
            target = self.targets[indices[0]]
            ost = target.settings
            groups.append(Group(ost.device, ost.journal, ost.journal_device, target.slowdown, len(indices)))
            members.append(tuple(indices))
        return groups, members
