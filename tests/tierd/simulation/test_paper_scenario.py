"""A stream and a neighbour as in the paper, on the recorded test bed: how fast, how much flash, no going to and fro.

The machine of the paper is in ``test_paper_machine.py``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.settings import FLASH_KIB, recorded_test_bed
from tests.tierd.simulated import MIB, NOISE, STREAM
from tierd.config.settings import Settings
from tierd.simulation.run import Outcome, run

SECONDS = 240.0
ONSET = NOISE.start_seconds


@cache
def outcome() -> Outcome:
    jobs = (STREAM, NOISE)
    return run(Cluster(recorded_test_bed(), jobs), jobs, SECONDS, policy=Settings())


def alone() -> float:
    return outcome().mean(STREAM.job_id, 5, ONSET)


def test_it_is_found_within_thirty_seconds() -> None:
    (first,) = [time for time, f in outcome().findings if f.kind == "noisy-neighbour"]
    assert ONSET < first <= ONSET + 30


def test_the_victim_is_back_at_97_percent_within_a_minute_of_the_finding() -> None:
    found = min(time for time, _ in outcome().findings)
    assert outcome().mean(STREAM.job_id, found + 50, found + 60) >= 0.97 * alone()
    assert outcome().mean(STREAM.job_id, found + 60, SECONDS) >= 0.97 * alone()


def test_the_victim_is_back_at_90_percent_within_two_minutes_of_the_onset() -> None:
    for since in range(int(ONSET) + 110, int(SECONDS) - 10, 10):
        assert outcome().mean(STREAM.job_id, since, since + 10) >= 0.9 * alone()


def test_flash_takes_little_more_than_the_small_files() -> None:
    pool_bytes = 2 * FLASH_KIB << 10
    shares = outcome().pools_used["flash"]
    used = (max(shares) - shares[0]) * pool_bytes
    small_files = (NOISE.keep + NOISE.threads) * NOISE.sizes[0]
    assert NOISE.sizes == (MIB,)
    assert 0.5 * small_files < used <= 1.2 * small_files


def test_no_directory_changes_direction_more_than_once() -> None:
    changes = Counter(e.place for e in outcome().entries if e.kind == "set-default-layout")
    undone = Counter(e.place for e in outcome().entries if e.outcome == "undone")
    assert changes
    assert all(count + undone[place] <= 2 for place, count in changes.items())
    assert not undone  # here it helps, so there is no reason to


def test_other_victims_do_not_set_an_undone_layout_again() -> None:
    """With flash down to its reserve, the layout is undone once, and not set again while the noise continues."""
    policy = Settings()
    policy = replace(policy, small_files_to_flash=replace(policy.small_files_to_flash, reserve=0.72))
    streams = (STREAM, replace(STREAM, job_id="ior_second.1003", path="/proj/flow/second.dat"))
    jobs = (*streams, replace(NOISE, keep=2000))
    found = run(FluidCluster(recorded_test_bed(), jobs), jobs, SECONDS + 120, policy=policy)
    defaults = [e for e in found.entries if e.kind == "set-default-layout"]
    assert [e.outcome for e in defaults] == ["undone"]
    assert len({f.victim for _, f in found.findings if f.kind == "noisy-neighbour"}) == 2
