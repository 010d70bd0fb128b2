"""What is remembered of the windows: bounded, and without losing what matters."""

from __future__ import annotations

from itertools import pairwise

from tests.tierd.worlds import TARGETS, small_files, small_io, stream, window
from tierd.history import MOST_COARSE_LOADS, MOST_LOADS, WHOLE_SECONDS, History, thinned
from tierd.model import Window

CROWD = [f"small.{n}" for n in range(200)]


def crowded(number: int, jobs: list[str] = CROWD) -> Window:
    return window(number, stream("s.1", 60), small_files("m.2", 30), *(small_io(job, 0.5) for job in jobs))


def test_few_jobs_are_all_kept_as_they_came() -> None:
    few = window(0, stream("s.1", 60), small_files("m.2", 0.1), small_io("f.3", 0.1))
    assert thinned(few) is few


def test_of_many_jobs_on_a_target_the_small_ones_are_left_out() -> None:
    kept = thinned(crowded(0))
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
        assert sum(w.seconds == 5.0 for w in windows) * 5.0 >= min(5.0 * (n + 1), WHOLE_SECONDS - 35.0)
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
    assert sum(len(w.loads) for w in whole) <= MOST_LOADS + 7 * len(one.loads)
    assert sum(len(w.loads) for w in history.coarse.windows) <= MOST_COARSE_LOADS


def test_when_the_clock_goes_back_nothing_before_is_believed() -> None:
    history = History(1800.0)
    for n in (100, 101, 102, 3):
        history.add(window(n, stream("s.1", 60)))
    assert [w.start for w in history.windows] == [15.0]
