"""One OST of a cluster of flows: its counters, in bulk."""

from __future__ import annotations

from collections.abc import Iterator

from simulator import shapes
from simulator.fluid.flows import Flow
from simulator.jobstats import JobStats
from simulator.ost_settings import OstSettings
from simulator.parameters.job_stats import job_stats_file
from simulator.parameters.text import Clock, stats_file
from simulator.tally import Stats


class FluidTarget:
    """Counts RPCs and bytes; fractions of an RPC are kept for the next time."""

    def __init__(self, name: str, settings: OstSettings) -> None:
        self.name = name
        self.settings = settings
        self.slowdown = 1.0
        self.stats = Stats(shapes.OST, 0.0)
        self.jobs = JobStats(shapes.OST)
        self._kept: dict[str, float] = {}

    def carry(self, one: Flow, rpcs: float, now: float) -> None:
        """So many RPCs of a flow passed since the last time."""
        io = one.stages[-1][0].io
        whole = rpcs + self._kept.get(one.job.job_id, 0.0)
        self._kept[one.job.job_id] = whole - int(whole)
        name = "write_bytes" if io.write else "read_bytes"
        self.stats[name].bulk(int(whole), io.size_bytes)
        self.jobs.bulk(one.job.job_id, name, int(whole), io.size_bytes, now)

    def files(self, epoch_ns: int, now: float) -> Iterator[tuple[str, str]]:
        """Its parameter files."""
        clock = Clock(epoch_ns, now)
        yield f"proc/fs/lustre/obdfilter/{self.name}/job_stats", job_stats_file(clock, self.jobs, now)
        yield f"sys/kernel/debug/lustre/obdfilter/{self.name}/stats", stats_file(clock, self.stats)
