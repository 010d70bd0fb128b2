"""One simulated run, with or without tierd, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lustre.filesystem import Filesystem
from simulator.cluster import Cluster
from simulator.jobs import Job
from tierd.act.journal import Entry
from tierd.config import Settings
from tierd.model import Finding
from tierd.simulation.world import world

CYCLE_SECONDS = 5.0

Timeline = Sequence[tuple[float, Callable[[Cluster], None]]]
"""Virtual times, and what happens to the cluster then: a disk that gets slow, for instance."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What each job got and what tierd did. Rates in MB/s, times in virtual seconds."""

    seconds: float
    rates: dict[str, tuple[float, ...]]
    """By job, second by second."""
    findings: tuple[tuple[float, Finding], ...]
    """With the time each began."""
    entries: tuple[Entry, ...]
    said: tuple[tuple[float, str], ...]
    flash_used: tuple[tuple[float, float], ...]
    """Time and share of the flash pool in use, once a cycle."""

    def mean(self, job: str, since: float, until: float) -> float:
        """Mean rate of a job."""
        rates = self.rates.get(job, ())[int(since):int(until)]
        return sum(rates) / len(rates) if rates else 0.0


def run(cluster: Cluster, jobs: Sequence[Job], seconds: float, timeline: Timeline = (),
        policy: Settings | None = None, progress: Callable[[float], None] = lambda _: None) -> Outcome:
    """Let a new cluster with these jobs live so long; with a policy, tierd is at work on it, acting for real."""
    said: list[tuple[float, str]] = []
    findings: dict[tuple[str, str, str], tuple[float, Finding]] = {}
    used: list[tuple[float, float]] = []
    pending = sorted(timeline, key=lambda event: event[0])
    with world(cluster, policy or Settings(), lambda words: said.append((cluster.now, words))) as at:
        while cluster.now < seconds:
            until = min(cluster.now + CYCLE_SECONDS, seconds)
            while pending and pending[0][0] <= until:
                time, happens = pending.pop(0)
                cluster.advance(max(0.0, time - cluster.now))
                happens(cluster)
            cluster.advance(until - cluster.now)
            if policy is not None:
                at.daemon.cycle(cluster.epoch + CYCLE_SECONDS / 2)
                for finding in at.daemon.findings:
                    findings.setdefault(finding.key, (cluster.now, finding))
            used.append((cluster.now, flash_share(at.filesystem)))
            progress(cluster.now)
        entries = tuple(at.journal.entries())
    rates = {job.job_id: tuple(cluster.throughput(job.job_id, 0, seconds)) for job in jobs}
    return Outcome(seconds, rates, tuple(findings.values()), entries, tuple(said), tuple(used))


def flash_share(filesystem: Filesystem) -> float:
    """Share of the flash pool in use."""
    space = filesystem.space()
    members = [space[target] for target in filesystem.pools().get("flash", ())]
    size = sum(s.size_bytes for s in members)
    return 1 - sum(s.avail_bytes for s in members) / size if size else 0.0
