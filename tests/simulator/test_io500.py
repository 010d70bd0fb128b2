"""The phases of IO500 run in the simulator, and the score is computed as IO500 does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cluster import Cluster
from simulator.jobs import io500
from simulator.jobs.io500 import BANDWIDTH_PHASES, OPERATION_PHASES, PHASES, Io500
from simulator.scenarios import scenario

PUBLISHED = {
    # seed 003, a column each: IOR easy write, easy read, hard write, hard read (GiB/s); IOPS (k/s); mean, score
    "1SC20": ((37.56, 45.95, 2.77, 40.81), 232.69, 21.02, 69.93),
    "1SC22": ((55.95, 83.86, 5.02, 39.73), 368.48, 31.10, 107.05),
    "SC22": ((58.07, 77.56, 5.27, 49.36), 544.23, 32.90, 133.81),
}


@pytest.mark.parametrize("column", PUBLISHED)
def test_published_bandwidths_give_the_published_score(column: str) -> None:
    bandwidths, iops, mean, total = PUBLISHED[column]
    rates = dict(zip(("ior-easy-write", "ior-easy-read", "ior-hard-write", "ior-hard-read"), bandwidths, strict=True))
    found = io500.score(rates | dict.fromkeys(OPERATION_PHASES, iops))
    assert found.bandwidth_gib_s == pytest.approx(mean, abs=0.01)
    assert found.total == pytest.approx(total, abs=0.05)


@given(st.lists(st.floats(1e-3, 1e6), min_size=len(PHASES), max_size=len(PHASES)), st.floats(0.01, 100))
def test_the_score_scales_with_all_rates(values: list[float], factor: float) -> None:
    rates = dict(zip(PHASES, values, strict=True))
    one, more = io500.score(rates), io500.score({phase: rate * factor for phase, rate in rates.items()})
    assert more.total == pytest.approx(one.total * factor)
    assert min(rates[phase] for phase in BANDWIDTH_PHASES) <= one.bandwidth_gib_s * (1 + 1e-9)


def small(name: str) -> dict[str, float]:
    variant = scenario.library("io500").variants()[name]
    (job,) = variant.jobs
    assert isinstance(job, Io500)
    short = replace(job, easy_bytes=8 << 20, pieces_each=40, easy_files_each=12, hard_files_each=8)
    cluster = Cluster(variant.cluster(1), (short,))
    cluster.advance(30)
    assert not [inode for inode in cluster.namespace.files() if "mdtest" in inode.path]
    run = cluster.runs[job.job_id]
    assert not run.errors
    done = {phase: run.team.done[phase][0] for phase in PHASES}
    processes = job.nodes * job.threads
    assert done["ior-easy-write"] == pytest.approx(8 * processes)
    assert done["ior-hard-read"] == pytest.approx(40 * processes * 47_008 / (1 << 20))
    assert done["find"] == processes * (12 + 8 + 1) + 1
    assert done["mdtest-hard-delete"] == processes * 8
    return {phase: run.team.per_second(phase) for phase in PHASES}


def test_data_on_mdt_makes_hard_files_faster_and_leaves_ior_as_it_is() -> None:
    plain, on_mdt = small("contended"), small("data_on_mdt")
    assert on_mdt["mdtest-hard-read"] > 1.1 * plain["mdtest-hard-read"]
    assert on_mdt["ior-easy-read"] == pytest.approx(plain["ior-easy-read"], rel=0.2)
    assert io500.score_of_counts(on_mdt) is not None
