"""Counters of the jobs of a large file system, made up as the parsers give them; for :mod:`bench.tierd`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from random import Random

from bench.tierd_jobs import Job
from tierd.sense.readings import JobCounters, Reading

SECONDS = 5.0
"""From cycle to cycle."""
MIB = 1 << 20
FIRST = 1_795_000_000.0
MDTS = tuple(f"MDT{n:04x}" for n in range(8))


class Clock:
    """Virtual time."""

    def __init__(self) -> None:
        self.time = FIRST

    def now(self) -> float:
        """Epoch seconds."""
        return self.time

    def wait(self, seconds: float) -> bool:
        """Time passes."""
        self.time += seconds
        return False


Made = tuple[str, dict[str, float], dict[str, float], dict[int, float]]
"""Target, samples, sums and sizes of a job."""


class Counters:
    """Job statistics of a large file system. ``spent`` is the processor time it took to make them up."""

    def __init__(self, clock: Clock, targets: int, jobs: Sequence[Job]) -> None:
        self._clock = clock
        self._rng = Random(1)
        self._targets = [f"big-OST{n:04x}" for n in range(targets)]
        self._all = frozenset((*self._targets, *(f"big-{mdt}" for mdt in MDTS)))
        self._jobs = jobs
        self._counters: dict[tuple[str, str], list[float]] = {}
        self.spent = 0.0

    def __len__(self) -> int:
        return len(self._counters)

    def reading(self) -> Reading:
        """Counters now, as the parsers make them: to make them up is not counted, to put them in objects is."""
        jobs: dict[tuple[str, str], JobCounters] = {}
        for job in self._jobs:
            begun = time.process_time()
            busy = self._rng.random() < 0.3 + 0.7 * job.active  # not everybody works all the time
            made = [self._served(job, target, busy) for target in job.targets]
            if job.kind == "files":
                made.append(self._asked(job, busy))
            self.spent += time.process_time() - begun
            for target, samples, sums, sizes in made:
                jobs[target, job.name] = JobCounters(samples, sums, sizes, "1794990000")
        return Reading(self._clock.time, jobs, self._all)

    def _served(self, job: Job, number: int, busy: bool) -> Made:
        target = self._targets[number]
        at = self._counters.setdefault((target, job.name), [0.0, 0.0])
        if busy:
            size = MIB if job.kind == "stream" else 4096 if job.kind == "io" else 300_000
            operations = max(1.0, round(job.rate * SECONDS * self._rng.uniform(0.9, 1.1)))
            at[0] += operations
            at[1] += operations * size
        upper = MIB if job.kind == "stream" else 4096 if job.kind == "io" else 512 << 10
        samples = {
            "read_bytes": at[0] // 4, "write_bytes": at[0], "read": at[0] // 4, "write": at[0], "getattr": 0.0,
            "setattr": at[0] // 10, "punch": at[0] // 20, "sync": at[0] // 20, "destroy": at[0] // 20, "create": 0.0,
            "statfs": 0.0, "get_info": 0.0, "set_info": 0.0, "quotactl": 0.0, "prealloc": 0.0}
        sums = {"read_bytes": at[1] / 4, "write_bytes": at[1], "read": at[0] * 300, "write": at[0] * 900}
        return target, samples, sums, {upper: at[0]}

    def _asked(self, job: Job, busy: bool) -> Made:
        target = f"big-{MDTS[job.targets[0] % len(MDTS)]}"
        at = self._counters.setdefault((target, job.name), [0.0, 0.0])
        at[0] += round(job.rate * SECONDS) if busy else 0
        return target, {"open": at[0], "close": at[0], "mknod": at[0], "unlink": at[0] // 2, "getattr": at[0]}, {}, {}
