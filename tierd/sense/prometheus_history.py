"""The throughput of jobs before a start, from Prometheus: read once, so that tierd need not measure it first.

The queries use the recording rules of ``alerts/rules/interference.yml``: bytes and bulk operations of each active job
on each target, in windows of two minutes. An incomplete history is not used: a job missing from it would look as if it
had not run. The number of jobs and points, the size of an answer and the total time are limited.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from tierd.model import JobLoad, Window
from tierd.sense.exposition import JOBID, target_of
from tierd.sense.prometheus import QueryApi

BYTES, OPERATIONS = "fs_target_job:lustre_job_bytes:rate2m", "fs_target_job:lustre_job_bulk_operations:rate2m"
RATE_SECONDS = 120.0
"""Window of the recording rules."""
LEAST_STEP_SECONDS, MOST_WINDOWS = 300.0, 70
"""Least distance of windows, and most of them. Every window costs time in each cycle."""
MAX_JOBS = 200
"""Number of jobs with the most bytes, and number of jobs with the most operations."""
LEARN_TIMEOUT_SECONDS = 20.0
"""Limit of the time of the query. The first window needs the history, so no counters are read meanwhile. A
choice."""
MAX_LOADS = 100_000
"""Maximum number of loads (one for each job, target and window) in the whole history."""


@dataclass(frozen=True, slots=True)
class LearnedHistory:
    """Windows before the start, oldest first, and their jobs."""

    windows: tuple[Window, ...]
    jobs: frozenset[str]
    """Jobs in the windows. Other jobs may have run or not."""


def learned_history(api: QueryApi, seen: Window, before: float) -> LearnedHistory:
    """The history before a time of the busiest jobs in a window. Raises SourceError."""
    settings, jobs = api.settings, busiest(seen)
    pairs = sum(job in jobs for _, job in seen.loads)
    windows_wanted = min(MOST_WINDOWS, settings.learn_seconds / LEAST_STEP_SECONDS, MAX_LOADS / max(pairs, 1))
    span = before - 1 - settings.learn_seconds, before - 1, settings.learn_seconds / windows_wanted
    found: dict[tuple[float, str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for series in api.over(api.selector((BYTES, OPERATIONS), JOBID, sorted(jobs)), *span) if jobs else ():
        target, job = target_of(series.labels), series.labels.get(JOBID, "")
        for at, value in series.points:
            found[at, target, job][series.name == OPERATIONS] += value
    if jobs and not found:
        matching = f", and do their series have {settings.matchers}" if settings.matchers else ""
        raise api.error(f"it has no {BYTES} of these jobs: are the rules of alerts/rules/interference.yml "
                        f"loaded{matching}?")
    return LearnedHistory(tuple(windows(found)), jobs)


def busiest(seen: Window) -> frozenset[str]:
    """The jobs with the most bytes, and the jobs with the most operations."""
    operations: defaultdict[str, float] = defaultdict(float)
    for (_, job), load in seen.loads.items():
        operations[job] += load.operations
    return frozenset(job for of in (seen.moved, operations)
                     for job in sorted(of, key=lambda job: (-of[job], job))[:MAX_JOBS])


def windows(found: dict[tuple[float, str, str], list[float]]) -> list[Window]:
    """Windows that end at the times of the rates. All I/O counts as writes: the rules do not distinguish reads."""
    at: defaultdict[float, dict[tuple[str, str], JobLoad]] = defaultdict(dict)
    for (time, target, job), (moved, operations) in found.items():
        if moved or operations:
            at[time][target, job] = JobLoad(target, job, write_bytes=moved * RATE_SECONDS,
                                            writes=operations * RATE_SECONDS)
    return [Window(time - RATE_SECONDS, time, at[time], {}) for time in sorted(at)]
