"""One workload, several ways: alone, with its neighbour, with flash that holds the files or does not, with tierd.

A scenario may name its variants itself; for one with streams and small files that does not, they follow from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lustre.layout.model import Component, Layout
from simulator.jobs import Job, SmallFileWriter, StreamingReader, StreamingWriter
from simulator.scenario import Scenario
from tierd.decide.sizing import UNIT_BYTES, boundary

WITH_TIERD = "tierd"


def streams(jobs: Sequence[Job]) -> list[Job]:
    """The jobs whose throughput is looked at: those that stream, or all where none does."""
    return [job for job in jobs if isinstance(job, (StreamingWriter, StreamingReader))] or list(jobs)


def variants(scenario: Scenario) -> Iterator[tuple[str, Scenario]]:
    """Name and scenario of each; the last is the scenario as it stands, to be run with tierd."""
    named = scenario.variants()
    if not named and any(isinstance(job, SmallFileWriter) for job in scenario.jobs):
        flowing = tuple(job for job in scenario.jobs if isinstance(job, (StreamingWriter, StreamingReader)))
        if flowing:
            named["alone"] = replace(scenario, jobs=flowing)
        named["contended"] = scenario
        for name, whole in (("flash_covers", True), ("flash_too_small", False)):
            named[name] = replace(scenario, jobs=tuple(on_flash(job, whole) for job in scenario.jobs))
    for name, other in (named or {"contended": scenario}).items():
        yield name, possible(other)
    yield WITH_TIERD, possible(scenario)


def possible(scenario: Scenario) -> Scenario:
    """Without the events that change a job it does not have."""
    present = {job.job_id for job in scenario.jobs}
    events = tuple(e for e in scenario.events if "job" not in e.values or e.text("job") in present)
    return replace(scenario, events=events)


def on_flash(job: Job, whole: bool) -> Job:
    """A job of small files with a flash component that holds them, or that holds a quarter of the largest."""
    if not isinstance(job, SmallFileWriter):
        return job
    largest = max(job.sizes)
    end = boundary(largest) if whole else max(UNIT_BYTES, boundary(largest) // 4)
    tail = job.layout.components[-1] if job.layout is not None else Component(pool="hdd")
    return replace(job, layout=Layout((
        Component(0, end, "flash"), replace(tail, extent_start=end, extent_end=None))))
