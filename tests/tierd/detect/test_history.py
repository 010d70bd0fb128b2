"""What is remembered of the windows: bounded, and without losing what matters."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.worlds import TARGETS, small_files, small_io, stream, window
from tierd.detect.columns import (
    LONG_WITH_SIZES,
    MAX_LONG_LOADS,
    MAX_SHORT_LOADS,
    SHORT_SECONDS,
    History,
    thinned,
    without_sizes,
)
from tierd.loads import Loads, NamespaceLoads
from tierd.model import UNSEEN, JobLoad, NamespaceLoad, Window

CROWD = [f"small.{n}" for n in range(200)]


def test_of_many_jobs_on_a_target_the_small_ones_are_left_out() -> None:
    kept = thinned(window(0, stream("s.1", 60), small_files("m.2", 30), *(small_io(job, 0.5) for job in CROWD)))
    assert {job for _, job in kept.loads} == {"s.1", "m.2"}
    assert "m.2" in kept.namespace


def test_a_job_that_is_large_on_one_target_stays_there() -> None:
    assert ("lustre-OST0002", "f.3") in thinned(window(0, *(small_io(job, 0.5) for job in CROWD), stream("s.1", 60),
                                                       small_io("f.3", 50, targets=TARGETS[:1]))).loads


def test_the_last_minutes_are_whole_and_what_was_before_is_coarse_without_gap_or_overlap() -> None:
    history = History(1800.0)
    for n in range(500):
        history.add(window(n, stream("s.1", 60)))
        windows = history.windows
        assert all(before.end == after.start for before, after in pairwise(windows))
        assert windows[-1].end - windows[0].start >= min(5.0 * (n + 1), 1800.0)
        assert sum(w.seconds == 5.0 for w in windows) * 5.0 >= min(5.0 * (n + 1), SHORT_SECONDS - 35.0)
    assert len(windows) < 130
    moved = sum(load.moved_bytes for w in windows for load in w.loads.values())
    assert abs(moved / sum(w.seconds for w in windows) / 60e6 - 1) < 1e-9


def test_memory_is_bounded_however_many_loads_there_are() -> None:
    history = History(1800.0)
    jobs = [f"j.{n}" for n in range(16)]
    targets = [f"big-OST{n:04x}" for n in range(400)]
    one = window(0, *(stream(job, 100, targets=targets) for job in jobs))
    for n in range(120):
        history.add(Window(n * 5.0, n * 5.0 + 5, one.loads, {}))
    whole = [w for w in history.windows if w.seconds == 5.0]
    assert len(whole) <= 12
    assert sum(len(w.loads) for w in whole) <= MAX_SHORT_LOADS + 7 * len(one.loads)
    assert sum(len(w.loads) for w in history.half_minutes) <= MAX_LONG_LOADS


def test_when_the_clock_goes_back_nothing_before_is_believed() -> None:
    history = History(1800.0)
    for n in (100, 101, 102, 3):
        history.add(window(n, stream("s.1", 60)))
    assert [w.start for w in history.windows] == [15.0]


def test_a_half_minute_tells_of_a_target_that_was_unhealthy_in_it() -> None:
    """On a large file system the windows of a verdict are half minutes after 30 s."""
    history, why = History(900.0), [{"a": "in recovery", "b": UNSEEN}, {"a": UNSEEN}, {}, {}, {}, {"c": UNSEEN}]
    for n in range(6):
        history.add(window(n, stream("s.1", 40), conditions=why[n]))
    assert history.half_minutes[0].conditions == {"a": "in recovery", "c": UNSEEN}


def test_after_a_gap_it_starts_again() -> None:
    history = History(900.0)
    for n in range(5):
        history.add(window(n, stream("s.1", 40)))
    for n in range(100, 106):
        history.add(window(n, stream("s.1", 40)))
    (only,) = history.half_minutes
    assert (only.start, only.seconds) == (500, 30)


@pytest.mark.parametrize("without_gap", [1, 5, 9])
def test_it_is_bounded_though_the_counters_fail_every_few_windows(without_gap: int) -> None:
    history = History(900.0)
    for n in range(1000):
        history.add(window(n + n // without_gap, stream("s.1", 40)))
        windows = history.windows
        assert len(windows) <= 100
        assert all(before.end <= after.start for before, after in pairwise(windows))
        assert sum(w.seconds == 5.0 for w in windows if w.end > windows[-1].end - 270) >= min(n, 27)


AMOUNTS = st.floats(0, 1e15)
LOADS = st.builds(JobLoad, st.sampled_from(TARGETS), st.sampled_from(["s.1", "m.2", "f.3"]), AMOUNTS, AMOUNTS, AMOUNTS,
                  AMOUNTS, AMOUNTS, AMOUNTS, st.dictionaries(st.integers(0, 1 << 70), AMOUNTS, max_size=3))
NAMES = st.builds(NamespaceLoad, st.sampled_from(["s.1", "m.2", "f.3"]), AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS)


@given(st.lists(LOADS), st.lists(NAMES))
def test_columns_have_equal_loads_in_the_same_order(loads: list[JobLoad], names: list[NamespaceLoad]) -> None:
    each = {load[:2]: load._replace(sizes={upper: count for upper, count in load.sizes.items() if count})
            for load in loads}
    columns, by_job = Loads.of(each), {name.job: name for name in names}
    assert list(columns.items()) == list(each.items())
    assert list(columns.values()) == list(each.values())
    assert [columns.get(key) for key in columns] == list(each.values())
    assert list(NamespaceLoads.of(by_job).items()) == list(by_job.items())
    whole = Window(0.0, 5.0, each, by_job)
    assert without_sizes(whole).loads == {key: load._replace(sizes={}) for key, load in each.items()}
    assert whole.jobs == {load.job for load in loads}


@pytest.mark.parametrize("recent_seconds", [12.0, 30.0, 60.0])
def test_windows_that_make_profiles_keep_the_sizes_of_rpcs(recent_seconds: float) -> None:
    history = History(900.0, recent_seconds)
    for n in range(60):
        history.add(window(n, stream("s.1", 60)))
        short = [w for w in history.windows if w.seconds == 5.0]
        for w in short:
            recent = w.end > short[-1].end - recent_seconds
            assert all(bool(load.sizes) == recent for load in w.loads.values())


def test_half_minutes_keep_the_sizes_of_rpcs_for_two_minutes() -> None:
    history = History(900.0)
    for n in range(6 * 8):
        history.add(window(n, stream("s.1", 60)))
    newest_first = history.half_minutes[::-1]
    assert [all(load.sizes == {1 << 20: load.writes} for load in w.loads.values()) for w in newest_first] == [
        n < LONG_WITH_SIZES for n in range(8)]
