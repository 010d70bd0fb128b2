"""Recorded episodes in the model: within a quarter of what was recorded, nearly always much closer."""

from __future__ import annotations

import pytest

from bench.calibration import tapes


@pytest.mark.parametrize("name", ["noisy-create-1m", "noisy-flash-too-small", "noisy-random-4k"])
def test_a_recorded_episode(name: str) -> None:
    tape, model = tapes.recorded(name), tapes.simulated(name)
    assert model.kept == pytest.approx(tapes.CLEAN.get(name, tape.kept), rel=0.25)
    for target, share in tape.target_shares.items():
        assert model.target_shares[target] == pytest.approx(share, rel=0.25, abs=0.005)
    assert tapes.apart(tape.rpc_pages, model.rpc_pages) < 0.25
    assert tapes.apart(tape.latency_usec, model.latency_usec) < 0.25
    assert model.latency_mean_usec == pytest.approx(tape.latency_mean_usec, rel=0.25)
