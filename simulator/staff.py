"""Who works on the cluster: jobs come, change their habits and stop; each has a run on every node it works on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from simulator import description
from simulator.changelog import Actor
from simulator.client import Client
from simulator.engine import Engine, gather
from simulator.jobs import Job, Run
from simulator.jobs.job import Team, user_of
from simulator.throughput import Throughput


class Staff:
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
        job = description.changed(self._jobs[job_id], values, wrong, job_id)
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
