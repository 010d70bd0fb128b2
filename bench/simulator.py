"""Virtual seconds per second of wall time: ``python -m bench.simulator``.

The event model on the recorded test bed and on a quarter of a ClusterStor, the model of flows on 10,000 clients and 400
targets. Ratios depend on the machine; their order does not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from simulator import scenario
from simulator.client import ClientSettings
from simulator.cluster import Cluster
from simulator.fluid import FluidCluster
from simulator.jobs import Job, SmallFileWriter, StreamingWriter
from simulator.settings import ClusterSettings, recorded_test_bed


def ratio(build: Callable[[], Cluster | FluidCluster], seconds: float, repeats: int = 3) -> float:
    """The best of some runs, building included."""
    best = 0.0
    for _ in range(repeats):
        began = time.perf_counter()
        build().advance(seconds)
        best = max(best, seconds / (time.perf_counter() - began))
    return best


def large(clients: int = 10_000, targets: int = 400) -> ClusterSettings:
    """The test bed's targets, many times."""
    bed = recorded_test_bed()
    quarter = targets // 4
    return replace(
        bed,
        osts=(bed.osts[0],) * quarter + (bed.osts[2],) * (targets - quarter),
        pools={"flash": tuple(range(quarter)), "hdd": tuple(range(quarter, targets))},
        clients=tuple(ClientSettings(instance=f"ff{n:08d}") for n in range(clients)),
    )


def many_jobs() -> list[Job]:
    """25 jobs on 400 nodes each, beginning one after the other."""
    jobs: list[Job] = [
        StreamingWriter(f"ior{n}.{n}", f"/p{n}/f", client=n * 400, nodes=400, start_seconds=n * 5.0) for n in range(20)
    ]
    return jobs + [SmallFileWriter(f"small{n}.{n}", f"/s{n}", client=8000 + n * 400, nodes=400) for n in range(5)]


def main() -> None:
    """Print one line a case."""
    paper = scenario.library("noisy-neighbour-paper").variants()["contended"]
    jobs = (StreamingWriter(), SmallFileWriter())
    for name, build, seconds in (
        ("events, test bed, two jobs", lambda: Cluster(recorded_test_bed(), jobs), 60.0),
        ("events, quarter of a ClusterStor, 6 GB/s", paper.build, 3.0),
        ("flows, test bed, two jobs", lambda: FluidCluster(recorded_test_bed(), jobs), 600.0),
        ("flows, 10,000 clients, 400 targets, 25 jobs", lambda: FluidCluster(large(), many_jobs()), 600.0),
    ):
        print(f"{name:45} {ratio(build, seconds):12,.1f} x real time")


if __name__ == "__main__":
    main()
