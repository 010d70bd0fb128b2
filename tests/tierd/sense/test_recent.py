from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tierd.model import DirectoryActivity
from tierd.sense.recent import RecentDirectories


def made(creates: int, job: str = "j.1") -> DirectoryActivity:
    return DirectoryActivity(job, "/proj/in", creates=creates)


def test_the_first_look_tells_nothing() -> None:
    assert RecentDirectories().since_then([made(500)], 1000.0) == ((), 0.0)


def test_only_what_came_since_counts() -> None:
    recent = RecentDirectories()
    recent.since_then([made(500)], 1000.0)
    assert recent.since_then([made(530), made(7, "new.2")], 1005.0) == ((made(30), made(7, "new.2")), 5.0)


def test_what_is_older_than_the_span_is_forgotten() -> None:
    recent = RecentDirectories(span_seconds=600, step_seconds=60)
    for minute in range(20):
        found, seconds = recent.since_then([made(10 * minute)], 60.0 * minute)
    assert (found, seconds) == ((made(100),), 600.0)


def test_a_tally_that_began_anew_counts_from_zero() -> None:
    recent = RecentDirectories()
    recent.since_then([made(500)], 0.0)
    assert recent.since_then([made(3)], 5.0)[0] == (made(3),)


@given(st.lists(st.integers(0, 1000), min_size=2))
def test_nothing_is_counted_twice(steps: list[int]) -> None:
    recent = RecentDirectories(span_seconds=1e9)
    total = 0
    recent.since_then([made(0)], 0.0)
    for number, step in enumerate(steps, 1):
        total += step
        found, _ = recent.since_then([made(total)], float(number))
        assert sum(f.creates for f in found) == total


def test_tallies_that_come_and_go_take_no_place_for_good() -> None:
    recent = RecentDirectories(span_seconds=600, step_seconds=60)
    for minute in range(100):
        crowd = [made(minute + 1, f"j.{number}") for number in range(100 * minute, 100 * minute + 100)]
        found, _ = recent.since_then([made(10 * minute, "stays.1"), *crowd], 60.0 * minute)
    assert (found[0], len(found)) == (made(100, "stays.1"), 101)
    assert len(recent._places) < 1500
