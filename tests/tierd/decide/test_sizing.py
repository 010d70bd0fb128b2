from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tierd.decide.sizing import SPLIT_SHARE, UNIT_BYTES, Settings, boundary, component, from_distribution

KIB, MIB = 1 << 10, 1 << 20
SETTINGS = Settings()


def test_the_paper_s_case_4_mb_files_are_held_whole() -> None:
    assert component([4 * MIB] * 100, 0, 0, SETTINGS).component_bytes >= 4 * MIB


def test_a_few_huge_files_do_not_raise_the_boundary() -> None:
    assert from_distribution([100 * KIB] * 95 + [10 << 30] * 5, SETTINGS).component_bytes == 128 * KIB


def test_files_that_would_be_split_refuse() -> None:
    size = from_distribution([MIB] * 50 + [20 * MIB] * 50, SETTINGS)
    assert size.component_bytes == 0
    assert "would split 50 of 100 sampled files" in size.reason


def test_few_samples_fall_back_to_the_mean() -> None:
    assert component([MIB] * 5, 900 * KIB, MIB, SETTINGS).component_bytes == 2 * MIB


def test_nothing_known_refuses() -> None:
    assert component([], 0, 0, SETTINGS).component_bytes == 0


def test_the_largest_rpc_is_held_too() -> None:
    assert component([], 100 * KIB, 4 * MIB, SETTINGS).component_bytes == 4 * MIB


@given(st.lists(st.integers(1, 1 << 40), min_size=20, max_size=300))
def test_a_component_never_splits_more_than_allowed(sizes: list[int]) -> None:
    size = from_distribution(sizes, SETTINGS).component_bytes
    if size:
        assert sum(size < s <= 64 * size for s in sizes) <= SPLIT_SHARE * len(sizes)
        assert size % UNIT_BYTES == 0
        assert size <= SETTINGS.largest_component_bytes


@given(st.lists(st.integers(1, 16 * MIB), min_size=20, max_size=300))
def test_small_files_alone_are_all_held(sizes: list[int]) -> None:
    """Nothing lies above the limit, so nothing may be cut off."""
    assert from_distribution(sizes, SETTINGS).component_bytes >= max(sizes)


@given(st.integers(1, 8 * MIB), st.integers(0, 8 * MIB))
def test_twice_the_mean_holds_every_even_spread(low: int, spread: int) -> None:
    high = low + spread
    size = component([], (low + high) / 2, 0, SETTINGS).component_bytes
    assert size == 0 or size >= high - 1


@given(st.integers(1, 1 << 50))
def test_boundaries_are_powers_of_two_at_or_above(size: int) -> None:
    assert boundary(size) >= size
    assert boundary(size).bit_count() == 1
    assert boundary(size) < 2 * max(size, UNIT_BYTES)
