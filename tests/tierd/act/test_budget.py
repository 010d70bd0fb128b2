from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tierd.act.budget import Budget, Limits


@given(st.lists(st.tuples(st.integers(0, 5 << 20), st.floats(0, 3)), max_size=200), st.floats(1, 50),
       st.floats(1e5, 1e8))
def test_never_faster_than_allowed(files: list[tuple[int, float]], files_s: float, bytes_s: float) -> None:
    limits = Limits(files_s, bytes_s, burst_seconds=2.0)
    now, budget, taken, moved, largest = 100.0, Budget(limits, 100.0), 0, 0, 0
    for size, pause in files:
        now += pause
        if not budget.take(size, now):
            taken, moved, largest = taken + 1, moved + size, max(largest, size)
    passed = now - 100.0
    assert taken <= files_s * (passed + 2) + 1e-6
    assert moved <= bytes_s * (passed + 2) + largest + 1e-3


def test_a_refusal_takes_nothing_and_names_the_limit() -> None:
    budget = Budget(Limits(1.0, 1e6, burst_seconds=1.0), 0.0)
    assert budget.take(10, 0.0) == ""
    assert budget.take(10, 0.1) == "1 files a second are reached"
    assert budget.take(10, 1.1) == ""


def test_a_file_larger_than_the_bucket_goes_when_the_bucket_is_full_and_is_paid_for_later() -> None:
    budget = Budget(Limits(100.0, 1e6, burst_seconds=1.0), 0.0)
    assert budget.take(5_000_000, 0.0) == ""
    assert "MB a second" in budget.take(1, 3.0)
    assert budget.take(1, 6.0) == ""


def test_a_clock_that_jumps_back_gives_nothing_away() -> None:
    budget = Budget(Limits(1.0, 1e6, burst_seconds=1.0), 100.0)
    assert budget.take(10, 100.0) == ""
    assert budget.take(10, 50.0) != ""
    assert budget.take(10, 100.5) != ""
