from __future__ import annotations

import pytest

from lustre.layout.model import Component, Layout
from tests.tierd.worlds import noise
from tierd.decide.benefit import Settings, cost_refusal, effect, refusal
from tierd.model import Action, Finding, NoisyNeighbourEvidence
from tierd.refusal import Reason

FINDING = Finding("noisy-neighbour", 0, "m.2", "s.1", ("lustre-OST0002",), "", noise())
LAYOUT = Layout((Component(0, 1 << 20, "flash"), Component(1 << 20, None, "hdd")))


def bystanders(gain: float, share: float) -> NoisyNeighbourEvidence:
    return noise(bystanders_gain_bytes_per_second=gain, bystanders_gain_share=share)


def reason(evidence: NoisyNeighbourEvidence, expected: float = 0.8) -> Reason | None:
    found = refusal(FINDING, evidence, expected, Settings())
    return found and found.reason


def test_a_clear_loss_is_worth_an_act() -> None:
    assert reason(noise()) is None


@pytest.mark.parametrize("now", [64e6, 60e6, float("nan")])
def test_a_small_or_unknown_loss_is_not(now: float) -> None:
    assert reason(noise(victim_bytes_per_second=now)) is Reason.LITTLE_TO_GAIN


def test_what_never_helped_is_not_done_again() -> None:
    expected = effect([0.0] * 10, Settings())
    assert reason(noise(), expected) is Reason.LITTLE_TO_GAIN
    assert reason(noise(), effect([1.0] * 10, Settings())) is None


def test_nothing_is_taken_from_another_stream() -> None:
    assert reason(bystanders(4e6, 0.36)) is Reason.OTHERS_WOULD_LOSE
    assert reason(bystanders(12e6, 0.04)) is Reason.OTHERS_WOULD_LOSE
    assert reason(bystanders(1e6, 0.02)) is None


def test_moves_must_pay_within_the_horizon() -> None:
    def moves(size_bytes: int) -> list[Action]:
        return [Action("migrate", LAYOUT, "", FINDING.key, "/proj/in", "/proj/in/f", size_bytes)]

    assert cost_refusal(FINDING, noise(), 0.8, moves(4 << 30), Settings()) is None
    found = cost_refusal(FINDING, noise(), 0.8, moves(8 << 30), Settings())
    assert found is not None
    assert found.reason is Reason.MOVES_TOO_DEAR


def test_a_loss_that_only_an_assumed_cost_predicts_must_be_certain() -> None:
    """The neighbour was there before tierd: the usual throughput is a prediction."""
    assert doubtful() is Reason.UNCERTAIN_GAIN
    assert doubtful(gain_low=1.2) is Reason.UNCERTAIN_GAIN, "it must be certain on each kind of device"
    assert doubtful(gain_low=1.2, gain_certain=1.12) is None
    assert doubtful(dose_probability=0.01, dose_loss=0.2) is None
    assert doubtful(dose_probability=0.03, dose_loss=0.2) is Reason.UNCERTAIN_GAIN, "a finding may rest on it"
    assert doubtful(dose_probability=0.3, cross_section_ratio=0.9) is Reason.UNCERTAIN_GAIN
    assert doubtful(cross_section_ratio=1.2, cross_section_probability=0.01) is None


def test_other_evidence_of_a_small_loss_does_not_make_a_large_one_certain() -> None:
    """A neighbour that costs a stream 3% shows in its dose, too."""
    assert doubtful(dose_probability=0.001, dose_loss=0.03) is Reason.UNCERTAIN_GAIN
    assert doubtful(cross_section_ratio=1.03, cross_section_probability=0.001) is Reason.UNCERTAIN_GAIN
    assert doubtful(dose_probability=0.001) is Reason.UNCERTAIN_GAIN, "findings of older versions have no such loss"


def doubtful(**evidence: float) -> Reason | None:
    """Refusal of an act for a victim without a past."""
    return reason(noise(**{"gain_low": 1.06, "gain_high": 1.9, "gain_certain": 1.06, **evidence}))
