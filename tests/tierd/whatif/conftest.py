"""Ten minutes of the recorded test bed: a stream, and beside it from the second minute on a neighbour."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from simulator.fluid.cluster import FluidCluster
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.whatif.past import Samples, record, samples_of

SECONDS = 600.0
JOBS = (STREAM, replace(NOISE, start_seconds=120.0))


@dataclass(frozen=True)
class Past:
    file: Path
    samples: Samples
    begin: float
    end: float
    streamed_bytes: float


@pytest.fixture(scope="session")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    cluster = FluidCluster(recorded_test_bed(), JOBS)
    begin = cluster.epoch
    file = record(cluster, SECONDS, tmp_path_factory.mktemp("past"))
    return Past(file, samples_of(file), begin, cluster.epoch, sum(cluster.throughput(STREAM.job_id, 0, SECONDS)) * 1e6)
