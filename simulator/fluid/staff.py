"""Who works on a cluster of flows: jobs come, change their habits and stop. None of them has processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from simulator import description
from simulator.engine import Engine
from simulator.jobs import Job, Run


def processes_of(job: Job) -> int:
    """Processes of a job on each of its nodes."""
    return int(getattr(job, "threads", getattr(job, "processes_count", 1)))


class FluidStaff:
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
        job = description.changed(self.active[job_id], values, wrong, job_id)
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
