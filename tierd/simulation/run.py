"""One simulated run, with or without tierd: rates of the jobs, findings, and acts of tierd."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lustre.filesystem import Filesystem
from simulator.cluster import Cluster
from simulator.costs import PRESETS
from simulator.filesystem import SimulatedFilesystem
from simulator.jobs import Job
from simulator.scenarios.events import DRAIN_TARGET, Event
from simulator.scheduler import VirtualScheduler
from tierd.act.journal.entry import Entry
from tierd.config.settings import Settings
from tierd.logs import heard
from tierd.model import Finding
from tierd.policies.registry import has_victim
from tierd.simulation.world import World, world

CYCLE_SECONDS = 5.0
REQUESTS_IN_FLIGHT = 8
"""Number of concurrent requests of tierd to MDTs."""
TimedChanges = Sequence[tuple[float, Callable[[Cluster], None]]]
"""Virtual times and the change to the cluster at each, such as a slow disk."""
Beside = Callable[[World, VirtualScheduler], None]
Orders = Sequence[tuple[float, str]]
"""Virtual times, and the target that tierd is then asked to drain."""


def orders_of(events: Iterable[Event]) -> Orders:
    """Orders to tierd among the events of a scenario."""
    return [(event.at, str(event.values["target"])) for event in events if event.kind == DRAIN_TARGET]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a run. Rates in MB/s, times in virtual seconds."""

    seconds: float
    rates: dict[str, tuple[float, ...]]
    """By job, the rate in each second."""
    findings: tuple[tuple[float, Finding], ...]
    """Findings with the time each began."""
    entries: tuple[Entry, ...]
    log: tuple[tuple[float, str], ...]
    pools_used: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By pool, the used share of its space, once per cycle."""
    acted_at: tuple[float, ...] = ()
    """Start time of each of the entries."""
    kinds: tuple[str, ...] = ()
    """Kind of the finding of each of the entries."""
    operations: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By job and kind, operations per second of metadata jobs."""
    operations_in: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By metadata job, the operations in each second."""
    targets_used: Mapping[str, float] = field(default_factory=dict)
    """By OST, the used share of its space at the end."""
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By pool, its OSTs."""
    waiting_moves: int = 0
    """Moves that are queued at the end."""
    slowdowns: tuple[tuple[float, Finding], ...] = ()
    """Findings of noisy neighbours after each cycle, with the end of the window that they are from."""

    def progress(self, job: str, since: float, until: float) -> float:
        """Mean rate of a job: MB/s, or operations per second of a job that moves no bytes in the whole run."""
        if any(self.rates.get(job, ())):
            return self.mean(job, since, until)
        done = self.operations_in.get(job, ())[int(since):int(until)]
        return sum(done) / len(done) if done else 0.0

    def mean(self, job: str, since: float, until: float) -> float:
        rates = self.rates.get(job, ())[int(since):int(until)]
        return sum(rates) / len(rates) if rates else 0.0


def run(cluster: Cluster, jobs: Sequence[Job], seconds: float, changes: TimedChanges = (),
        policy: Settings | None = None, progress: Callable[[float], None] = lambda _: None,
        tierd_starts: float = 0.0, orders: Orders = (), cycle_seconds: float = CYCLE_SECONDS,
        beside: Beside = lambda *_: None) -> Outcome:
    """Run a new cluster with these jobs. With a policy, tierd runs on it from ``tierd_starts`` on, and acts.

    Of the time before, tierd knows nothing: neither counters, nor changelog records, nor costs of service. ``beside``
    starts what runs with tierd.
    """
    log: list[tuple[float, str]] = []
    findings: dict[tuple[str, str, str], tuple[float, Finding]] = {}
    slowdowns: list[tuple[float, Finding]] = []
    used: dict[str, list[float]] = {}
    clocks = [(0.0, cluster.epoch - cluster.now)]
    pending = sorted(changes, key=lambda event: event[0])
    asked = sorted(orders)
    watching = SimulatedFilesystem(cluster, costs=PRESETS["free"])
    with (VirtualScheduler(cluster) as scheduler,
          heard(lambda words: log.append((cluster.now, words))),
          world(cluster, policy or Settings(), executor=scheduler.executor(REQUESTS_IN_FLIGHT)) as simulated):
        started = False
        while cluster.now < seconds:
            if policy is not None and not started and cluster.now >= tierd_starts:
                started = True
                if tierd_starts:
                    forget_records(cluster)
                simulated.start(scheduler, cycle_seconds)
                beside(simulated, scheduler)
            while started and asked and asked[0][0] <= cluster.now:
                try:
                    drains = simulated.daemon.drains
                    drains.begin(drains.full_name(asked.pop(0)[1]), "an administrator")
                except ValueError as error:  # as tierctl prints it
                    log.append((cluster.now, str(error)))
            until = min(cluster.now + cycle_seconds, seconds, tierd_starts if cluster.now < tierd_starts else seconds)
            while pending and pending[0][0] <= until:
                time, change = pending.pop(0)
                cluster.advance(max(0.0, time - cluster.now))
                change(cluster)
            cluster.advance(until - cluster.now)
            if abs(cluster.epoch - cluster.now - clocks[-1][1]) > 1:
                clocks.append((cluster.now, cluster.epoch - cluster.now))
            if policy is not None:
                for finding in simulated.daemon.findings:
                    if has_victim(finding):
                        slowdowns.append((finding.time - (cluster.epoch - cluster.now), finding))
                    if finding.key not in findings:
                        findings[finding.key] = found_at(finding, log, cluster.now), finding
            for pool, share in shares_used(watching).items():
                used.setdefault(pool, []).append(share)
            progress(cluster.now)
        scheduler.finish()
        entries = tuple(simulated.journal.entries())
        kinds = simulated.journal.kinds_of_acts()
        targets_used = {target: 1 - space.avail_bytes / space.size_bytes for target, space in watching.space().items()}
    rates = {job.job_id: tuple(cluster.throughput(job.job_id, 0, seconds)) for job in jobs}
    operations = {job: {what: run.team.per_second(what) for what in run.team.done} for job, run in cluster.runs.items()}
    return Outcome(seconds, rates, findings=tuple(findings.values()), entries=entries, log=tuple(log),
                   pools_used={pool: tuple(shares) for pool, shares in used.items()},
                   acted_at=tuple(begun_at(entry, clocks) for entry in entries),
                   kinds=tuple(kinds.get(entry.id, "") for entry in entries), operations=operations,
                   operations_in={job: tuple(of.team.operations_in.get(second, 0) for second in range(int(seconds)))
                    for job, of in cluster.runs.items() if of.team.operations_in},
                   targets_used=targets_used,
                   pools={pool: tuple(members) for pool, members in watching.pools().items()},
                   waiting_moves=simulated.gate.waiting, slowdowns=tuple(slowdowns))


def found_at(finding: Finding, lines: Sequence[tuple[float, str]], now: float) -> float:
    """When tierd logged a finding; ``now`` if it did not. Findings are collected some seconds later."""
    line = f"FOUND {finding.kind}: {finding.sentence}"
    return next((time for time, words in reversed(lines) if words == line), now)


def forget_records(cluster: Cluster) -> None:
    """Clear the changelogs: a reader that registers when tierd is installed gets no earlier records."""
    for mdt in cluster.mdts:
        mdt.changelog.clear(mdt.changelog.last_index, cluster.now)


def begun_at(entry: Entry, clocks: Sequence[tuple[float, float]]) -> float:
    """Start of an act in virtual seconds. ``clocks``: since when the nodes' clocks are ahead by how much."""
    ends = [since for since, _ in clocks[1:]] + [float("inf")]
    times = [(entry.intended_at - ahead, since, end) for (since, ahead), end in zip(clocks, ends, strict=True)]
    return next((time for time, since, end in times if since - CYCLE_SECONDS <= time < end), times[-1][0])


def shares_used(filesystem: Filesystem) -> dict[str, float]:
    """By pool, the used share of used plus available space, as df prints it."""
    space = filesystem.space()
    found = {}
    for pool, targets in filesystem.pools().items():
        used = sum(space[target].size_bytes - space[target].free_bytes for target in targets)
        available = sum(space[target].avail_bytes for target in targets)
        found[pool] = used / (used + available) if used + available else 0.0
    return found
