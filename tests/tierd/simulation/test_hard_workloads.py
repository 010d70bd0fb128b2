"""Workloads that tierd once missed, one of each kind from ``tierctl evaluate --workload``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tierd.config.settings import Settings
from tierd.simulation.evaluate import Trial, evaluate
from tierd.simulation.random_scenarios import NOISE_ENDS


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
