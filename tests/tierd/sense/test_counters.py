"""Counters as numbers, and the quick way to a load: the same as by asking every question."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierd.sense.counters import JobCounters
from tierd.sense.ost_load import quick
from tierd.sense.readings import IMPLAUSIBLE, MOST_BYTES, MOST_OPERATIONS, Reading, between, job_load, window

OST = "l-OST0001"
NAMES = ("read_bytes", "write_bytes", "read", "write", "getattr", "setattr", "sync", "statfs")
NUMBERS = st.one_of(st.integers(0, 5).map(float), st.floats(0, 1e16), st.just(math.nan), st.just(math.inf))
COUNTERS = st.builds(JobCounters, st.fixed_dictionaries(dict.fromkeys(NAMES, NUMBERS)),
                     st.fixed_dictionaries(dict.fromkeys(NAMES[:4], NUMBERS)),
                     st.fixed_dictionaries({4096: NUMBERS, 1 << 20: NUMBERS}), st.sampled_from(["", "5.0", "7.0"]))


@given(COUNTERS, COUNTERS)
def test_the_quick_way_comes_to_the_same(before: JobCounters, after: JobCounters) -> None:
    load = quick(OST, "j", before, after, MOST_OPERATIONS * 5, MOST_BYTES * 5)
    if load is not None:
        done = between(before, after, "j", 5.0)
        assert isinstance(done, JobCounters)
        assert load == job_load(OST, "j", done)


@given(st.fixed_dictionaries({name: st.integers(0, 1000).map(float) for name in NAMES}),
       st.fixed_dictionaries({name: st.integers(0, 1000).map(float) for name in NAMES}))
def test_what_goes_on_as_it_should_is_dealt_with_quickly(before: dict[str, float], more: dict[str, float]) -> None:
    after = {name: count + more[name] for name, count in before.items()}
    load = quick(OST, "j", JobCounters(before, {}), JobCounters(after, {}), MOST_OPERATIONS, MOST_BYTES)
    assert (load is not None) == any(more.values())


def test_counters_are_given_back_as_they_came() -> None:
    told = JobCounters({"write": 3.0, "sync": 0.0}, {"write": 70.0}, {4096: 3.0}, "5.0")
    assert (told.samples, told.sums, told.sizes) == ({"write": 3.0, "sync": 0.0}, {"write": 70.0}, {4096: 3.0})
    assert told == JobCounters({"sync": 0.0, "write": 3.0}, {"write": 70.0}, {4096: 3.0}, "5.0")
    assert told != JobCounters({"write": 4.0, "sync": 0.0}, {"write": 70.0}, {4096: 3.0}, "5.0")


@pytest.mark.parametrize("number", [math.nan, -math.nan])
def test_what_is_no_number_is_told_as_long_as_it_stands(number: float) -> None:
    before, after = (Reading(time, {(OST, "j"): JobCounters({"write": number}, {})}, frozenset({OST}))
                     for time in (0.0, 5.0))
    assert window(before, after).conditions == {OST: IMPLAUSIBLE}
