import pytest

from lustre.layout.model import Component, Layout
from tests.tierd.worlds import noise
from tierd.acts import ActKind
from tierd.decide.benefit import Settings, cost_refusal, effect, refusal
from tierd.model import Action, Finding
from tierd.policies.noisy_neighbour import NoisyNeighbourEvidence
from tierd.refusal import Reason
from tierd.text import Carrier

FINDING = Finding("noisy-neighbour", 0, "m.2", "s.1", ("lustre-OST0002",), "", noise())
LAYOUT = Layout((Component(0, 1 << 20, "flash"), Component(1 << 20, None, "hdd")))


def reason(evidence: NoisyNeighbourEvidence, expected: float = 0.8) -> Reason | None:
    found = refusal(FINDING, evidence, expected, Settings())
    return None if found is None else found.reason


@pytest.mark.parametrize(("now", "refused"), [
    (44e6, None), (64e6, Reason.LITTLE_TO_GAIN), (60e6, Reason.LITTLE_TO_GAIN), (float("nan"), Reason.LITTLE_TO_GAIN)])
def test_a_small_or_unknown_loss_is_not_worth_an_act(now: float, refused: Reason | None) -> None:
    assert reason(noise(victim_bytes_per_second=now)) is refused


def test_an_act_that_never_helped_is_not_repeated() -> None:
    expected = effect([0.0] * 10)
    assert reason(noise(), expected) is Reason.LITTLE_TO_GAIN
    assert reason(noise(), effect([1.0] * 10)) is None


def test_moves_must_pay_within_the_horizon() -> None:
    def moves(size_bytes: int) -> list[Action]:
        return [Action(ActKind.MIGRATE, LAYOUT, "", FINDING.key, "/proj/in", "/proj/in/f", size_bytes)]

    assert cost_refusal(FINDING, noise(), 0.8, moves(4 << 30), Settings()) is None
    found = cost_refusal(FINDING, noise(), 0.8, moves(8 << 30), Settings())
    assert found.reason is Reason.MOVES_TOO_DEAR


@pytest.mark.parametrize(("came_at", "carrier", "probability", "refused"), [
    (0.0, Carrier.LOAD, 0.8, None), (0.0, Carrier.LOAD, 0.79, Reason.UNCERTAIN_GAIN),
    (0.0, Carrier.LOAD, float("nan"), Reason.UNCERTAIN_GAIN), (1.0, Carrier.ARRIVAL, 0.95, None),
    (1.0, Carrier.ARRIVAL, 0.94, Reason.UNCERTAIN_GAIN), (0.0, Carrier.HISTORY, 0.94, Reason.UNCERTAIN_GAIN)])
def test_a_loss_must_be_probable_and_more_so_if_the_time_before_the_neighbour_is_known(
        came_at: float, carrier: Carrier, probability: float, refused: Reason | None) -> None:
    assert reason(noise(loss_probability=probability, aggressor_came_at=came_at, carrier=carrier)) is refused
