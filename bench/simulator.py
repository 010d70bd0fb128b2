"""Virtual seconds per second of wall time: ``python -m bench.simulator``.

It runs the event model on the recorded test bed and on a quarter of a ClusterStor, and the flow model on 10,000 clients
and 400 targets. Ratios depend on the machine; their order does not.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.jobs.large_files import StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.scenarios import scenario
from simulator.settings import recorded_test_bed


def ratio(build: Callable[[], Cluster | FluidCluster], seconds: float, repeats: int = 3) -> float:
    """Return the best ratio of several runs, including the time to build the cluster."""
    best = 0.0
    for _ in range(repeats):
        began = time.perf_counter()
        build().advance(seconds)
        best = max(best, seconds / (time.perf_counter() - began))
    return best


def main() -> None:
    """Print one line per case."""
    paper = scenario.library("noisy-neighbour-paper").variants()["contended"]
    large = scenario.library("large-site")
    jobs = (StreamingWriter(), SmallFileWriter())
    for name, build, seconds in (
        ("events, test bed, two jobs", lambda: Cluster(recorded_test_bed(), jobs), 60.0),
        ("events, quarter of a ClusterStor, 6 GB/s", paper.build, 3.0),
        ("flows, test bed, two jobs", lambda: FluidCluster(recorded_test_bed(), jobs), 600.0),
        ("flows, 10,000 clients, 400 targets, 4 jobs", large.build, 600.0),
    ):
        print(f"{name:45} {ratio(build, seconds):12,.1f} x real time")


if __name__ == "__main__":
    main()
