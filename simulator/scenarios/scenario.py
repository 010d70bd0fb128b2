"""Scenarios: a cluster, jobs and events, read from a TOML file. Mistakes are reported with their place.

::

    title = "…"
    teaches = "…"
    seconds = 120
    model = "events"                    # or "flows", for thousands of clients: see :mod:`simulator.fluid`
    cluster = "recorded_test_bed"       # or "measured_test_bed", or tables: see :mod:`simulator.toml_settings`

    [costs]
    preset = "production"               # the cost of calls and moves: see :mod:`simulator.costs`

    [[job]]
    kind = "small_files"                # see _JOBS below
    job_id = "mdt_small.1001"
    start_seconds = 30

    [[event]]                           # see :mod:`simulator.scenarios.events`
    at = 60
    kind = "slow"
    target = "OST0003"
    factor = 2.0

    [variant.alone]
    without = ["mdt_small.1001"]
    [variant.flash_covers.job."mdt_small.1001"]
    layout = [{extent_end = "2M", pool = "flash"}, {extent_start = "2M", pool = "hdd"}]

``extends = "noisy-neighbour"`` takes everything that the text does not have from that scenario of the library. A job of
the text whose ``job_id`` the other has changes only the fields that it names.

Every other key of a job is a field of its class in :mod:`simulator.jobs`; ``layout`` is a list of tables with the
fields of :class:`lustre.layout.model.Component`, one per component. A variant is the scenario without some jobs, or
with other values for some of their fields.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from typing import Any

from simulator import toml_settings
from simulator.cluster import Cluster
from simulator.costs import PRESETS, CallCosts
from simulator.fluid.cluster import FluidCluster
from simulator.jobs import Job
from simulator.jobs.io500 import Io500
from simulator.jobs.large_files import RandomWriter, SharedFile, StreamingReader, StreamingWriter
from simulator.jobs.metadata import LsScan, Mdtest, StepFiles
from simulator.jobs.small_files import SmallFileWriter
from simulator.scenarios.events import Event, event_from, schedule
from simulator.settings import ClusterSettings, measured_test_bed, recorded_test_bed
from simulator.toml_settings import cluster_from

_JOBS: Mapping[str, type[Any]] = {
    "streaming_write": StreamingWriter,
    "streaming_read": StreamingReader,
    "small_files": SmallFileWriter,
    "random_write": RandomWriter,
    "mdtest": Mdtest,
    "ls": LsScan,
    "step_files": StepFiles,
    "shared_file": SharedFile,
    "io500": Io500,
}
_KEYS = frozenset(("title", "teaches", "seconds", "model", "cluster", "job", "event", "variant", "costs", "extends"))
_EVENTS_ONLY = ("directories_count", "burst_seconds", "build_up_seconds")
"""Fields of jobs that the model of flows does not have."""
_MODELS: Mapping[str, type[Cluster]] = {"events": Cluster, "flows": FluidCluster}
_CLUSTERS = {"recorded_test_bed": recorded_test_bed(), "measured_test_bed": measured_test_bed()}


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario: cluster, jobs and events, and the lesson that they teach."""

    title: str
    teaches: str
    seconds: float
    settings: ClusterSettings
    jobs: tuple[Job, ...]
    events: tuple[Event, ...] = ()
    variant_jobs: Mapping[str, tuple[Job, ...]] = field(default_factory=dict)
    """Jobs of each variant, by name."""
    model: str = "events"

    def cluster(self, seed: int) -> ClusterSettings:
        return replace(self.settings, seed=seed)

    def build(self, seed: int = 1) -> Cluster:
        cluster = _MODELS[self.model](self.cluster(seed), self.jobs)
        schedule(self.events, cluster)
        return cluster

    def variants(self) -> dict[str, Scenario]:
        """By name, the variants of the scenario with their jobs.

        ``contended`` is the scenario itself unless redefined.
        """
        return {name: replace(self, jobs=jobs, variant_jobs={}) for name, jobs in self.variant_jobs.items()}


class ScenarioError(ValueError):
    """Mistakes in a scenario."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        super().__init__("scenario: " + "; ".join(mistakes))
        self.mistakes = mistakes
        """Each begins with its place and a colon: ``job 2.threads:`` is the key ``threads`` of the second job."""


def parse(text: str) -> Scenario:
    """Read a scenario from TOML. Raises ScenarioError with all mistakes, and ValueError for a text that is not TOML."""
    try:
        table: Mapping[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"scenario: {error}") from None
    wrong = list(_shape_errors(table))
    if wrong:
        raise ScenarioError(wrong)
    table = _extended(table, wrong)
    jobs = [_job(number, dict(entry), wrong) for number, entry in enumerate(table.get("job", ()), start=1)]
    events = [
        event_from(dict(entry), f"event {number}", wrong) for number, entry in enumerate(table.get("event", ()), 1)
    ]
    cluster = _cluster(table.get("cluster", "recorded_test_bed"), wrong)
    costs = _costs(table.get("costs", {}), wrong)
    done = tuple(job for job in jobs if job is not None)
    variant_jobs = {name: _variant(done, name, entry, wrong) for name, entry in table.get("variant", {}).items()}
    if (model := table.get("model", "events")) not in _MODELS:
        wrong.append(f"model: {model!r} is not one of {', '.join(_MODELS)}")
    if model == "flows":
        wrong += [f"model: flows have an even rate and one directory, so {key} needs events"
                  for key in _EVENTS_ONLY if any(getattr(job, key, 0) for job in done)]
    if not jobs:
        wrong.append("job: a scenario needs at least one")
    seconds = table.get("seconds", 120)
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or seconds <= 0:
        wrong.append(f"seconds: {seconds!r} is not a number above 0")
    if unknown := sorted(set(table) - _KEYS):
        wrong += [f"{key}: a scenario has no such key; it has {', '.join(sorted(_KEYS))}" for key in unknown]
    happening = tuple(one for one in events if one is not None)
    if cluster is not None and not wrong:
        wrong += name_errors(cluster)
        wrong += job_errors(done, cluster)
        wrong += event_errors(happening, [job.job_id for job in done], cluster)
    if wrong or cluster is None:
        raise ScenarioError(wrong)
    title, teaches = str(table.get("title", "")), str(table.get("teaches", ""))
    return Scenario(title, teaches, float(seconds), replace(cluster, costs=costs), done, events=happening,
                    variant_jobs=variant_jobs, model=model)


def library(name: str) -> Scenario:
    return parse(_library_text(name))


def _library_text(name: str) -> str:
    file = resources.files("simulator") / "scenarios" / f"{name.replace('-', '_')}.toml"
    return file.read_text(encoding="utf-8")


def _extended(table: Mapping[str, Any], wrong: list[str]) -> Mapping[str, Any]:
    """The table with what it takes from the scenario of the library that it extends."""
    extended = table.get("extends")
    if extended is None:
        return table
    if extended not in names():
        wrong.append(f"extends: {extended!r} is not one of {', '.join(names())}")
        return table
    base = _extended(tomllib.loads(_library_text(extended)), wrong)
    known = {job["job_id"] for job in base["job"] if "job_id" in job}
    changes = {job["job_id"]: job for job in table.get("job", ()) if job.get("job_id") in known}
    further = [job for job in table.get("job", ()) if job.get("job_id") not in known]
    return {**base, **table, "job": [*(job | changes.get(job.get("job_id"), {}) for job in base["job"]), *further]}


def names() -> tuple[str, ...]:
    folder = resources.files("simulator") / "scenarios"
    found = (entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return tuple(sorted(name.removesuffix(".toml").replace("_", "-") for name in found))


def _cluster(entry: Any, wrong: list[str]) -> ClusterSettings | None:
    if isinstance(entry, Mapping):
        return cluster_from(entry, wrong)
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
    costs = toml_settings.with_values(PRESETS[preset], rest, wrong, "costs")
    wrong += [f"costs.{key}: {rest[key]} is negative" for key in rest if getattr(costs, key, 0) < 0]
    return costs


def _shape_errors(table: Mapping[str, object]) -> Iterator[str]:
    """Values that are not the tables or lists that a scenario needs."""
    for key in ("job", "event"):
        entries = table.get(key, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            yield f"{key}: is not a list of tables; each begins with [[{key}]]"
    for key in ("costs", "variant"):
        if not isinstance(table.get(key, {}), dict):
            yield f"{key}: is not a table"
    variants = table.get("variant", {})
    for name, entry in variants.items() if isinstance(variants, dict) else ():
        if not isinstance(entry, dict):
            yield f"variant {name}: is not a table"
            continue
        changes, without = entry.get("job", {}), entry.get("without", [])
        if not isinstance(changes, dict) or not all(isinstance(change, dict) for change in changes.values()):
            yield f"variant {name}: job is not a table of tables, as [variant.{name}.job.ID]"
        if not isinstance(without, list) or not all(isinstance(job_id, str) for job_id in without):
            yield f"variant {name}: without is not a list of job ids"


def _job(number: int, entry: dict[str, Any], wrong: list[str]) -> Job | None:
    kind = entry.pop("kind", None)
    if kind not in _JOBS:
        wrong.append(f"job {number}: kind {kind!r} is not one of {', '.join(_JOBS)}")
        return None
    job: Job | None = toml_settings.settings_from(_JOBS[kind], entry, wrong, f"job {number}", kind)
    return job


def _variant(jobs: tuple[Job, ...], name: str, entry: Mapping[str, Any], wrong: list[str]) -> tuple[Job, ...]:
    changes: Mapping[str, Mapping[str, Any]] = entry.get("job", {})
    known = {job.job_id for job in jobs}
    if unknown := sorted((set(changes) | set(entry.get("without", ()))) - known):
        wrong.append(f"variant {name}: no job {', '.join(unknown)}")
    return tuple(
        toml_settings.with_values(job, changes.get(job.job_id, {}), wrong, f"variant {name}")
        for job in jobs
        if job.job_id not in entry.get("without", ())
    )


_POOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,15}")
_FSNAME = re.compile(r"[A-Za-z0-9_-]{1,8}")
_AT_LEAST_ONE = frozenset((
    "nodes", "threads", "call_bytes", "file_bytes", "piece_bytes", "pieces_each", "processes_count", "names", "times",
    "files_each", "easy_files_each", "hard_files_each", "easy_bytes",
))  # fmt: skip
_MAY_BE_ZERO = frozenset(((Mdtest, "file_bytes"), (SmallFileWriter, "call_bytes")))
_NOT_NEGATIVE = frozenset(("start_seconds", "think_seconds", "keep", "rereads_per_second", "burst_seconds", "client",
                           "directories_count", "build_up_seconds"))  # fmt: skip


def job_errors(wanted: Sequence[Job], cluster: ClusterSettings) -> Iterator[str]:
    for number, job in enumerate(wanted, start=1):
        where = f"job {number}"
        for attribute in fields(job):
            value = getattr(job, attribute.name)
            least = 0 if (type(job), attribute.name) in _MAY_BE_ZERO else 1
            if attribute.name in _AT_LEAST_ONE and value < least:
                yield f"{where}.{attribute.name}: {value} is less than {least}"
            if attribute.name in _NOT_NEGATIVE and value < 0:
                yield f"{where}.{attribute.name}: {value} is negative"
        if not job.job_id:
            yield f"{where}.job_id: is empty"
        if job.job_id in {other.job_id for other in wanted[: number - 1]}:
            yield f"{where}.job_id: {job.job_id!r} is an earlier job already"
        if job.stop_seconds <= job.start_seconds:
            yield f"{where}.stop_seconds: {job.stop_seconds:g} is not after its start at {job.start_seconds:g}"
        if getattr(job, "files_per_second", 1.0) <= 0:
            yield f"{where}.files_per_second: needs more than 0"
        if min(getattr(job, "sizes", (1,)), default=0) < 1:
            yield f"{where}.sizes: needs at least one size, each of 1 byte or more"
        for part in job.layout.components if job.layout is not None else ():
            if part.pool and part.pool not in cluster.pools:
                yield f"{where}.layout: there is no pool {part.pool!r}, only {', '.join(cluster.pools) or 'none'}"


def event_errors(wanted: Iterable[Event], names: Iterable[str], cluster: ClusterSettings) -> Iterator[str]:
    """Mistakes in events: unknown targets and jobs."""
    known = set(names)
    targets = {f"OST{index:04x}" for index in range(len(cluster.osts))}
    targets |= {f"MDT{index:04x}" for index in range(len(cluster.mdts))}
    for number, event in enumerate(wanted, start=1):
        target, job, pool = (event.values.get(key) for key in ("target", "job", "pool"))
        if target is not None and target.rpartition("-")[2] not in targets:
            yield f"event {number}.target: there is no {target!r}"
        if job is not None and job not in known:
            yield f"event {number}.job: there is no job {job!r}"
        if pool is not None and pool not in cluster.pools:
            yield f"event {number}.pool: there is no pool {pool!r}"
        if event.at < 0:
            yield f"event {number}.at: {event.at:g} is before the beginning"


def name_errors(cluster: ClusterSettings) -> Iterator[str]:
    """Mistakes in names that become names of files."""
    for pool in cluster.pools:
        if not _POOL_NAME.fullmatch(pool):
            yield f"cluster.ost.pool: {pool!r} is not a name of a pool: letters, digits, '_', '-', '.', 15 at most"
    if not _FSNAME.fullmatch(cluster.fsname):
        yield f"cluster.fsname: {cluster.fsname!r} is not a name of a file system: letters, digits, '_', '-', 8 at most"
