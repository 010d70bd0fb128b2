"""The curve of gain against flash."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierd.detect.account import Lost
from tierd.whatif.account import PARTS, Made, Neighbour, given_back, living, needs


def neighbour(job: str, gain: float, peaks: dict[int, float], error: float = 0.1) -> Neighbour:
    return Neighbour(job, 0.0, 1 << 20, Made(), False, peaks=peaks,
                     gain=Lost(gain, gain * (1 - error), gain * (1 + error), 1.0))


NEIGHBOURS = st.lists(st.builds(
    neighbour, st.text(max_size=3), st.floats(1.0, 1e15),
    st.dictionaries(st.integers(0, PARTS), st.integers(0, 10**15).map(float), max_size=5), st.floats(0.0, 1.0)),
    max_size=6)


@given(NEIGHBOURS, st.floats(0.0, 0.9))
def test_more_flash_never_gives_back_less(neighbours: list[Neighbour], reserve: float) -> None:
    needed = needs(neighbours, reserve)
    sizes = [needed[-1].high_bytes * part / 8 for part in range(10)]
    for less, more in pairwise([given_back(needed, size) for size in sizes]):
        for column in ("bytes", "low_bytes", "high_bytes", "seconds"):
            assert getattr(less, column) <= getattr(more, column) * (1 + 1e-9)
        assert more.low_bytes <= more.bytes * (1 + 1e-9)
        assert more.bytes <= more.high_bytes * (1 + 1e-9)


def test_files_live_until_the_job_ends_or_for_ever() -> None:
    one = neighbour("j", 1.0, {2: 5.0, 4: 3.0})
    assert living(one, False)[:7].tolist() == [0, 0, 5, 5, 3, 0, 0]
    assert living(one, True)[[0, 3, 5, PARTS]].tolist() == [0, 5, 3, 3]


def test_jobs_at_different_times_share_flash_if_files_go() -> None:
    small, large = neighbour("a", 10.0, {1: 90.0}), neighbour("b", 10.0, {9: 180.0})
    nothing, first, both = needs([large, small], 0.1)
    assert (nothing.low_bytes, nothing.gain.bytes) == (0, 0)
    assert (first.low_bytes, first.high_bytes) == pytest.approx((100, 100))
    assert (both.low_bytes, both.high_bytes, both.gain.bytes) == pytest.approx((200, 300, 20))


def test_files_on_flash_are_those_made_since_and_not_removed() -> None:
    one = Neighbour("j", 0.0, 1 << 20, Made(300, 0, 300e6), False, made=Made(500, 400, 400e6))
    assert (one.files, one.mean_bytes) == (400, 0.8e6)
    one.moves = True
    assert one.files == 400
    one.made.unlinks = 0
    assert one.files == 800
    one.component_bytes = 65536
    assert one.mean_bytes == 65536
