from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.worlds import small_files, stream, window
from tierd.detect.coarse import CoarseWindows


def test_six_short_windows_make_a_long_one() -> None:
    coarse = CoarseWindows()
    done = [coarse.add(window(n, stream("s.1", 40), small_files("m.2", 10))) for n in range(12)]
    assert done == ([False] * 5 + [True]) * 2
    first, second = coarse.windows
    assert (first.start, first.end, second.end) == (0, 30, 60)
    assert sum(load.write_bytes for (_, job), load in first.loads.items() if job == "s.1") == pytest.approx(40e6 * 30)
    assert first.namespace["m.2"].creates == 300


def test_after_a_gap_it_begins_anew() -> None:
    coarse = CoarseWindows()
    for n in range(5):
        coarse.add(window(n, stream("s.1", 40)))
    for n in range(100, 106):
        coarse.add(window(n, stream("s.1", 40)))
    (only,) = coarse.windows
    assert (only.start, only.seconds) == (500, 30)


def test_what_is_old_is_forgotten() -> None:
    coarse = CoarseWindows(history_seconds=60)
    for n in range(60):
        coarse.add(window(n))
    assert len(coarse.windows) == 3


@given(st.lists(st.floats(1, 1000), min_size=6, max_size=6))
def test_nothing_is_lost(rates: list[float]) -> None:
    coarse = CoarseWindows()
    for n, rate in enumerate(rates):
        coarse.add(window(n, stream("s.1", rate)))
    (found,) = coarse.windows
    assert sum(load.moved_bytes for load in found.loads.values()) == pytest.approx(sum(rates) * 5e6)
    assert all(sum(load.sizes.values()) == pytest.approx(load.writes) for load in found.loads.values())
