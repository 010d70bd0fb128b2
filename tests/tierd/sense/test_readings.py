from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tierd.sense.readings import JobCounters, Reading, window

OST, MDT = "lustre-OST0002", "lustre-MDT0000"


def counters(writes: float = 0, start: str = "", **more: float) -> JobCounters:
    return JobCounters({"write_bytes": writes, "write": writes, **more}, {"write_bytes": writes * 1000}, {4096: writes},
                       start)


def reading(time: float, jobs: dict[tuple[str, str], JobCounters], targets: set[str] | None = None) -> Reading:
    return Reading(time, jobs, frozenset({OST, MDT} if targets is None else targets))


def test_differences_and_rates() -> None:
    seen = window(reading(0, {(OST, "j"): counters(10)}), reading(5, {(OST, "j"): counters(25, sync=4, statfs=9)}))
    load = seen.loads[OST, "j"]
    assert (load.writes, load.write_bytes, load.other_operations, load.sizes) == (15, 15000, 4, {4096: 15})


def test_an_idle_job_is_not_in_the_window() -> None:
    assert not window(reading(0, {(OST, "j"): counters(10)}), reading(5, {(OST, "j"): counters(10)})).loads


def test_an_entry_that_began_anew_counts_from_zero() -> None:
    for again in (counters(3), counters(30, start="200.0")):
        seen = window(reading(100, {(OST, "j"): counters(10, start="50.0")}), reading(201, {(OST, "j"): again}))
        assert seen.loads[OST, "j"].writes == again.samples["write"]


def test_a_target_that_could_not_be_read_before_gives_no_sudden_load() -> None:
    seen = window(reading(0, {}, targets=set()), reading(5, {(OST, "j"): counters(1_000_000)}))
    assert not seen.loads


def test_an_old_entry_that_was_overlooked_gives_no_sudden_load() -> None:
    seen = window(reading(1000, {}), reading(1005, {(OST, "j"): counters(1_000_000, start="12.5")}))
    assert not seen.loads


def test_metadata_of_all_mdts_is_one_load() -> None:
    seen = window(reading(0, {}), reading(5, {(MDT, "j"): counters(open=7, mknod=5, close=6, unlink=1, getattr=9)}))
    names = seen.namespace["j"]
    assert (names.opens, names.creates, names.closes, names.unlinks, names.other_operations) == (7, 5, 6, 1, 9)


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=20))
def test_no_order_of_values_gives_a_negative_load(values: list[int]) -> None:
    for before, after in pairwise(values):
        seen = window(reading(0, {(OST, "j"): counters(before)}), reading(5, {(OST, "j"): counters(after)}))
        assert all(load.writes >= 0 and load.write_bytes >= 0 and min(load.sizes.values(), default=0) >= 0
                   for load in seen.loads.values())
