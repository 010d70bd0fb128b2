"""Scenarios: a cluster, jobs and what happens to them, as a TOML file.

::

    title = "…"
    teaches = "…"
    seconds = 120
    model = "events"                    # or "flows", for thousands of clients: see :mod:`simulator.fluid`
    cluster = "recorded_test_bed"       # or "measured_test_bed", or tables, see :mod:`simulator.machine`

    [costs]
    preset = "production"               # what calls and moves cost who makes them: see :mod:`simulator.costs`

    [[job]]
    kind = "small_files"                # see _JOBS below
    job_id = "mdt_small.1001"
    start_seconds = 30

    [[event]]                           # see :mod:`simulator.timeline`
    at = 60
    kind = "slow"
    target = "OST0003"
    factor = 2.0

    [variant.alone]
    without = ["mdt_small.1001"]
    [variant.flash_covers.job."mdt_small.1001"]
    layout = [{extent_end = "2M", pool = "flash"}, {extent_start = "2M", pool = "hdd"}]

Every other key of a job is a field of its class in :mod:`simulator.jobs`; ``layout`` is a list of tables with the
fields of :class:`lustre.layout.model.Component`, one per component. A variant is the scenario without some jobs, or
with other values for some of their fields.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import resources
from typing import Any

from simulator import checks, description
from simulator.cluster import Cluster
from simulator.costs import PRESETS, CallCosts
from simulator.fluid import FluidCluster
from simulator.jobs import (
    Job,
    LsScan,
    Mdtest,
    RandomWriter,
    SharedFile,
    SmallFileWriter,
    StreamingReader,
    StreamingWriter,
)  # fmt: skip
from simulator.lines import located
from simulator.machine import machine
from simulator.settings import ClusterSettings, measured_test_bed, recorded_test_bed
from simulator.timeline import Event, Timeline, event

_JOBS: Mapping[str, type[Any]] = {
    "streaming_write": StreamingWriter,
    "streaming_read": StreamingReader,
    "small_files": SmallFileWriter,
    "random_write": RandomWriter,
    "mdtest": Mdtest,
    "ls": LsScan,
    "shared_file": SharedFile,
}
_KEYS = frozenset(("title", "teaches", "seconds", "model", "cluster", "job", "event", "variant", "costs"))
_MODELS: Mapping[str, type[Cluster]] = {"events": Cluster, "flows": FluidCluster}
_CLUSTERS: Mapping[str, Callable[[int], ClusterSettings]] = {
    "recorded_test_bed": recorded_test_bed,
    "measured_test_bed": measured_test_bed,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scenario:
    """What will happen, and what it teaches."""

    title: str
    teaches: str
    seconds: float
    cluster: Callable[[int], ClusterSettings]
    """The cluster's description for a seed."""
    jobs: tuple[Job, ...]
    events: tuple[Event, ...] = ()
    others: Mapping[str, tuple[Job, ...]] = field(default_factory=dict)
    """The jobs of its variants, by name."""
    model: str = "events"

    def settings(self, seed: int = 1) -> ClusterSettings:
        """The cluster's description."""
        return self.cluster(seed)

    def build(self, seed: int = 1) -> Cluster:
        """The cluster at virtual time zero, with its events to come."""
        cluster = _MODELS[self.model](self.cluster(seed), self.jobs)
        Timeline(self.events).apply(cluster)
        return cluster

    def variants(self) -> dict[str, Scenario]:
        """The same scenario with other jobs; the name ``contended`` is the scenario as it stands, unless it says so."""
        return {name: replace(self, jobs=jobs, others={}) for name, jobs in self.others.items()}


def parse(text: str) -> Scenario:
    """A scenario from TOML. Raises ValueError naming everything that is wrong, with its line."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"scenario: {error}") from None
    wrong: list[str] = []
    jobs = [_job(number, dict(entry), wrong) for number, entry in enumerate(table.get("job", ()), start=1)]
    events = [event(dict(entry), f"event {number}", wrong) for number, entry in enumerate(table.get("event", ()), 1)]
    cluster = _cluster(table.get("cluster", "recorded_test_bed"), wrong)
    costs = _costs(table.get("costs", {}), wrong)
    if cluster is not None:
        cluster = partial(_with_costs, cluster, costs)
    done = tuple(job for job in jobs if job is not None)
    others = {name: _variant(done, name, entry, wrong) for name, entry in table.get("variant", {}).items()}
    if (model := table.get("model", "events")) not in _MODELS:
        wrong.append(f"model: {model!r} is not one of {', '.join(_MODELS)}")
    if model == "flows" and any(getattr(job, "directories_count", 0) for job in done):
        wrong.append("model: flows make all their files in one directory, so directories_count needs events")
    if not jobs:
        wrong.append("job: a scenario needs at least one")
    seconds = table.get("seconds", 120)
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or seconds <= 0:
        wrong.append(f"seconds: {seconds!r} is no number above 0")
    if unknown := sorted(set(table) - _KEYS):
        wrong += [f"{key}: a scenario has no such key; it has {', '.join(sorted(_KEYS))}" for key in unknown]
    happening = tuple(one for one in events if one is not None)
    if cluster is not None and not wrong:
        settings = cluster(1)
        wrong += checks.machine(settings)
        wrong += checks.jobs(done, settings)
        wrong += checks.events(happening, [job.job_id for job in done], settings)
    if wrong or cluster is None:
        raise ValueError("scenario: " + "; ".join(located(text, reason) for reason in wrong))
    title, teaches = str(table.get("title", "")), str(table.get("teaches", ""))
    return Scenario(title, teaches, float(seconds), cluster, done, happening, others, model)


def library(name: str) -> Scenario:
    """A scenario of this package by its name: ``noisy_neighbour`` (or ``noisy-neighbour``)."""
    file = resources.files("simulator") / "scenarios" / f"{name.replace('-', '_')}.toml"
    return parse(file.read_text(encoding="utf-8"))


def names() -> tuple[str, ...]:
    """The names of all scenarios of this package."""
    folder = resources.files("simulator") / "scenarios"
    found = (entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return tuple(sorted(name.removesuffix(".toml").replace("_", "-") for name in found))


def _cluster(entry: Any, wrong: list[str]) -> Callable[[int], ClusterSettings] | None:
    if isinstance(entry, Mapping):
        described = machine(entry, wrong)
        return described.with_seed if described is not None else None
    if entry not in _CLUSTERS:
        wrong.append(f"cluster: {entry!r} is not one of {', '.join(_CLUSTERS)}")
        return None
    return _CLUSTERS[entry]


def _costs(table: Mapping[str, Any], wrong: list[str]) -> CallCosts:
    rest = dict(table)
    preset = rest.pop("preset", "production")
    if preset not in PRESETS:
        wrong.append(f"costs: preset {preset!r} is not one of {', '.join(PRESETS)}")
        return PRESETS["production"]
    costs = description.changed(PRESETS[preset], rest, wrong, "costs")
    wrong += [f"costs.{key}: {rest[key]} is negative" for key in rest if getattr(costs, key, 0) < 0]
    return costs


def _with_costs(cluster: Callable[[int], ClusterSettings], costs: CallCosts, seed: int) -> ClusterSettings:
    return replace(cluster(seed), costs=costs)


def _job(number: int, entry: dict[str, Any], wrong: list[str]) -> Job | None:
    kind = entry.pop("kind", None)
    if kind not in _JOBS:
        wrong.append(f"job {number}: kind {kind!r} is not one of {', '.join(_JOBS)}")
        return None
    found: list[str] = []
    job: Job | None = description.settings(_JOBS[kind], entry, found, f"job {number}")
    wrong += [reason.replace(description.name_of(_JOBS[kind]), kind, 1) for reason in found]
    return job


def _variant(jobs: tuple[Job, ...], name: str, entry: Mapping[str, Any], wrong: list[str]) -> tuple[Job, ...]:
    changes: Mapping[str, Mapping[str, Any]] = entry.get("job", {})
    known = {job.job_id for job in jobs}
    if unknown := sorted((set(changes) | set(entry.get("without", ()))) - known):
        wrong.append(f"variant {name}: no job {', '.join(unknown)}")
    return tuple(
        description.changed(job, changes.get(job.job_id, {}), wrong, f"variant {name}")
        for job in jobs
        if job.job_id not in entry.get("without", ())
    )
