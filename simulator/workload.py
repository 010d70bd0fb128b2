"""The jobs of a cluster: they start, change their settings and stop.

In the event model a job has a run with processes on each of its nodes. In the flow model it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from simulator import toml_settings
from simulator.clients.client import Client
from simulator.engine import Engine, gather
from simulator.jobs import Job
from simulator.jobs.job import Run, Team, Throughput, user_of
from simulator.servers.changelog import Actor


class Workload:
    """Jobs and their runs."""

    def __init__(
        self, engine: Engine, clients: Sequence[Client], log: Throughput, random: Callable[[str], Random]
    ) -> None:  # fmt: skip
        self.runs: dict[str, Run] = {}
        """By job id, on its first node."""
        self._engine = engine
        self._clients = clients
        self._log = log
        self._random = random
        self._jobs: dict[str, Job] = {}
        self._all_runs: dict[str, list[Run]] = {}

    def expect(self, job: Job) -> None:
        """A job comes at its time, at once when that is past."""
        self._engine.after(job.start_seconds - self._engine.now, self._start, job)

    def stop(self, job_id: str) -> None:
        """A job stops now; calls under way are finished. Raises LookupError when it has not begun."""
        for run in self._all_runs[job_id]:
            run.stop_seconds = self._engine.now

    def changed(self, job_id: str, values: Mapping[str, Any]) -> Job:
        """Stop a job; the job it is from now on. Raises ValueError for values it cannot have."""
        wrong: list[str] = []
        job = toml_settings.with_values(self._jobs[job_id], values, wrong, job_id)
        if wrong:
            raise ValueError("; ".join(wrong))
        stopped = self._jobs[job_id].stop_seconds
        self.stop(job_id)
        del self.runs[job_id], self._all_runs[job_id]
        return replace(job, start_seconds=self._engine.now, stop_seconds=stopped)

    def processes_on(self, nid: str) -> int:
        """Processes of jobs at work on a node."""
        runs = (run for runs in self._all_runs.values() for run in runs)
        return sum(run.processes for run in runs if run.active and run.actor.nid == nid)

    def _start(self, job: Job) -> None:
        self._jobs[job.job_id] = job
        user = user_of(job.job_id)
        team = Team()
        for rank in range(job.nodes):
            client = self._clients[(job.client + rank) % len(self._clients)]
            actor = Actor(job.job_id, user, user, client.settings.nid)
            random = self._random(f"{job.job_id}/{rank}" if rank else job.job_id)
            run = Run(client, actor, random, self._log, job.stop_seconds, rank=rank, team=team)
            self.runs.setdefault(job.job_id, run)
            self._all_runs.setdefault(job.job_id, []).append(run)
            steps = list(job.processes(run))
            run.processes = len(steps)
            gather([self._engine.spawn(each) for each in steps])


def processes_of(job: Job) -> int:
    """Processes of a job on each of its nodes."""
    return int(getattr(job, "threads", getattr(job, "processes_count", 1)))


class FluidWorkload:
    """Jobs at work now; ``changing`` is called before that changes."""

    def __init__(self, engine: Engine, changing: Callable[[], None], nids: Sequence[str]) -> None:
        self.runs: Mapping[str, Run] = {}
        """None: a flow has no processes to look at."""
        self.active: dict[str, Job] = {}
        self._engine = engine
        self._changing = changing
        self._nids = nids
        """Of the clients, whose mounts are not there one by one."""

    def expect(self, job: Job) -> None:
        """A job comes at its time, at once when that is past."""
        self._engine.after(job.start_seconds - self._engine.now, self._start, job)

    def stop(self, job_id: str) -> None:
        """A job stops now. Raises LookupError when it is not at work."""
        self._changing()
        del self.active[job_id]

    def changed(self, job_id: str, values: Mapping[str, Any]) -> Job:
        """Stop a job; the job it is from now on. Raises ValueError for values it cannot have."""
        wrong: list[str] = []
        job = toml_settings.with_values(self.active[job_id], values, wrong, job_id)
        if wrong:
            raise ValueError("; ".join(wrong))
        self.stop(job_id)
        return replace(job, start_seconds=self._engine.now)

    def processes_on(self, nid: str) -> int:
        """Processes of jobs on a node."""
        clients = len(self._nids)
        return sum(
            processes_of(job)
            for job in self.active.values()
            for rank in range(job.nodes)
            if self._nids[(job.client + rank) % clients] == nid
        )

    def _start(self, job: Job) -> None:
        self._changing()
        self.active[job.job_id] = job
        if job.stop_seconds < float("inf"):
            self._engine.after(job.stop_seconds - self._engine.now, self._end, job)

    def _end(self, job: Job) -> None:
        if self.active.get(job.job_id) is job:
            self.stop(job.job_id)
