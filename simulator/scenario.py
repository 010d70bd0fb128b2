"""Scenarios: a cluster and a timeline of jobs, as a TOML file.

::

    title = "…"
    teaches = "…"
    seconds = 120
    cluster = "recorded_test_bed"

    [[job]]
    kind = "small_files"            # streaming_write, streaming_read, small_files, random_write
    job_id = "mdt_small.1001"
    start_seconds = 30

Every other key of a job is a field of its class in :mod:`simulator.jobs`; ``layout`` is a list of tables with the
fields of :class:`lustre.layout.Component`, one per component.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib import resources
from typing import Any

from lustre.layout import Component, Layout
from simulator.cluster import Cluster
from simulator.jobs import Job, RandomWriter, SmallFileWriter, StreamingReader, StreamingWriter
from simulator.settings import ClusterSettings, recorded_test_bed

_JOBS: Mapping[str, type[StreamingWriter] | type[StreamingReader] | type[SmallFileWriter] | type[RandomWriter]] = {
    "streaming_write": StreamingWriter,
    "streaming_read": StreamingReader,
    "small_files": SmallFileWriter,
    "random_write": RandomWriter,
}
_CLUSTERS: Mapping[str, Callable[[int], ClusterSettings]] = {"recorded_test_bed": recorded_test_bed}


@dataclass(frozen=True, slots=True)
class Scenario:
    """What will happen, and what it teaches."""

    title: str
    teaches: str
    seconds: float
    cluster: str
    jobs: tuple[Job, ...]

    def build(self, seed: int = 1) -> Cluster:
        """The cluster at virtual time zero."""
        return Cluster(_CLUSTERS[self.cluster](seed), self.jobs)


def parse(text: str) -> Scenario:
    """A scenario from TOML. Raises ValueError naming every key that is wrong."""
    table = tomllib.loads(text)
    wrong: list[str] = []
    jobs = [_job(number, dict(entry), wrong) for number, entry in enumerate(table.get("job", ()), start=1)]
    cluster = table.get("cluster", "recorded_test_bed")
    if cluster not in _CLUSTERS:
        wrong.append(f"cluster: {cluster!r} is not one of {', '.join(_CLUSTERS)}")
    if not jobs:
        wrong.append("job: a scenario needs at least one")
    if wrong:
        raise ValueError("scenario: " + "; ".join(wrong))
    done = tuple(job for job in jobs if job is not None)
    return Scenario(table.get("title", ""), table.get("teaches", ""), float(table.get("seconds", 120)), cluster, done)


def library(name: str) -> Scenario:
    """A scenario of this package by its name: ``noisy_neighbour`` (or ``noisy-neighbour``)."""
    file = resources.files("simulator") / "scenarios" / f"{name.replace('-', '_')}.toml"
    return parse(file.read_text(encoding="utf-8"))


def _job(number: int, entry: dict[str, Any], wrong: list[str]) -> Job | None:
    kind = entry.pop("kind", None)
    if kind not in _JOBS:
        wrong.append(f"job {number}: kind {kind!r} is not one of {', '.join(_JOBS)}")
        return None
    known = {field.name for field in fields(_JOBS[kind])}
    if unknown := sorted(set(entry) - known):
        wrong.append(f"job {number}: {kind} has no {', '.join(unknown)}")
        return None
    if "layout" in entry:
        entry["layout"] = _layout(entry["layout"])
    if "sizes" in entry:
        entry["sizes"] = tuple(entry["sizes"])
    return _JOBS[kind](**entry)


def _layout(components: list[dict[str, Any]]) -> Layout:
    return Layout(tuple(Component(**component) for component in components), composite=len(components) > 1)
