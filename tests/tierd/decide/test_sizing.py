import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierd.decide.sizing import SPLIT_SHARE, UNIT_BYTES, Settings, Size, component, from_distribution
from tierd.refusal import Refusal

KIB, MIB = 1 << 10, 1 << 20
SETTINGS = Settings()


def held(found: Size | Refusal) -> int:
    return found.component_bytes if isinstance(found, Size) else 0


@pytest.mark.parametrize(("sizes", "mean", "largest_rpc", "component_bytes"), [
    pytest.param([4 * MIB] * 100, 0, 0, 4 * MIB, id="the files of the paper are held whole"),
    pytest.param([100 * KIB] * 95 + [10 << 30] * 5, 0, 0, 128 * KIB, id="a few huge files"),
    pytest.param([MIB] * 50 + [20 * MIB] * 50, 0, 0, 0, id="half of the files would be split"),
    pytest.param([4 * KIB] * 60 + [MIB] * 39 + [20 * MIB], 0, 0, MIB, id="one larger file beside two kinds of small"),
    pytest.param([MIB] * 5, 900 * KIB, MIB, 2 * MIB, id="few samples: the mean decides"),
    pytest.param([], 0, 0, 0, id="nothing is known"),
    pytest.param([], 100 * KIB, 4 * MIB, 4 * MIB, id="the largest RPC is held too"),
])
def test_a_component_holds_whole_small_files(sizes: list[int], mean: float, largest_rpc: int,
                                             component_bytes: int) -> None:
    assert held(component(sizes, mean, largest_rpc, SETTINGS)) == component_bytes


@pytest.mark.parametrize(("size", "expected"), [(4 * MIB, 4 * MIB), (4 * MIB + 1, 0)])
def test_no_component_is_larger_than_the_limit_that_lies_between_two_boundaries(size: int, expected: int) -> None:
    assert held(from_distribution([size] * 30, Settings(5 * MIB))) == expected


@given(st.lists(st.integers(1, 1 << 40), min_size=20, max_size=300))
def test_a_component_never_splits_more_than_allowed(sizes: list[int]) -> None:
    size = held(from_distribution(sizes, SETTINGS))
    if size:
        assert sum(size < s <= 64 * size for s in sizes) <= SPLIT_SHARE * len(sizes)
        assert size % UNIT_BYTES == 0
        assert size <= SETTINGS.largest_component_bytes


@given(st.lists(st.integers(1, 16 * MIB), min_size=20, max_size=300), st.integers(17 * MIB, 1 << 50))
def test_one_large_file_keeps_no_small_ones_from_flash(sizes: list[int], large: int) -> None:
    assert held(from_distribution([*sizes, large], SETTINGS))
