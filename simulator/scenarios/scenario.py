"""Scenarios: a cluster, jobs and events, read from a TOML file. Mistakes are reported with their place.

::

    title = "…"
    teaches = "…"
    seconds = 120
    model = "events"                    # or "flows", for thousands of clients: see :mod:`simulator.fluid`
    cluster = "recorded_test_bed"       # or "measured_test_bed", or tables: see :mod:`simulator.tables`

    [costs]
    preset = "production"               # the cost of calls and moves: see :mod:`simulator.costs`

    [[job]]
    kind = "small_files"                # see :mod:`simulator.jobs`
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

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import MinLen
from pydantic import BaseModel, TypeAdapter

from simulator.cluster import Cluster
from simulator.costs import PRESETS, CallCosts
from simulator.fluid.cluster import FluidCluster
from simulator.jobs import Job
from simulator.ranges import Positive
from simulator.scenarios.events import Event, event_from, schedule
from simulator.settings import ClusterSettings, measured_test_bed, recorded_test_bed
from simulator.tables import JOB, STRICT, Mistake, Place, cluster_from, read, sentence

LIBRARY = Path(__file__).parent
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


class _Variant(BaseModel):
    model_config = STRICT

    without: list[str] = []
    job: dict[str, dict[str, Any]] = {}


class _Document(BaseModel):
    model_config = STRICT

    job: Annotated[list[dict[str, Any]], MinLen(1)]
    title: str = ""
    teaches: str = ""
    seconds: Positive = 120.0
    model: Literal["events", "flows"] = "events"
    cluster: Any = "recorded_test_bed"
    costs: dict[str, Any] = {}
    event: list[dict[str, Any]] = []
    variant: dict[str, _Variant] = {}


_DOCUMENT, _COSTS = TypeAdapter(_Document), TypeAdapter(CallCosts)


class ScenarioError(ValueError):
    """Mistakes in a scenario."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__("scenario: " + "; ".join(map(sentence, mistakes)))
        self.mistakes = mistakes


def parse(text: str) -> Scenario:
    """Read a scenario from TOML. Raises ScenarioError with all mistakes, and ValueError for a text that is not TOML."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"scenario: {error}") from None
    wrong: list[Mistake] = []
    found = read(_DOCUMENT, _extended(table, wrong), (), wrong)
    if found is None:
        raise ScenarioError(wrong)
    read_jobs = [read(JOB, each, ("job", number), wrong) for number, each in enumerate(found.job)]
    jobs = tuple(job for job in read_jobs if job is not None)
    events = [event_from(each, ("event", number), wrong) for number, each in enumerate(found.event)]
    happening = tuple(event for event in events if event is not None)
    cluster = _cluster(found.cluster, wrong)
    costs = _costs(found.costs, wrong)
    variants = {name: _variant(jobs, entry, ("variant", name), wrong) for name, entry in found.variant.items()}
    if found.model == "flows":
        wrong += [(("model",), f"flows have an even rate and one directory, so {key} needs events")
                  for key in _EVENTS_ONLY if any(getattr(job, key, 0) for job in jobs)]
    if cluster is not None and not wrong:
        wrong += [*job_errors(jobs, cluster), *event_errors(happening, cluster)]
    if wrong or cluster is None or costs is None:
        raise ScenarioError(wrong)
    return Scenario(found.title, found.teaches, found.seconds, replace(cluster, costs=costs), jobs, events=happening,
                    variant_jobs=variants, model=found.model)


def library(name: str) -> Scenario:
    return parse(_library_text(name))


def _library_text(name: str) -> str:
    return (LIBRARY / f"{name.replace('-', '_')}.toml").read_text(encoding="utf-8")


def _extended(table: Mapping[str, Any], wrong: list[Mistake]) -> Mapping[str, Any]:
    """The table, with the values of the library's scenario that it extends."""
    rest = dict(table)
    extended, jobs = rest.pop("extends", None), rest.get("job", [])
    if extended is None or not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        return rest
    if extended not in names():
        wrong.append((("extends",), f"{extended!r} is not one of {', '.join(names())}"))
        return rest
    base = _extended(tomllib.loads(_library_text(extended)), wrong)
    known = {job["job_id"] for job in base["job"] if "job_id" in job}
    changes = {job["job_id"]: job for job in jobs if str(job.get("job_id", "")) in known}
    further = [job for job in jobs if str(job.get("job_id", "")) not in known]
    return {**base, **rest, "job": [*(job | changes.get(job.get("job_id"), {}) for job in base["job"]), *further]}


def names() -> tuple[str, ...]:
    return tuple(sorted(file.stem.replace("_", "-") for file in LIBRARY.glob("*.toml")))


def _cluster(entry: Any, wrong: list[Mistake]) -> ClusterSettings | None:
    if isinstance(entry, dict):
        return cluster_from(entry, wrong)
    if str(entry) not in _CLUSTERS:
        wrong.append((("cluster",), f"{entry!r} is not one of {', '.join(_CLUSTERS)}"))
    return _CLUSTERS.get(str(entry))


def _costs(table: Mapping[str, Any], wrong: list[Mistake]) -> CallCosts | None:
    rest = dict(table)
    preset = str(rest.pop("preset", "production"))
    if preset not in PRESETS:
        wrong.append((("costs", "preset"), f"{preset!r} is not one of {', '.join(PRESETS)}"))
        return None
    return read(_COSTS, {**asdict(PRESETS[preset]), **rest}, ("costs",), wrong)


def _variant(jobs: tuple[Job, ...], variant: _Variant, where: Place, wrong: list[Mistake]) -> tuple[Job, ...]:
    if unknown := sorted({*variant.job, *variant.without} - {job.job_id for job in jobs}):
        wrong.append((where, f"there is no job {', '.join(unknown)}"))
    made = [read(JOB, JOB.dump_python(job) | variant.job.get(job.job_id, {}), (*where, "job", job.job_id), wrong)
            for job in jobs if job.job_id not in variant.without]
    return tuple(job for job in made if job is not None)


def job_errors(wanted: Sequence[Job], cluster: ClusterSettings) -> Iterator[Mistake]:
    """Mistakes that no single value shows."""
    earlier = set[str]()
    for number, job in enumerate(wanted):
        if not job.job_id or job.job_id in earlier:
            yield ("job", number, "job_id"), f"{job.job_id!r} is an earlier job already" if job.job_id else "is empty"
        earlier.add(job.job_id)
        if job.stop_seconds <= job.start_seconds:
            yield (("job", number, "stop_seconds"),
                   f"{job.stop_seconds:g} is not after its start at {job.start_seconds:g}")
        for part in job.layout.components if job.layout is not None else ():
            if part.pool and part.pool not in cluster.pools:
                yield (("job", number, "layout"),
                       f"there is no pool {part.pool!r}, only {', '.join(cluster.pools) or 'none'}")


def event_errors(wanted: Iterable[Event], cluster: ClusterSettings) -> Iterator[Mistake]:
    """Unknown targets of events."""
    targets = {f"OST{index:04x}" for index in range(len(cluster.osts))}
    targets |= {f"MDT{index:04x}" for index in range(len(cluster.mdts))}
    for number, event in enumerate(wanted):
        target = event.values.get("target")
        if target is not None and target.rpartition("-")[2] not in targets:
            yield ("event", number, "target"), f"there is no target {target!r}"
