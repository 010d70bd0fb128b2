"""The jobs of a cluster: they start, change their settings and stop.

In the event model, a job has a run with processes on each of its nodes. In the flow model, a job has no run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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


class Workload(ABC):
    """The jobs of a cluster."""

    def __init__(self, engine: Engine) -> None:
        self.runs: dict[str, Run] = {}
        """The run on each job's first node, by job id. Empty in the flow model."""
        self._engine = engine
        self._jobs: dict[str, Job] = {}
        """Jobs that have started, by job id."""

    def expect(self, job: Job) -> None:
        """Start a job at its start time, or at once if that time has passed."""
        self._engine.after(job.start_seconds - self._engine.now, self._start, job)

    @abstractmethod
    def stop(self, job_id: str) -> None:
        """Stop a job now. Raises LookupError if it does not run."""

    def changed(self, job_id: str, values: Mapping[str, Any]) -> Job:
        """Stop a job and return its successor: the same job with other values, which starts now.

        Raises LookupError when the job does not run, and ValueError for values it cannot have.
        """
        wrong: list[str] = []
        job = toml_settings.with_values(self._jobs[job_id], values, wrong, job_id)
        if wrong:
            raise ValueError("; ".join(wrong))
        self.stop(job_id)
        return replace(job, start_seconds=self._engine.now)

    @abstractmethod
    def processes_on(self, nid: str) -> int:
        """Processes of running jobs on a node."""

    @abstractmethod
    def _start(self, job: Job) -> None: ...


class EventWorkload(Workload):
    """Jobs of the event model, with one run per node. When a job stops, it finishes its calls in progress."""

    def __init__(
        self, engine: Engine, clients: Sequence[Client], log: Throughput, random: Callable[[str], Random]
    ) -> None:  # fmt: skip
        super().__init__(engine)
        self._clients = clients
        self._log = log
        self._random = random
        self._all_runs: dict[str, list[Run]] = {}

    def stop(self, job_id: str) -> None:
        for run in self._all_runs[job_id]:
            run.stop_seconds = self._engine.now

    def changed(self, job_id: str, values: Mapping[str, Any]) -> Job:
        """Stop a job and return its successor, whose runs replace the runs of the job."""
        job = super().changed(job_id, values)
        del self.runs[job_id], self._all_runs[job_id]
        return job

    def processes_on(self, nid: str) -> int:
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
    return int(getattr(job, "threads", getattr(job, "processes_count", 1)))


class FluidWorkload(Workload):
    """Jobs of the flow model. ``changing`` is called before a job starts or stops.

    ``opened`` is called when a job opens its files, ``closed`` when it closes them.
    """

    def __init__(self, engine: Engine, changing: Callable[[], None], nids: Sequence[str],
                 opened: Callable[[Job], None], closed: Callable[[Job], None]) -> None:
        super().__init__(engine)
        self._changing = changing
        self._opened = opened
        self._closed = closed
        self._nids = nids
        """NIDs of the clients, whose mounts are not modelled one by one."""

    @property
    def active(self) -> Mapping[str, Job]:
        return self._jobs

    def stop(self, job_id: str) -> None:
        self._changing()
        self._closed(self._jobs.pop(job_id))

    def processes_on(self, nid: str) -> int:
        clients = len(self._nids)
        return sum(
            processes_of(job)
            for job in self._jobs.values()
            for rank in range(job.nodes)
            if self._nids[(job.client + rank) % clients] == nid
        )

    def _start(self, job: Job) -> None:
        self._changing()
        self._jobs[job.job_id] = job
        self._opened(job)
        if job.stop_seconds < float("inf"):
            self._engine.after(job.stop_seconds - self._engine.now, self._end, job)

    def _end(self, job: Job) -> None:
        if self._jobs.get(job.job_id) is job:
            self.stop(job.job_id)
