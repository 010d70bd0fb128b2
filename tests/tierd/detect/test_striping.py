from __future__ import annotations

import pytest

from lustre.layout.model import Component, Layout
from tests.tierd.detect.views import POOLS, filled, halves, look
from tests.tierd.worlds import TARGETS, small_files, stream
from tierd.detect.striping import DETECTOR
from tierd.model import DirectoryActivity, Facts, Finding


def small(stripes: int, creates: int = 1000) -> list[Finding]:
    layout = Layout((Component(stripe_count=stripes),), composite=False)
    facts = Facts(pools=POOLS, fill=filled(), default_layouts={"/proj/many": layout}, directories=(
        DirectoryActivity("m.2", "/proj/many", creates=creates),))
    return look(DETECTOR, halves(small_files("m.2", 20, 64 << 10, seconds=30.0)), facts)


@pytest.mark.parametrize("stripes", [4, -1])
def test_small_files_with_several_objects_each_are_reported(stripes: int) -> None:
    (found,) = small(stripes)
    assert "m.2 creates small files in /proj/many, 1000 recently" in found.sentence
    assert found.advice[0].command.startswith("lfs setstripe -c 1 /proj/many")


def test_one_stripe_and_few_files_are_well() -> None:
    assert small(1) == []
    assert small(4, creates=10) == []


def test_a_stream_to_one_of_several_targets_is_reported() -> None:
    (found,) = look(DETECTOR, halves(stream("big.1", 90, seconds=30.0, targets=TARGETS[:1])))
    assert found.sentence == "big.1 moves 100% of its bytes, 90.0 MB/s, on lustre-OST0002; the pool has 4 targets"
    assert found.advice[0].command == "lfs setstripe -c 4 -p hdd DIRECTORY"


def test_a_stream_over_all_and_a_slow_one_are_well() -> None:
    assert look(DETECTOR, halves(stream("big.1", 400, seconds=30.0))) == []
    assert look(DETECTOR, halves(stream("big.1", 20, seconds=30.0, targets=TARGETS[:1]))) == []


def crowded(targets: tuple[str, ...], files_per_second: float = 60, pools: dict[str, tuple[str, ...]] = POOLS
            ) -> list[Finding]:  # fmt: skip
    return look(DETECTOR, halves(small_files("m.2", files_per_second, 64 << 10, seconds=30.0, targets=targets)),
                Facts(pools=pools, fill=filled()))


def test_many_small_files_on_one_target_of_a_pool_are_reported() -> None:
    (found,) = crowded(TARGETS[:1])
    assert found.targets == TARGETS[:1]
    assert found.advice_only
    assert found.advice[0].command == "lfs setstripe -c 1 -i -1 -p hdd DIRECTORY"


def test_a_few_small_files_on_one_target_are_what_the_guide_advises() -> None:
    assert crowded(TARGETS[:1], 5) == []
    assert crowded(TARGETS) == []
    assert crowded(TARGETS[:1], pools={"hdd": TARGETS[:1]}) == []
