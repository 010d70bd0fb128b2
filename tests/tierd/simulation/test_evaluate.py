"""``tierctl evaluate``: test beds that are drawn, and workloads that tierd once missed."""

import argparse
from dataclasses import replace

import pytest

from simulator.jobs.large_files import Streaming
from tierd.cli.simulate import bed_kinds
from tierd.config.settings import Settings
from tierd.simulation.beds import DRAWN, BedKind, draw_bed
from tierd.simulation.evaluate import Evaluated, Trial, evaluate, summary_text
from tierd.simulation.random_scenarios import NOISE_ENDS, random_scenario


@pytest.mark.parametrize("kind", BedKind)
def test_a_bed_is_the_same_for_each_call(kind: BedKind) -> None:
    beds = [draw_bed(kind, seed) for seed in range(12)]
    assert beds == [draw_bed(kind, seed) for seed in range(12)]
    for bed in beds:
        assert bed.cluster.pools["hdd"] == bed.disks
        assert 1 <= bed.stripes <= len(bed.disks)
        assert bed.small_files_factor > 0
    assert kind is BedKind.RECORDED or len({bed.cluster.osts[2] for bed in beds}) > 6


def test_streams_have_the_stripes_of_their_bed() -> None:
    for seed in range(20):
        case = random_scenario(seed, bed_kind=BedKind.DISK)
        for job in case.jobs:
            if isinstance(job, Streaming) and job.layout is not None:
                assert job.layout.components[0].stripe_count == case.bed.stripes


def test_kinds_of_beds_are_named() -> None:
    assert bed_kinds("all") == DRAWN
    assert bed_kinds("raid") == (BedKind.RAID,)
    with pytest.raises(argparse.ArgumentTypeError, match="no test bed 'tape'; known: all, recorded"):
        bed_kinds("tape")


def test_a_neighbour_on_a_disk_is_found_and_a_job_on_flash_left_alone() -> None:
    noisy = evaluate(990001, Settings(), bed=BedKind.DISK)
    assert (noisy.truth, noisy.bed) == ("aggressor", BedKind.DISK)
    assert noisy.found_after is not None
    assert noisy.found_after < 30
    quiet = evaluate(990041, Settings(), bed=BedKind.DISK)
    assert quiet.truth == "innocent"
    assert (quiet.acted, quiet.harm) == (False, 0.0)
    assert "disk" in summary_text(Evaluated("990001-990041", False, (noisy, quiet)))


@pytest.mark.parametrize(("workload", "seed", "cold"), [
    ("tasks of an array", 20011, True),
    ("bursts of small files", 20002, True),
    ("noise that builds up", 20032, False),
    ("noise that builds up", 20032, True),
    ("small files on a new stream", 20015, False),
])
def test_a_hard_workload_is_found_and_relieved(workload: str, seed: int, cold: bool) -> None:
    trial = Trial(seed, {workload})
    trial.case = replace(trial.case, seconds=NOISE_ENDS)
    verdict = trial.verdict(Settings(), cold)
    assert verdict.truth == "aggressor"
    assert verdict.found_after is not None
    assert verdict.found_after <= (60 if cold else 30)
    assert verdict.acted
    assert verdict.recovery is not None
    assert verdict.recovery > 0.9
    assert verdict.harm < 0.02


def test_a_trickle_that_starts_with_a_stream_is_found() -> None:
    verdict = evaluate(20023, Settings(), workloads={"trickle with another stream"})
    assert verdict.truth == "aggressor"
    assert verdict.found_after is not None
    assert verdict.found_after <= 60
