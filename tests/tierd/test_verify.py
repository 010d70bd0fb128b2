from __future__ import annotations

import pytest

from tests.tierd.worlds import TARGETS, small_files, stream, window
from tierd.model import Finding, Window
from tierd.verify import Settings, judge

SETTINGS = Settings(settle_seconds=10, judge_seconds=30)
FINDING = Finding("noisy-neighbour", 0, "m.2", "s.1", TARGETS, "",
                  {"victim_usual_bytes_per_second": 66e6, "victim_bytes_per_second": 44e6})


def after(rate: float, noise: bool = True) -> list[Window]:
    return [window(n, stream("s.1", rate), *([small_files("m.2", 20, targets=("lustre-OST0000",))] if noise else []))
            for n in range(20)]


@pytest.mark.parametrize(("rate", "verdict"), [
    (66, "helped"), (55, "helped"), (45, "did-not-help"), (20, "did-not-help")])
def test_a_fair_part_of_the_loss_must_be_won_back(rate: float, verdict: str) -> None:
    assert judge(FINDING, 0.0, after(rate), 50.0, SETTINGS).verdict == verdict


def test_not_before_its_time() -> None:
    assert judge(FINDING, 0.0, after(66), 39.0, SETTINGS).verdict == "too-early"


def test_when_the_noise_has_gone_nothing_is_proven() -> None:
    assert judge(FINDING, 0.0, after(66, noise=False), 50.0, SETTINGS).verdict == "cannot-tell"


def test_when_the_victim_has_gone_nothing_is_proven() -> None:
    gone = [window(n, small_files("m.2", 20)) for n in range(20)]
    assert judge(FINDING, 0.0, gone, 50.0, SETTINGS).verdict == "cannot-tell"


def test_the_part_won_back_is_told() -> None:
    assert judge(FINDING, 0.0, after(55), 50.0, SETTINGS).won_back == pytest.approx(0.5)
